// Sizes that a model states by others, as exporters name the dimensions of masks and
// caches: "past + 1", "2*frames", "floor(samples/320)".
#pragma once

#include "importer/inputs/model_interface.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace svod::importer {

// Sums, differences, products and quotients, rounded down, of names and whole numbers.
class DimensionExpression {
public:
  enum class Kind : uint8_t { Name, Number, Add, Subtract, Multiply, Divide };
  struct Term {
    Kind kind;
    std::string name = {};
    int64_t number = 0;
  };

  // Operands before their operator.
  explicit DimensionExpression(std::vector<Term> terms) : terms_(std::move(terms)) {}
  // None of a name or a number alone, or where the text is nothing of this kind.
  static std::optional<DimensionExpression> parse(const std::string& text);

  // Each once, in the order in which they come.
  std::vector<std::string> names() const;

  // `of(name)` and `number(n)` make values, which are added, subtracted, multiplied, and
  // divided by quotient(a, b).
  template <class Value, class Of, class Number>
  Value evaluate(const Of& of, const Number& number) const {
    std::vector<Value> stack;
    for (const Term& term : terms_) {
      if (term.kind == Kind::Name) {
        stack.push_back(of(term.name));
      } else if (term.kind == Kind::Number) {
        stack.push_back(number(term.number));
      } else {
        const Value right = stack.back();
        stack.pop_back();
        const Value left = stack.back();
        stack.back() = term.kind == Kind::Add        ? left + right
                       : term.kind == Kind::Subtract ? left - right
                       : term.kind == Kind::Multiply ? left * right
                                                     : quotient(left, right);
      }
    }
    return stack.back();
  }

private:
  std::vector<Term> terms_;
};

// What the expression may be, of names with these ranges; none where one has none, or
// where it may be negative or too large to count.
std::optional<SizeRange>
range_of(const DimensionExpression& expression,
         const std::function<std::optional<SizeRange>(const std::string&)>& of);

} // namespace svod::importer
