// Every row that the search uses, rules of simplify and reversed ones included: its
// pattern is drawn as a graph, with random shapes, payloads and values, and what the row
// makes of it has the values that the evaluator finds for the pattern.
#include "compiler/egraph/equality.h"
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace svod;
using namespace svod::egraph;
using namespace svod::test;
using rewrite::Rewriter;
using rewrite::pattern::Pattern;

namespace {

// Draws what a pattern fits, from the root's shape down. kNoNode: the shapes or types
// that came up do not suit it.
class Instance {
public:
  Instance(uint64_t seed, DType dtype) : random_(seed), dtype_(dtype) {
    letters_.fill(kNoNode);
  }
  NodeId draw(const Pattern& p, Shape want);
  Shape random_shape() {
    Shape shape;
    for (int64_t rank = random_.between(2, 4); rank > 0; --rank)
      shape.push_back(random_.chance(35) ? 1 : random_.between(2, 4));
    return shape;
  }

  Rewriter r;
  std::vector<Tensor> inputs;

private:
  Tensor values(const Shape& shape) {
    std::vector<double> out;
    for (int64_t i = 0; i < element_count(shape); ++i) {
      if (dtype_ == DType::I32)
        out.push_back(double(random_.between(-9, 9)));
      else
        out.push_back(double(random_.between(2, 40)) / (random_.chance(50) ? 16 : -16));
    }
    return make_tensor(dtype_, shape, out);
  }
  // Some axes repeat, as those of a bias or a scale do.
  NodeId draw_known(const Shape& want) {
    Shape small = want;
    if (random_.chance(70))
      for (int64_t& extent : small)
        if (random_.chance(60)) extent = 1;
    const Tensor tensor = values(small);
    return expand(r.g, weight(r.g, dtype_, small, r.g.add_blob(tensor.bytes)), want);
  }
  NodeId draw_input(const Shape& want) {
    inputs.push_back(values(want));
    return r.g.add_input("x" + std::to_string(inputs.size()), dtype_, want);
  }
  NodeId draw_letter(const Pattern& p, const Shape& want) {
    return p.known ? draw_known(want) : draw_input(want);
  }
  NodeId draw_op(const Pattern& p, const Shape& want);
  NodeId draw_view(const Pattern& p, const Shape& want);
  NodeId draw_window(const Pattern& p, const Shape& want);
  NodeId draw_any_map(const Shape& want);

