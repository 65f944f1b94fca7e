// Index arithmetic against counting, and how many kernels known graphs become.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/kernel/index.h"
#include "compiler/optimize/choose.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;

static int64_t floor_quotient(int64_t a, int64_t b) {
  return a / b - (a % b < 0 ? 1 : 0);
}

static int64_t value_of(const IndexPool& pool, const Index& index,
                        const std::vector<int64_t>& at) {
  int64_t sum = index.constant;
  for (auto [id, factor] : index.terms) {
    const Term& t = pool.term(id);
    int64_t of = t.kind == Term::Kind::Axis ? at[t.id] : value_of(pool, t.of, at);
    int64_t quotient = t.kind == Term::Kind::Axis ? 0 : floor_quotient(of, t.divisor);
    if (t.kind == Term::Kind::Div) of = quotient;
    if (t.kind == Term::Kind::Mod) of -= quotient * t.divisor;
    sum += factor * of;
  }
  return sum;
}

TEST_CASE("quotients and remainders keep their values", "[fuse][property]") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    Random random(seed);
    IndexPool pool;
    std::vector<int64_t> extents;
    for (int i = 0; i < 3; ++i) {
      extents.push_back(random.between(1, 6));
      pool.add_axis(extents.back());
    }
    // Each index with what it must be at every position.
    struct Known {
      Index index;
      std::function<int64_t(const std::vector<int64_t>&)> value;
    };
    std::vector<Known> known;
    for (AxisId a = 0; a < 3; ++a)
      known.push_back({pool.axis(a), [a](const auto& at) { return at[a]; }});
    for (int i = 0; i < 8; ++i) {
      Known x = known[random.below(static_cast<int64_t>(known.size()))];
      Known y = known[random.below(static_cast<int64_t>(known.size()))];
      int64_t n = random.between(1, 8), c = random.between(-4, 4);
      auto f = x.value, h = y.value;
      switch (random.below(3)) {
      case 0:
        known.push_back(
            {pool.div(x.index, n), [=](auto& at) { return floor_quotient(f(at), n); }});
        break;
      case 1:
        known.push_back({pool.mod(x.index, n),
                         [=](auto& at) { return f(at) - n * floor_quotient(f(at), n); }});
        break;
      default:
        Index sum = IndexPool::add(IndexPool::scale(x.index, n), y.index);
        known.push_back({pool.recombine(IndexPool::add(sum, IndexPool::constant(c))),
                         [=](auto& at) { return n * f(at) + h(at) + c; }});
      }
    }
    INFO("seed " << seed);
    std::vector<int64_t> at(3);
    for (at[0] = 0; at[0] < extents[0]; ++at[0])
      for (at[1] = 0; at[1] < extents[1]; ++at[1])
        for (at[2] = 0; at[2] < extents[2]; ++at[2])
          for (const Known& k : known) {
            int64_t got = value_of(pool, k.index, at);
            Range r = pool.range(k.index);
            REQUIRE(got == k.value(at));
            REQUIRE(got >= r.low);
            REQUIRE(got <= r.high);
          }
  }
}

// Six heads on either side of a cut, of which the second ones begin in another matrix.
TEST_CASE("a quotient that grows once along an axis of two positions is the axis",
          "[fuse]") {
  IndexPool pool;
  const Index side = pool.axis(pool.add_axis(2)), within = pool.axis(pool.add_axis(384));
  const Index at =
      IndexPool::add(IndexPool::add(IndexPool::scale(side, 384), within), {768, {}});
  CHECK(pool.div(at, 1152) == side);
  CHECK(pool.mod(at, 1152) == IndexPool::add(at, IndexPool::scale(side, -1152)));
}

// x / d mod e and so on, as views write the offset of a position in merged axes.
static Index offset_in(IndexPool& pool, const Shape& shape, const Index& x) {
  Index offset, rest = x;
  int64_t stride = 1;
  for (size_t i = shape.size(); i-- > 0;) {
    Index at = i == 0 ? rest : pool.mod(rest, shape[i]);
    offset = IndexPool::add(offset, IndexPool::scale(at, stride));
    stride *= shape[i];
    rest = pool.div(rest, shape[i]);
  }
  return pool.recombine(offset);
}

TEST_CASE("merged axes recombine, however many", "[fuse]") {
  const std::vector<Shape> shapes{{6, 7}, {64, 56, 56}, {3, 5, 5, 5}, {2, 4, 4, 8}};
  for (const Shape& shape : shapes) {
    IndexPool pool;
    AxisId axis = pool.add_axis(element_count(shape));
    CHECK(offset_in(pool, shape, pool.axis(axis)) == pool.axis(axis));
  }
}

