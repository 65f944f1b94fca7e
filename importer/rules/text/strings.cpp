// Operators on strings. Where the strings that an input may hold are known when packing,
// the result is a table; else it is computed from bytes.
#include "importer/text/regex_walk.h"
#include "importer/text/string_case.h"
#include "importer/text/string_split.h"

#include <algorithm>
#include <functional>

namespace svod::importer {
namespace {

// A function of each string, by its two forms.
Expr map_strings(NodeImport& node, Expr x,
                 const std::function<std::string(const std::string&)>& known,
                 const std::function<Expr(Expr)>& rows) {
  if (const auto choice = choice_of(node, x)) {
    std::vector<std::string> results;
    for (const std::string& text : choice->strings) results.push_back(known(text));
    const Shape all{static_cast<int64_t>(results.size())};
    return look_up(*choice, constant_strings(node, results, all));
  }
  const Shape shape = x.shape();
  return strings_from(node, rows(rows_of(node, x)), shape);
}

Expr in_letter_case(NodeImport& node, Expr x, LetterCase to) {
  return map_strings(
      node, x, [to](const std::string& text) { return in_case(text, to); },
      [to](Expr rows) { return rows_in_case(rows, to); });
}

std::optional<LetterCase> case_attribute(NodeImport& node) {
  const std::string action = node.get_string("case_change_action");
  if (action == "NONE") return std::nullopt;
  if (action == "LOWER") return LetterCase::Lower;
  if (action == "UPPER") return LetterCase::Upper;
  node.invalid("case_change_action '" + action + "' is not one of LOWER, UPPER, NONE");
}

std::vector<std::string> distinct(std::vector<std::string> texts) {
  std::ranges::sort(texts);
  texts.erase(std::unique(texts.begin(), texts.end()), texts.end());
  return texts;
}

// Whether each string of x, [n], is no stop word.
Expr not_stopped(NodeImport& node, Expr x) {
  std::vector<std::string> words = node.get_strings("stopwords");
  if (!node.get_int("is_case_sensitive")) {
    for (std::string& word : words) word = in_case(word, LetterCase::Lower);
    x = in_letter_case(node, x, LetterCase::Lower);
  }
  words = distinct(std::move(words));
  return equal(find_strings(node, x, words), static_cast<double>(words.size()));
}

// The strings that stay, [count]; one empty string when none does.
Expr kept_strings(NodeImport& node, Expr x, Expr stays) {
  if (const auto known = known_ints(node.g, stays.id)) {
    std::vector<int64_t> positions;
    for (size_t i = 0; i < known->size(); ++i)
      if ((*known)[i]) positions.push_back(static_cast<int64_t>(i));
    return positions.empty() ? constant_strings(node, {""}, {1}) : take(x, 0, positions);
  }
  const std::optional<Shape> declared = node.declared_shape(0);
  if (!declared || declared->empty())
    node.unsupported("how many strings stay depends on the model's inputs, and the model "
                     "declares no shape for its output");
  const int64_t count = declared->back();
  require(node, count >= 1 && count <= std::max<int64_t>(extent(x, 0), 1),
          "the declared shape does not fit the input");
  if (count > 1) return take(x, 0, true_positions(node, stays, count));
  const Expr found = sum(convert(stays, DType::I64), {0});
  const Expr first{&node.g, argsort(node.g, convert(stays, DType::U8).id, 0, true)};
  const Expr one =
      take(x, 0, if_kept(less_equal(found, like(found, 1)), cut(first, 0, 0, 1)));
  return select(equal(found, 0), constant_strings(node, {""}, {1}), one);
}

} // namespace

void import_string_concat(NodeImport& node) {
  Expr a = text_operand(node, 0), b = text_operand(node, 1);
  const Shape shape = broadcast_shape(node, {a.shape(), b.shape()});
  a = broadcast(a, shape);
  b = broadcast(b, shape);
  const auto known_a = node.strings->known(node.g, a.id);
  const auto known_b = node.strings->known(node.g, b.id);
  if (known_a && known_b) {
    std::vector<std::string> joined;
    for (size_t i = 0; i < known_a->size(); ++i)
      joined.push_back((*known_a)[i] + (*known_b)[i]);
    return give(node, 0, constant_strings(node, joined, shape));
  }
  give(node, 0, strings_from(node, join_rows(rows_of(node, a), rows_of(node, b)), shape));
}

void import_regex_full_match(NodeImport& node) {
  const Expr x = text_operand(node, 0);
  require(node, node.has("pattern"), "attribute 'pattern' is missing");
  const Automaton automaton = automaton_of(node, node.get_string("pattern"));
  const Shape shape = x.shape();
  give(node, 0, reshape(whole_matches(node, rows_of(node, x), automaton), shape));
}

void import_string_normalizer(NodeImport& node) {
  Expr x = text_operand(node, 0);
  const bool matrix = x.rank() == 2;
  require(node, x.rank() == 1 || (matrix && extent(x, 0) == 1),
          "the input must have the shape [C] or [1, C]");
  if (matrix) x = squeeze(x, 0);
  const std::optional<LetterCase> to = case_attribute(node);
  // Turkish, Azeri and Lithuanian have other pairs of letters.
  const std::string locale = node.get_string("locale").substr(0, 2);
  if (to && (locale == "tr" || locale == "az" || locale == "lt"))
    node.unsupported("letters in the case of locale '" + escaped(locale) + "'");
  Expr y = to ? in_letter_case(node, x, *to) : x;
  if (!node.get_strings("stopwords").empty())
    y = kept_strings(node, y, not_stopped(node, x));
  else if (extent(x, 0) == 0)
    y = constant_strings(node, {""}, {1});
  give(node, 0, matrix ? unsqueeze(y, 0) : y);
}

namespace {

// The number of parts that the result has room for: what the model declares, else all
// that a string can have.
int64_t room_for_parts(NodeImport& node, int64_t width, const std::string& separator,
                       int64_t most) {
  const auto declared = node.declared_shape(0);
  if (declared && declared->size() == node.shape(0).size() + 1) return declared->back();
  const auto length = static_cast<int64_t>(separator.size());
  const int64_t parts = length == 0 ? (width + 1) / 2 : width / length + 1;
  return std::min(parts, std::min<int64_t>(most, width) + 1);
}

void split_known(NodeImport& node, const std::vector<std::string>& texts, Shape shape,
                 const std::string& separator, int64_t most) {
  std::vector<std::vector<std::string>> all;
  std::vector<int64_t> counts;
  size_t widest = 0;
  for (const std::string& text : texts) {
    all.push_back(split_text(text, separator, most));
    counts.push_back(static_cast<int64_t>(all.back().size()));
    widest = std::max(widest, all.back().size());
  }
  std::vector<std::string> flat;
  for (std::vector<std::string>& parts : all) {
    parts.resize(widest);
    flat.insert(flat.end(), parts.begin(), parts.end());
  }
  if (node.wants_output(1)) node.output(1, tensor_i64(node.g, shape, counts));
  shape.push_back(static_cast<int64_t>(widest));
  give(node, 0, constant_strings(node, flat, shape));
}

} // namespace

void import_string_split(NodeImport& node) {
  const Expr x = text_operand(node, 0);
  const Shape shape = x.shape();
  const std::string separator = node.has("delimiter") ? node.get_string("delimiter") : "";
  const int64_t most = node.has("maxsplit") ? node.get_int("maxsplit") : int64_t{1} << 30;
  require(node, most >= 0 && most <= int64_t{1} << 30, "maxsplit is out of range");
  if (const auto known = node.strings->known(node.g, x.id))
    return split_known(node, *known, shape, separator, most);
  const Expr rows = rows_of(node, x);
  const int64_t room = room_for_parts(node, extent(rows, 1), separator, most);
  require(node, room >= 1, "the declared shape leaves no room for a part");
  const SplitRows split = separator.empty() ? split_at_space(rows, most, room)
                                            : split_at(node, rows, separator, most, room);
  const Expr parts = reshape(split.parts, {extent(rows, 0) * room, extent(rows, 1)});
  Shape wide = shape;
  wide.push_back(room);
  give(node, 0, strings_from(node, parts, wide));
  if (node.wants_output(1))
    give(node, 1, reshape(convert(split.counts, DType::I64), shape));
}

} // namespace svod::importer