  Random random_;
  const DType dtype_;
  std::array<NodeId, rewrite::pattern::kLetters> letters_;
};

NodeId Instance::draw(const Pattern& p, Shape want) {
  const bool named = p.letter != rewrite::pattern::kNoLetter;
  if (named && letters_[p.letter] != kNoNode)
    return r.g[letters_[p.letter]].shape == want ? letters_[p.letter] : kNoNode;
  NodeId out = kNoNode;
  if (p.kind == Pattern::Kind::Any)
    out = draw_letter(p, want);
  else if (p.kind == Pattern::Kind::Op)
    out = draw_op(p, want);
  else
    out = constant_bits(r.g, dtype_, want, rewrite::bits_of(p, dtype_));
  if (named) letters_[p.letter] = out;
  return out;
}

// Functions, and functions under the views that rows look for below them.
NodeId Instance::draw_any_map(const Shape& want) {
  const auto operand = [&] {
    if (random_.chance(30)) return draw_known(want);
    if (random_.chance(50)) return draw_input(want);
    return draw_view(Pattern(random_.chance(50) ? Op::Permute : Op::Reshape,
                             {Pattern(rewrite::pattern::Letter{0})}),
                     want);
  };
  letters_[0] = kNoNode;
  const NodeId a = operand();
  letters_[0] = kNoNode;
  const NodeId b = random_.chance(30) ? a : operand();
  letters_[0] = kNoNode;
  if (a == kNoNode || b == kNoNode) return kNoNode;
  return random_.chance(30) ? map(r.g, Op::Neg, {a}) : map(r.g, Op::Mul, {a, b});
}

NodeId Instance::draw_op(const Pattern& p, const Shape& want) {
  if (p.any_map) return draw_any_map(want);
  if (p.any_inputs) return kNoNode; // of concat: random graphs reach them
  if (is_view(p.op) || is_reduce(p.op)) return draw_view(p, want);
  if (!is_map(p.op) || p.op == Op::Select || !map_is_defined(p.op, dtype_))
    return kNoNode;
  std::vector<NodeId> operands;
  for (const Pattern& input : p.inputs) {
    operands.push_back(draw(input, want));
    if (operands.back() == kNoNode) return kNoNode;
  }
  return map(r.g, p.op, std::move(operands));
}

// The last axis of what is wanted are the taps of another one.
NodeId Instance::draw_window(const Pattern& p, const Shape& want) {
  if (want.size() < 2) return kNoNode;
  Shape below(want.begin(), want.end() - 1);
  const auto axis = static_cast<size_t>(random_.below(int64_t(below.size())));
  const int64_t stride = random_.between(1, 2);
  below[axis] = (want[axis] - 1) * stride + want.back();
  const NodeId x = draw(p.inputs[0], below);
  return x == kNoNode ? x : window(r.g, x, int64_t(axis), want.back(), stride, 1);
}

NodeId Instance::draw_view(const Pattern& p, const Shape& want) {
  const size_t rank = want.size();
  if (p.op == Op::Window) return draw_window(p, want);
  Shape below = want, low(rank, 0), high(rank, 0);
  std::vector<int64_t> list(rank);
  for (size_t i = 0; i < rank; ++i) list[i] = int64_t(i);
  if (p.op == Op::Permute) {
    for (size_t i = rank; i-- > 1;)
      std::swap(list[i], list[size_t(random_.below(int64_t(i) + 1))]);
    for (size_t i = 0; i < rank; ++i) below[size_t(list[i])] = want[i];
  } else if (p.op == Op::Reshape) {
    // Neighbours become one axis, or an axis of extent 1 comes in.
    const auto at = size_t(random_.below(int64_t(rank)));
    if (at + 1 < rank && random_.chance(70)) {
      below[at] *= below[at + 1];
      below.erase(below.begin() + int64_t(at) + 1);
    } else {
      below.insert(below.begin() + int64_t(at), 1);
    }
  } else {
    const bool grows = is_reduce(p.op) || p.op == Op::Slice;
    std::erase_if(list, [&](int64_t axis) {
      const int64_t extent = want[size_t(axis)];
      return is_reduce(p.op) ? extent != 1 : random_.chance(40) || extent < 2;
    });
    if (list.empty()) return kNoNode;
    for (int64_t axis : list) {
      int64_t& extent = below[size_t(axis)];
      if (p.op == Op::Pad)
        extent -= 1, (random_.chance(50) ? low : high)[size_t(axis)] = 1;
      else if (grows)
        extent += random_.between(1, 3);
      else
        extent = 1; // expand
    }
  }
  const NodeId x = draw(p.inputs[0], below);
  if (x == kNoNode) return kNoNode;
  if (p.op == Op::Permute) return permute(r.g, x, list);
  if (p.op == Op::Reshape) return reshape(r.g, x, want);
  if (p.op == Op::Expand) return expand(r.g, x, want);
  if (p.op == Op::Pad) return pad(r.g, x, low, high, 0);
  if (p.op == Op::Slice) return slice(r.g, x, low, Shape(rank, 1), want);
  if (p.op == Op::ArgMin || p.op == Op::ArgMax) return kNoNode;
  return reduce(r.g, p.op, x, list);
}

// How often the row made something of the root, and what is wrong with it.
int check_row(const Equality& equality, uint64_t seed, DType dtype, std::string& why) {
  Instance instance(seed, dtype);
  const NodeId root = instance.draw(equality.rule.pattern, instance.random_shape());
  if (root == kNoNode) return 0;
  Rewriter& r = instance.r;
  // All that is worth folding is, and no rounding has to stay but where it is kept.
  r.fold_bytes = 1 << 20;
  r.keep_rounding = equality.keeps_rounding();
  int fired = 0;
  for (const rewrite::Found& found : find_all(equality.rule, r, root)) {
    std::vector<NodeId> replaced;
    const NodeId made = apply_at(equality.rule, r, found, replaced);
    if (made == kNoNode) continue;
    ++fired;
    Graph both = r.g;
    both.add_output("pattern", root);
    both.add_output("replacement", made);
    const Evaluated values = evaluate(both, instance.inputs);
    REQUIRE(values.failed == kNoNode);
    const bool loose = !equality.keeps_rounding() && is_float(dtype);
    why = compare_tensors(values.outputs[1], values.outputs[0], loose ? 1e-4 : 0,
                          loose ? 1e-4 : 0);
    if (!why.empty()) {
      why += "\n" + print_graph(both);
      return fired;
    }
  }
  return fired;
}

} // namespace

TEST_CASE("every equality keeps the values of what it is found at",
          "[egraph][property]") {
  std::map<std::pair<Family, std::string_view>, int> fired;
  for (const Equality& equality : equalities())
    for (DType dtype : {DType::F32, DType::I32})
      for (uint64_t seed = 1; seed <= 400; ++seed) {
        std::string why;
        const int times = check_row(equality, seed, dtype, why);
        INFO(name_of(equality.family) << " " << equality.rule.name << ", seed " << seed);
        REQUIRE(why == "");
        fired[{equality.family, equality.rule.name}] += times;
      }
  // Rules of simplify that look for an idiom are drawn with random graphs instead.
  for (const auto& [row, times] : fired) {
    if (row.first == Family::Rules || row.first == Family::Reversed) continue;
    INFO(name_of(row.first) << " " << row.second);
    CHECK(times >= 20);
  }
}

TEST_CASE("a rule holds the other way where its sides say all", "[egraph]") {
  std::map<std::string, int> back;
  for (const Equality& equality : equalities())
    if (equality.family == Family::Reversed) ++back[std::string(equality.rule.name)];
  CHECK(back.contains("add_negated")); // x - y is x + -y
  CHECK(back.contains("add_chain"));
  CHECK(back.contains("select_not"));
  CHECK(!back.contains("sub_self"));       // 0 does not say what x was
  CHECK(!back.contains("mul_erf"));        // a number that stands for several
  CHECK(!back.contains("permute_expand")); // a helper makes it
  CHECK(!back.contains("cast_of_cast"));   // the type in between is lost
}

TEST_CASE("every equality says whether it keeps the rounding", "[egraph]") {
  for (const Equality& equality : equalities()) {
    INFO(equality.rule.name);
    if (equality.family == Family::Factor || equality.family == Family::Split)
      CHECK(!equality.keeps_rounding());
    if (equality.family == Family::Transpose) CHECK(equality.keeps_rounding());
  }
}