static size_t kernels_of(Graph& g, NodeId result) {
  g.add_output("y", result);
  FusedGraph fused = fuse(rewrite::simplify(g), *find_target("native"));
  UNSCOPED_INFO(print(fused));
  return fused.kernels.size();
}

static NodeId known(Graph& g, Shape shape) {
  // All different: equal numbers would be one constant.
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<double>(i) / 64;
  Tensor t = make_tensor(DType::F32, shape, values);
  return weight(g, DType::F32, shape, g.add_blob(std::move(t.bytes)));
}

static NodeId softmax(Graph& g, NodeId x) {
  Shape shape = g[x].shape;
  auto last = static_cast<int64_t>(shape.size()) - 1;
  NodeId most = expand(g, reduce(g, Op::ReduceMax, x, {last}), shape);
  NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, most})});
  NodeId sum = expand(g, reduce(g, Op::ReduceSum, e, {last}), shape);
  return map(g, Op::Div, {e, sum});
}

TEST_CASE("softmax is one kernel", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {8, 50});
  CHECK(kernels_of(g, softmax(g, x)) == 1);
}

TEST_CASE("a layer normalisation is one kernel", "[fuse]") {
  Graph g;
  Shape shape{8, 48};
  NodeId x = g.add_input("x", DType::F32, shape);
  auto mean = [&](NodeId of) {
    NodeId sum = reduce(g, Op::ReduceSum, of, {1});
    NodeId count = constant(g, DType::F32, {8, 1}, 1.0 / 48);
    return map(g, Op::Mul, {sum, count});
  };
  NodeId centred = map(g, Op::Sub, {x, expand(g, mean(x), shape)});
  NodeId variance = mean(map(g, Op::Mul, {centred, centred}));
  NodeId small = constant(g, DType::F32, {8, 1}, 1e-5);
  NodeId deviation = map(g, Op::Sqrt, {map(g, Op::Add, {variance, small})});
  NodeId y = map(g, Op::Div, {centred, expand(g, deviation, shape)});
  y = broadcast_map(g, Op::Mul, {y, known(g, {48})});
  CHECK(kernels_of(g, broadcast_map(g, Op::Add, {y, known(g, {48})})) == 1);
}

TEST_CASE("a convolution takes its bias and activation in", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 8, 20});
  NodeId seen = unsqueeze(g, permute(g, window(g, x, 2, 3, 1, 1), {0, 2, 1, 3}), 1);
  NodeId weights = known(g, {1, 16, 1, 8, 3});
  NodeId product = broadcast_map(g, Op::Mul, {seen, weights});
  NodeId sum = squeeze_axes(g, reduce(g, Op::ReduceSum, product, {3, 4}), {3, 4});
  NodeId biased = broadcast_map(g, Op::Add, {sum, known(g, {16, 1})});
  NodeId zero = constant(g, DType::F32, g[biased].shape, 0);
  CHECK(kernels_of(g, map(g, Op::Max, {biased, zero})) == 1);
}

TEST_CASE("attention is at most four kernels", "[fuse]") {
  Graph g;
  NodeId q = g.add_input("q", DType::F32, {2, 4, 16, 8});
  NodeId k = g.add_input("k", DType::F32, {2, 4, 16, 8});
  NodeId v = g.add_input("v", DType::F32, {2, 4, 16, 8});
  NodeId scores = matmul(g, q, permute_last_two(g, k));
  NodeId scaled =
      map(g, Op::Mul, {scores, constant(g, DType::F32, g[scores].shape, 0.25)});
  CHECK(kernels_of(g, matmul(g, softmax(g, scaled), v)) <= 4);
}

// The only kernel of a graph.
static ScheduledKernel kernel_of(Graph& g, NodeId result, bool direct_only = false) {
  g.add_output("y", result);
  FusedGraph fused = fuse(rewrite::simplify(g), *find_target("native"), direct_only);
  UNSCOPED_INFO(print(fused));
  REQUIRE(fused.kernels.size() == 1);
  return fused.kernels[0];
}

TEST_CASE("an elementwise map crosses its axes as one", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 6, 10, 10});
  ScheduledKernel k = kernel_of(g, map(g, Op::Exp, {x}));
  CHECK(k.loops.outer.size() == 2);
  CHECK(k.has_lane_axis());
}

