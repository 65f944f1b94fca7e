#include "importer/inputs/dimension_expression.h"

#include <algorithm>
#include <cctype>

namespace svod::importer {

namespace {

// Descends by the grammar; a level of parentheses is one of the stack, and few are
// enough.
class DimensionParser {
public:
  explicit DimensionParser(const std::string& text) : text_(text) {}
  std::optional<DimensionExpression> run();

private:
  using Kind = DimensionExpression::Kind;
  bool sum(int depth);
  bool product(int depth);
  bool operand(int depth);
  bool name(int depth);
  bool number();
  bool take(const std::string& token);
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool is_at(int (*kind)(int)) const {
    return at_ < text_.size() && kind(static_cast<unsigned char>(text_[at_])) != 0;
  }

  const std::string& text_;
  size_t at_ = 0;
  std::vector<DimensionExpression::Term> out_;
};

bool DimensionParser::take(const std::string& token) {
  skip();
  if (text_.compare(at_, token.size(), token) != 0) return false;
  at_ += token.size();
  return true;
}

bool DimensionParser::number() {
  int64_t value = 0;
  while (is_at(std::isdigit)) {
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, text_[at_] - '0', &value))
      return false;
    ++at_;
  }
  out_.push_back({Kind::Number, {}, value});
  return true;
}

// floor(a / b) is what a quotient is anyway.
bool DimensionParser::name(int depth) {
  const size_t begin = at_;
  while (is_at(std::isalnum) ||
         (at_ < text_.size() && (text_[at_] == '_' || text_[at_] == '.')))
    ++at_;
  const std::string word = text_.substr(begin, at_ - begin);
  if (word == "floor" && take("(")) return sum(depth + 1) && take(")");
  out_.push_back({Kind::Name, word});
  return true;
}

bool DimensionParser::operand(int depth) {
  constexpr int kMostDepth = 16;
  if (depth > kMostDepth) return false;
  if (take("(")) return sum(depth + 1) && take(")");
  skip();
  if (is_at(std::isdigit)) return number();
  return (is_at(std::isalpha) || (at_ < text_.size() && text_[at_] == '_')) &&
         name(depth);
}

bool DimensionParser::product(int depth) {
  if (!operand(depth)) return false;
  for (;;) {
    const bool times = take("*"), over = !times && (take("//") || take("/"));
    if (!times && !over) return true;
    if (!operand(depth)) return false;
    out_.push_back({times ? Kind::Multiply : Kind::Divide});
  }
}

bool DimensionParser::sum(int depth) {
  if (!product(depth)) return false;
  for (;;) {
    const bool plus = take("+"), minus = !plus && take("-");
    if (!plus && !minus) return true;
    if (!product(depth)) return false;
    out_.push_back({plus ? Kind::Add : Kind::Subtract});
  }
}

std::optional<DimensionExpression> DimensionParser::run() {
  const bool good = sum(0);
  skip();
  if (!good || at_ != text_.size() || out_.size() < 2) return std::nullopt;
  return DimensionExpression(std::move(out_));
}

} // namespace

std::optional<DimensionExpression> DimensionExpression::parse(const std::string& text) {
  return DimensionParser(text).run();
}

std::vector<std::string> DimensionExpression::names() const {
  std::vector<std::string> out;
  for (const Term& term : terms_)
    if (term.kind == Kind::Name && std::ranges::count(out, term.name) == 0)
      out.push_back(term.name);
  return out;
}

namespace {

// Its ends, while they can be counted.
struct Interval {
  bool good = false;
  int64_t least = 0, most = 0;
};

template <class Operation>
Interval over_ends(const Interval& a, const Interval& b, const Operation& operation) {
  Interval out{a.good && b.good, INT64_MAX, INT64_MIN};
  for (const int64_t x : {a.least, a.most})
    for (const int64_t y : {b.least, b.most}) {
      int64_t value = 0;
      out.good = out.good && !operation(x, y, value);
      out.least = std::min(out.least, value);
      out.most = std::max(out.most, value);
    }
  return out;
}

Interval operator+(const Interval& a, const Interval& b) {
  return over_ends(a, b, [](int64_t x, int64_t y, int64_t& to) {
    return __builtin_add_overflow(x, y, &to);
  });
}

Interval operator-(const Interval& a, const Interval& b) {
  return over_ends(a, b, [](int64_t x, int64_t y, int64_t& to) {
    return __builtin_sub_overflow(x, y, &to);
  });
}

Interval operator*(const Interval& a, const Interval& b) {
  return over_ends(a, b, [](int64_t x, int64_t y, int64_t& to) {
    return __builtin_mul_overflow(x, y, &to);
  });
}

Interval quotient(const Interval& a, const Interval& b) {
  if (a.least < 0 || b.least < 1) return {};
  return over_ends(a, b, [](int64_t x, int64_t y, int64_t& to) {
    to = x / y;
    return false;
  });
}

} // namespace

std::optional<SizeRange>
range_of(const DimensionExpression& expression,
         const std::function<std::optional<SizeRange>(const std::string&)>& of) {
  const auto named = [&](const std::string& name) {
    const std::optional<SizeRange> range = of(name);
    return range ? Interval{true, range->least, range->most} : Interval{};
  };
  const auto counted = [](int64_t n) { return Interval{true, n, n}; };
  const auto out = expression.evaluate<Interval>(named, counted);
  if (!out.good || out.least < 0) return std::nullopt;
  return SizeRange{out.least, out.most};
}

} // namespace svod::importer
