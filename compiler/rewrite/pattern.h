// The language of rules.def. A pattern is a value: the matcher walks it, and what a rule
// makes is written in the same way.
//
//   x, y, z, w     any node; the same letter twice is the same node twice
//   c, d           a node that is known when packing
//   0, 0.5         a constant, every element of which is this number
//   highest, lowest, ones   likewise: the bounds of the element type, all bits set
//   near(v)        likewise, the number to within the last bits of an f32
//   x + y, exp(x)  the op over patterns; where its operands may be swapped, both orders
//                  are tried
//   y(exp(x))      y is the node that exp(x) is found at
//   once(p)        what p is found at has no other user
//   concat(any)    the op, whatever its inputs
//   map(any)       any scalar function, whatever its inputs
//   f(x, y), f a Helper    only in replacements: what a function makes of nodes
// The words of a rule are constants, written small so that a row reads as algebra.
// NOLINTBEGIN(readability-identifier-naming)
#pragma once

#include "compiler/ir/graph.h"

#include <cmath>
#include <limits>

namespace svod::rewrite {

struct Match;

namespace pattern {

struct Pattern;

struct Letter {
  uint8_t index;
  bool known = false;
  Pattern operator()(Pattern at) const;
};
inline constexpr Letter x{0}, y{1}, z{2}, w{3}, c{4, true}, d{5, true};
inline constexpr size_t kLetters = 6;
inline constexpr uint8_t kNoLetter = 0xff;

using Nodes = std::span<const NodeId>;

// Makes a node of the values of its arguments. kNoNode: the rule does not apply.
using Maker = NodeId (*)(const Match& m, Nodes arguments);

struct Pattern {
  enum class Kind : uint8_t { Any, Number, AllOnes, Op, Made } kind = Kind::Any;
  uint8_t letter = kNoLetter;
  bool known = false;      // of Any
  bool once = false;       // of Op
  bool any_inputs = false; // of Op
  bool any_map = false;    // of Op: any scalar function
  Op op = Op::Input;
  double number = 0, tolerance = 0; // tolerance relative to the number
  Maker maker = nullptr;
  std::vector<Pattern> inputs; // of Op and Made

  Pattern(Letter l) : letter(l.index), known(l.known) {}
  Pattern(double value) : kind(Kind::Number), number(value) {}
  Pattern(Op of, std::vector<Pattern> over)
      : kind(Kind::Op), op(of), inputs(std::move(over)) {}
  Pattern(Maker by, std::vector<Pattern> over)
      : kind(Kind::Made), maker(by), inputs(std::move(over)) {}
  explicit Pattern(Kind of) : kind(of) {}

  bool is_of(Op node) const { return any_map ? is_map(node) : node == op; }
};

inline Pattern Letter::operator()(Pattern at) const {
  at.letter = index;
  return at;
}

struct Helper {
  Maker make;
  template <class... P> Pattern operator()(P... over) const {
    return Pattern(make, {Pattern(over)...});
  }
};

inline Pattern once(Pattern p) {
  p.once = true;
  return p;
}

inline const Pattern highest(HUGE_VAL), lowest(-HUGE_VAL), ones(Pattern::Kind::AllOnes);
inline Pattern near(double value) {
  Pattern p(value);
  p.tolerance = 0x1p-22;
  return p;
}

// clang-format off
inline Pattern operator+(Pattern a, Pattern b) { return {Op::Add, {a, b}}; }
inline Pattern operator-(Pattern a, Pattern b) { return {Op::Sub, {a, b}}; }
inline Pattern operator*(Pattern a, Pattern b) { return {Op::Mul, {a, b}}; }
inline Pattern operator/(Pattern a, Pattern b) { return {Op::Div, {a, b}}; }
inline Pattern operator-(Pattern a) { return {Op::Neg, {a}}; }
inline Pattern operator!(Pattern a) { return {Op::Not, {a}}; }
inline Pattern operator&(Pattern a, Pattern b) { return {Op::And, {a, b}}; }
inline Pattern operator|(Pattern a, Pattern b) { return {Op::Or, {a, b}}; }
inline Pattern operator^(Pattern a, Pattern b) { return {Op::Xor, {a, b}}; }
inline Pattern abs(Pattern a) { return {Op::Abs, {a}}; }
inline Pattern exp(Pattern a) { return {Op::Exp, {a}}; }
inline Pattern erf(Pattern a) { return {Op::Erf, {a}}; }
inline Pattern gelu(Pattern a) { return {Op::Gelu, {a}}; }
inline Pattern sigmoid(Pattern a) { return {Op::Sigmoid, {a}}; }
inline Pattern reciprocal(Pattern a) { return {Op::Reciprocal, {a}}; }
inline Pattern pow(Pattern a, Pattern b) { return {Op::Pow, {a, b}}; }
inline Pattern min(Pattern a, Pattern b) { return {Op::Min, {a, b}}; }
inline Pattern max(Pattern a, Pattern b) { return {Op::Max, {a, b}}; }
inline Pattern select(Pattern a, Pattern b, Pattern c) { return {Op::Select, {a, b, c}}; }
inline Pattern cast(Pattern a) { return {Op::Cast, {a}}; }
inline Pattern reshape(Pattern a) { return {Op::Reshape, {a}}; }
inline Pattern permute(Pattern a) { return {Op::Permute, {a}}; }
inline Pattern expand(Pattern a) { return {Op::Expand, {a}}; }
inline Pattern slice(Pattern a) { return {Op::Slice, {a}}; }
inline Pattern pad(Pattern a) { return {Op::Pad, {a}}; }
inline Pattern window(Pattern a) { return {Op::Window, {a}}; }
inline Pattern gather(Pattern a, Pattern b) { return {Op::Gather, {a, b}}; }
inline Pattern scatter(Pattern a, Pattern b, Pattern c) { return {Op::Scatter, {a, b, c}}; }
inline Pattern sum(Pattern a) { return {Op::ReduceSum, {a}}; }
inline Pattern product(Pattern a) { return {Op::ReduceProd, {a}}; }
inline Pattern min_over(Pattern a) { return {Op::ReduceMin, {a}}; }
inline Pattern max_over(Pattern a) { return {Op::ReduceMax, {a}}; }
// clang-format on

inline constexpr struct AnyInputs {
} any;
inline Pattern concat(AnyInputs) {
  Pattern p(Op::Concat, {});
  p.any_inputs = true;
  return p;
}
inline Pattern map(AnyInputs) {
  Pattern p(Op::Add, {});
  p.any_inputs = p.any_map = true;
  return p;
}

} // namespace pattern

} // namespace svod::rewrite
// NOLINTEND(readability-identifier-naming)