TEST_CASE("a reduction crosses neighbouring axes as one", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 6, 10, 12});
  ScheduledKernel whole = kernel_of(g, reduce(g, Op::ReduceMax, x, {2, 3}));
  // Over 120 elements: vectors, of which the last is no whole one.
  REQUIRE(whole.stages[0].inner.size() == 2);
  CHECK(whole.indices.extent(whole.stages[0].inner[0]) == 8);
  // Axes with another one between them stay apart.
  Graph h;
  NodeId y = h.add_input("y", DType::F32, {2, 6, 10, 12});
  ScheduledKernel apart = kernel_of(h, reduce(h, Op::ReduceMax, y, {1, 3}));
  CHECK(apart.stages[0].inner.size() == 3);
}

TEST_CASE("a row times a matrix reads few panels side by side", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 256});
  ScheduledKernel k = kernel_of(g, matmul(g, x, known(g, {256, 1024})));
  const Target target = *find_target("native");
  for (const Level& level : target.levels) {
    int streams = 1;
    for (const auto& [axis, count] : optimize::choose_tile(k, level).counts)
      streams *= count;
    CHECK(streams > 1);
    CHECK(streams <= 4);
  }
}

TEST_CASE("rows of a prime number are cut into chunks too", "[fuse]") {
  for (int64_t rows : {149, 150}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {rows, 25, 64, 32});
    ScheduledKernel k =
        kernel_of(g, reduce(g, Op::ReduceSum, slice_axis(g, x, 1, 0, 24), {2}));
    int64_t most = 0;
    INFO(print(k));
    for (const ChunkAxis& c : k.loops.chunks)
      if (k.indices.extent(c.axis) == rows) most = c.block;
    CHECK(most > 0);
    CHECK(most <= rows / 4);
  }
}

// Sixteen panels of weights pass by all rows: beyond the caches in blocks of rows.
TEST_CASE("rows beyond the second cache are cut into blocks that stay in it", "[fuse]") {
  for (int64_t rows : {128, 512, 8192}) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {rows, 1024});
    ScheduledKernel k = kernel_of(g, matmul(g, x, known(g, {1024, 256})), true);
    INFO(print(k));
    REQUIRE(!k.loops.chunks.empty());
    const ChunkAxis first = k.loops.chunks[0];
    const Machine m = find_target("native")->machine();
    const bool blocked = k.indices.extent(first.axis) == rows &&
                         first.block * 1024 * 4 <= m.second.bytes / 4;
    CHECK(blocked == (rows * 1024 * 4 > m.second.bytes));
  }
}

TEST_CASE("an axis of one element does not join its neighbours", "[fuse]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {6, 20, 56});
  ScheduledKernel k = kernel_of(g, reduce(g, Op::ReduceMax, x, {1}));
  REQUIRE(k.has_lane_axis());
  int64_t stride = 0;
  CHECK(k.indices.affine_in(k.stages.back().index, *k.loops.lane, stride));
  CHECK(stride == 1);
}

TEST_CASE("known positions are checked when packing", "[fuse]") {
  auto checks = [](const std::vector<int64_t>& positions) {
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {4, 20, 6});
    const auto count = static_cast<int64_t>(positions.size());
    NodeId at = tensor_i64(g, {1, count, 1}, positions);
    ScheduledKernel k = kernel_of(g, gather(g, x, expand(g, at, {4, count, 6}), 1));
    return std::ranges::count(k.exprs, Expr::Kind::Checked, &Expr::kind);
  };
  CHECK(checks({3, 0, 19, 7}) == 0);
  CHECK(checks({3, 0, 20, 7}) == 1);
  CHECK(checks({3, -1, 19, 7}) == 1);
}

// A join whose parts are joins along other axes: each part's kernel writes where it lies.
TEST_CASE("joins of joins are written in place", "[fuse]") {
  Graph g;
  std::vector<NodeId> rows;
  for (int64_t height : {4, 1}) {
    std::vector<NodeId> columns;
    for (int64_t width : {4, 1}) {
      const std::string name = std::to_string(height) + "x" + std::to_string(width);
      NodeId x = g.add_input(name, DType::F32, {2, 3, height, width});
      columns.push_back(map(g, Op::Sqrt, {x}));
    }
    rows.push_back(concat(g, columns, 3));
  }
  g.add_output("y", concat(g, rows, 2));
  FusedGraph f = fuse(g, *find_target("native"));
  CHECK(f.kernels.size() == 4);
  CHECK(f.buffers.size() == 5);
}
