#include "compiler/codegen/marked_text.h"

#include "compiler/support/check.h"

#include <charconv>

namespace svod::codegen {

namespace {

constexpr char kNumber = '\1', kEnd = '\2', kParameters = '\3', kCall = '\4',
               kFunction = '\5', kFunctionEnd = '\6';

int64_t read_number(std::string_view& text) {
  int64_t out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  SVOD_CHECK(error == std::errc()) << "a mark without its number";
  text.remove_prefix(static_cast<size_t>(end - text.data()));
  return out;
}

std::string_view cut(std::string_view& text, size_t length) {
  const std::string_view out = text.substr(0, length);
  text.remove_prefix(length);
  return out;
}

MarkedPiece read_terms(std::string_view text) {
  MarkedPiece out;
  out.kind = MarkedPiece::Kind::Number;
  out.form = static_cast<NumberForm>(text.front());
  while (!text.empty()) {
    text.remove_prefix(1); // the form, or what is between terms
    MarkedTerm& term = out.terms.emplace_back();
    term.times = read_number(text);
    text.remove_prefix(1);
    term.number = read_number(text);
  }
  return out;
}

// Parts of a sum that have names, and the sum of the others.
std::string sum_text(const MarkedPiece& piece, size_t place, const MarkedReader& reader,
                     int64_t& rest) {
  std::string out;
  for (const MarkedTerm& term : piece.terms) {
    const std::string name = reader.number(place++);
    if (name.empty()) {
      rest += term.times * term.number;
      continue;
    }
    out += (out.empty() ? "" : " + ") + name;
    if (term.times != 1) out += " * " + std::to_string(term.times);
  }
  return out;
}

std::string number_text(const MarkedPiece& piece, size_t place,
                        const MarkedReader& reader) {
  int64_t rest = 0;
  const std::string sum = sum_text(piece, place, reader, rest);
  std::string addend;
  if (rest != 0)
    addend = (rest < 0 ? " - " : " + ") + std::to_string(rest < 0 ? -rest : rest);
  switch (piece.form) {
  case NumberForm::Addend:
    return sum.empty() ? addend : " + " + sum + addend;
  case NumberForm::Factor:
    if (sum.empty()) return rest == 1 ? "" : " * " + std::to_string(rest);
    return " * " + sum;
  case NumberForm::Plain:
    return sum.empty() ? std::to_string(rest) : sum + addend;
  }
  __builtin_unreachable();
}

} // namespace

std::string marked(NumberForm form, const std::vector<MarkedTerm>& terms) {
  std::string out{kNumber, static_cast<char>(form)};
  for (size_t i = 0; i < terms.size(); i++)
    out += (i == 0 ? "" : ",") + std::to_string(terms[i].times) + "*" +
           std::to_string(terms[i].number);
  return out + kEnd;
}

std::string marked_function(const std::string& text) {
  return kFunction + text + kFunctionEnd;
}
std::string marked_parameters() { return {kParameters}; }
std::string marked_call(size_t part) { return kCall + std::to_string(part) + kEnd; }

std::vector<MarkedSection> read_marked(std::string_view text) {
  constexpr std::string_view kMarks = "\1\3\4\5\6";
  std::vector<MarkedSection> out(1);
  while (!text.empty()) {
    const size_t plain = std::min(text.find_first_of(kMarks), text.size());
    if (plain != 0) {
      MarkedPiece& piece = out.back().pieces.emplace_back();
      piece.text = cut(text, plain);
    }
    if (text.empty()) break;
    const char mark = cut(text, 1).front();
    if (mark == kFunction || mark == kFunctionEnd) {
      out.push_back({mark == kFunction, {}});
    } else if (mark == kParameters) {
      out.back().pieces.push_back({MarkedPiece::Kind::Parameters, "", {}, {}, 0});
    } else {
      std::string_view inside = cut(text, text.find(kEnd));
      text.remove_prefix(1);
      MarkedPiece piece;
      if (mark == kNumber)
        piece = read_terms(inside);
      else
        piece = {MarkedPiece::Kind::Call,
                 "",
                 {},
                 {},
                 static_cast<size_t>(read_number(inside))};
      out.back().pieces.push_back(std::move(piece));
    }
  }
  return out;
}

std::string plain_text_of(const std::vector<MarkedPiece>& pieces,
                          const MarkedReader& reader) {
  std::string out;
  size_t place = 0;
  for (const MarkedPiece& piece : pieces) {
    switch (piece.kind) {
    case MarkedPiece::Kind::Text:
      out += piece.text;
      break;
    case MarkedPiece::Kind::Number:
      out += number_text(piece, place, reader);
      place += piece.terms.size();
      break;
    case MarkedPiece::Kind::Parameters:
      out += reader.parameters;
      break;
    case MarkedPiece::Kind::Call:
      out += reader.call(piece.part);
      break;
    }
  }
  return out;
}

std::string plain_text_of(std::string_view marked) {
  std::string out;
  for (const MarkedSection& section : read_marked(marked))
    out += plain_text_of(section.pieces, {});
  return out;
}

} // namespace svod::codegen
