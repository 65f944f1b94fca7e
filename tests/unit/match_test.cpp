// The pattern language of rules.def: what fits, in which orders, and over values that
// have several forms.
#include "compiler/ir/build.h"
#include "compiler/rewrite/rule_parts.h"

#include <catch2/catch.hpp>

#include <map>

using namespace svod;
using namespace svod::rewrite;

namespace {

// Of each way in which the pattern fits, what x and y are.
std::vector<std::pair<NodeId, NodeId>>
ways(const Forms& forms, const pattern::Pattern& pattern, NodeId root) {
  std::vector<std::pair<NodeId, NodeId>> out;
  match(forms, pattern, root, [&](const Found& found) {
    out.push_back({found.letters[0], found.letters[1]});
    return false;
  });
  return out;
}

// A graph of which some nodes are known to have the same value.
class Classes : public GraphForms {
public:
  explicit Classes(const Graph& graph) : GraphForms(graph) {}
  std::span<const NodeId> of(const NodeId& id) const override {
    const auto found = forms.find(id);
    return found == forms.end() ? GraphForms::of(id) : found->second;
  }
  std::map<NodeId, std::vector<NodeId>> forms;
};

struct Numbers {
  Graph g;
  NodeId a = g.add_input("a", DType::F32, {4}), b = g.add_input("b", DType::F32, {4});
  NodeId two = constant(g, DType::F32, {4}, 2);
  NodeId sum = map(g, Op::Add, {a, b}), twice = map(g, Op::Mul, {a, two});
  NodeId square = map(g, Op::Mul, {sum, sum});
};

} // namespace

TEST_CASE("operands that may be swapped are tried in both orders", "[rewrite][match]") {
  using namespace pattern;
  Numbers n;
  const GraphForms forms(n.g);
  CHECK(ways(forms, x + y, n.sum) ==
        std::vector<std::pair<NodeId, NodeId>>{{n.a, n.b}, {n.b, n.a}});
  CHECK(ways(forms, x * 2, n.twice) ==
        std::vector<std::pair<NodeId, NodeId>>{{n.a, kNoNode}});
  CHECK(ways(forms, 2 * x, n.twice).size() == 1);
  CHECK(ways(forms, x * c, n.twice).size() == 1); // a is not known
  CHECK(ways(forms, x - y, map(n.g, Op::Sub, {n.a, n.b})).size() == 1);
  CHECK(ways(forms, x * 3, n.twice).empty());
  CHECK(ways(forms, x + y, n.twice).empty());
}

TEST_CASE("a letter is one node", "[rewrite][match]") {
  using namespace pattern;
  Numbers n;
  const GraphForms forms(n.g);
  CHECK(ways(forms, x * x, n.square).size() == 2); // as written and swapped
  CHECK(ways(forms, x * x, n.twice).empty());
  CHECK(ways(forms, y(x + z) * y, n.square).size() == 4); // either order, of each op
  CHECK(ways(forms, y(x * z) * y, n.square).empty());
}

TEST_CASE("a pattern finds any form of a value", "[rewrite][match]") {
  using namespace pattern;
  Numbers n;
  Classes forms(n.g);
  const NodeId again = map(n.g, Op::Add, {n.a, n.a}),
               negated = map(n.g, Op::Neg, {again});
  CHECK(ways(forms, -(x * 2), negated).empty());
  forms.forms[again] = {again, n.twice};
  CHECK(ways(forms, -(x * 2), negated) ==
        std::vector<std::pair<NodeId, NodeId>>{{n.a, kNoNode}});
  CHECK(ways(forms, -(x + x), negated).size() == 2);
}

TEST_CASE("a rule leaves alone what is known as a whole", "[rewrite][match]") {
  Rewriter r;
  std::vector<float> values{1, 2, 3, 4};
  const NodeId w = tensor_f32(r.g, {4}, values), x = r.g.add_input("x", DType::F32, {4});
  const Rule rule("example", pattern::x / pattern::c,
                  pattern::x * pattern::reciprocal(pattern::c), always);
  std::vector<NodeId> replaced;
  const NodeId quotient = r.g.intern({Op::Div, DType::F32, {4}, {}, {w, w}});
  CHECK(apply(rule, r, quotient, replaced) == kNoNode);
  const NodeId product = apply(rule, r, map(r.g, Op::Div, {x, w}), replaced);
  REQUIRE(product != kNoNode);
  CHECK(r.g[product].op == Op::Mul);
  CHECK(r.g[r.g[product].inputs[1]].op == Op::Weight);
}

TEST_CASE("a condition that fails makes the matcher try on", "[rewrite][match]") {
  using namespace pattern;
  Rewriter r;
  const NodeId a = r.g.add_input("a", DType::F32, {4});
  const NodeId b = r.g.add_input("b", DType::F32, {4});
  const NodeId total =
      map(r.g, Op::Add, {map(r.g, Op::Mul, {a, b}), map(r.g, Op::Exp, {a})});
  const Rule rule("example", x + y, x - y, is_product(y));
  std::vector<NodeId> replaced;
  const NodeId difference = apply(rule, r, total, replaced);
  REQUIRE(difference != kNoNode);
  CHECK(r.g[r.g[difference].inputs[0]].op == Op::Exp);
}
