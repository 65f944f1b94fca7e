// A product that only a sum reads is one instruction with it, and the results are those
// of the evaluator.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/select/contract_products.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"

#include <catch2/catch.hpp>

#include <array>
#include <functional>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

namespace {

// y = make(a, b, c), vectors of 40 numbers.
using Make = std::function<NodeId(Graph&, NodeId, NodeId, NodeId)>;

RandomGraph graph_of(DType dtype, const Make& make) {
  RandomGraph out;
  Graph& g = out.graph;
  std::array<NodeId, 3> in{};
  for (int i = 0; i < 3; ++i) {
    std::vector<double> values(40);
    for (size_t j = 0; j < values.size(); ++j)
      values[j] = double(j * 7919 % 101 + 17 * static_cast<size_t>(i)) / 32 - 1;
    in[i] = g.add_input(std::string(1, char('a' + i)), dtype, {40});
    out.inputs.push_back(make_tensor(dtype, {40}, values));
  }
  g.add_output("y", make(g, in[0], in[1], in[2]));
  out.tolerance.assign(g.size(), 1e-6);
  return out;
}

// How many sums are one with a product, and how many products are left.
std::pair<int64_t, int64_t> contracted(DType dtype, const Make& make) {
  FusedGraph fused = fuse(graph_of(dtype, make).graph, *find_target("native"));
  contract_products(fused);
  int64_t together = 0, products = 0;
  for (const Kernel& k : fused.kernels) {
    std::vector<bool> read(k.exprs.size());
    for (const Stage& s : k.stages) read[s.value] = true;
    for (const Expr& e : k.exprs)
      for (ExprId in : e.inputs) read[in] = true;
    for (ExprId id = 0; id < k.exprs.size(); ++id) {
      const Expr& e = k.exprs[id];
      if (e.kind != Expr::Kind::Map || !read[id]) continue;
      together += e.op == Op::MulAdd;
      products += e.op == Op::Mul;
    }
  }
  return {together, products};
}

NodeId sum(Graph& g, NodeId a, NodeId b) { return map(g, Op::Add, {a, b}); }
NodeId difference(Graph& g, NodeId a, NodeId b) { return map(g, Op::Sub, {a, b}); }
NodeId product(Graph& g, NodeId a, NodeId b) { return map(g, Op::Mul, {a, b}); }

const Make kSum = [](Graph& g, NodeId a, NodeId b, NodeId c) {
  return sum(g, c, product(g, a, b));
};
const Make kLess = [](Graph& g, NodeId a, NodeId b, NodeId c) {
  return difference(g, product(g, a, b), c);
};
const Make kFrom = [](Graph& g, NodeId a, NodeId b, NodeId c) {
  return difference(g, c, product(g, a, b));
};
const Make kBoth = [](Graph& g, NodeId a, NodeId b, NodeId c) {
  return difference(g, product(g, a, b), product(g, b, c));
};

} // namespace

TEST_CASE("products that only a sum reads are one with it", "[fuse]") {
  using Counts = std::pair<int64_t, int64_t>;
  CHECK(contracted(DType::F32, kSum) == Counts{1, 0});
  CHECK(contracted(DType::F64, kLess) == Counts{1, 0});
  CHECK(contracted(DType::F32, kFrom) == Counts{1, 0});
  CHECK(contracted(DType::F32, kBoth) == Counts{1, 1});
  CHECK(contracted(DType::I32, kSum) == Counts{0, 1});
  // Two read the product.
  CHECK(contracted(DType::F32, [](Graph& g, NodeId a, NodeId b, NodeId c) {
          const NodeId p = product(g, a, b);
          return map(g, Op::Max, {sum(g, p, c), p});
        }) == Counts{0, 1});
}

TEST_CASE("what is rounded to integers later keeps its rounding", "[fuse]") {
  using Counts = std::pair<int64_t, int64_t>;
  CHECK(contracted(DType::F32, [](Graph& g, NodeId a, NodeId b, NodeId c) {
          return map(g, Op::Round, {kSum(g, a, b, c)});
        }) == Counts{0, 1});
  CHECK(contracted(DType::F32, [](Graph& g, NodeId a, NodeId b, NodeId c) {
          return cast(g, kSum(g, a, b, c), DType::I8);
        }) == Counts{0, 1});
  // Stored in between.
  CHECK(contracted(DType::F32, [](Graph& g, NodeId a, NodeId b, NodeId c) {
          const NodeId stored = kSum(g, a, b, c);
          g.add_output("z", stored);
          return map(g, Op::Round, {stored});
        }).first == 0);
}

TEST_CASE("contracted products compute what the evaluator computes", "[kernels]") {
  for (const Make& make : {kSum, kLess, kFrom, kBoth})
    for (DType dtype : {DType::F32, DType::F64})
      CHECK(check_kernels(graph_of(dtype, make), *find_target("native")) == "");
}
