// All values are small whole numbers in floats (products are taken modulo 64), so every
// order of operations gives the same bits, however often a loop repeats them.
#include "tests/support/random_region.h"

#include "compiler/ir/build.h"
#include "compiler/ir/region.h"

#include <cstring>

namespace svod::test {

namespace {

constexpr int64_t kWidth = 5;
constexpr int64_t kLimit = 6;

// Where nodes are drawn: the main graph or a body.
struct Pool {
  Graph& g;
  std::vector<NodeId> rows, scalars; // f32[5], f32[]
};

class Drawer {
public:
  explicit Drawer(uint64_t seed) : random_(seed) {}

  RandomGraph run() {
    Pool pool{out_.graph, {}, {}};
    for (int i = 0; i < 2; ++i) {
      pool.rows.push_back(add_input({kWidth}));
      pool.scalars.push_back(add_input({}));
      tables_.push_back(add_input({kLimit, kWidth}));
    }
    for (int i = 0; i < 2; ++i) counts_.push_back(add_count());
    draw(pool, 5, 0);
    draw_loop(pool, 0);
    draw(pool, 4, 0);
    for (int i = 0; i < 3; ++i) {
      out_.graph.add_output("r" + std::to_string(i), recent(pool.rows));
      out_.graph.add_output("s" + std::to_string(i), recent(pool.scalars));
    }
    for (size_t i = 0; i < made_counts_.size(); ++i)
      out_.graph.add_output("c" + std::to_string(i), made_counts_[i]);
    out_.tolerance.assign(out_.graph.size(), 0);
    return std::move(out_);
  }

private:
  NodeId add_input(Shape shape) {
    Tensor value{DType::F32, shape, {}};
    for (int64_t i = element_count(shape); i > 0; --i) {
      auto x = static_cast<float>(random_.between(-9, 9));
      const auto* bytes = reinterpret_cast<const std::byte*>(&x);
      value.bytes.insert(value.bytes.end(), bytes, bytes + sizeof x);
    }
    return keep(std::move(value));
  }
  NodeId add_count() {
    Tensor value{DType::I64, {}, std::vector<std::byte>(8)};
    const int64_t count = random_.between(-1, kLimit);
    std::memcpy(value.bytes.data(), &count, sizeof count);
    return keep(std::move(value));
  }
  NodeId keep(Tensor value) {
    const NodeId id = out_.graph.add_input("x" + std::to_string(out_.inputs.size()),
                                           value.dtype, value.shape);
    out_.inputs.push_back(std::move(value));
    return id;
  }

  NodeId any(const std::vector<NodeId>& list) {
    return list[static_cast<size_t>(random_.below(static_cast<int64_t>(list.size())))];
  }
  NodeId recent(const std::vector<NodeId>& list) {
    const auto size = static_cast<int64_t>(list.size());
    return list[static_cast<size_t>(size - 1 -
                                    random_.below(std::min<int64_t>(size, 3)))];
  }

  static NodeId small(Graph& g, NodeId x) {
    return map(g, Op::Fmod, {x, constant(g, DType::F32, g[x].shape, 64)});
  }
  NodeId truth(Pool& pool) {
    Graph& g = pool.g;
    return map(g, Op::Less, {recent(pool.scalars), any(pool.scalars)});
  }
  // An index in [0, kWidth) from a scalar.
  NodeId index(Pool& pool) {
    Graph& g = pool.g;
    NodeId at = cast(g, any(pool.scalars), DType::I64);
    at = map(g, Op::Mod, {at, constant_int(g, DType::I64, {}, kWidth)});
    return reshape(g, at, {1});
  }
  NodeId wide(Pool& pool) { return broadcast_to(pool.g, recent(pool.scalars), {kWidth}); }

  void draw(Pool& pool, int nodes, int depth) {
    for (int i = 0; i < nodes; ++i) draw_one(pool, depth);
  }

  void draw_one(Pool& pool, int depth) {
    Graph& g = pool.g;
    const NodeId a = recent(pool.rows), b = any(pool.rows);
    switch (random_.below(10)) {
    case 0:
      return pool.rows.push_back(small(g, map(g, Op::Add, {a, b})));
    case 1:
      return pool.rows.push_back(small(g, map(g, Op::Mul, {a, wide(pool)})));
    case 2:
      return pool.rows.push_back(map(g, Op::Max, {a, b}));
    case 3:
      return pool.rows.push_back(slice(g, a, {kWidth - 1}, {-1}, {kWidth}));
    case 4: {
      const NodeId row = broadcast_to(g, reshape(g, a, {1, kWidth}), {kWidth, kWidth});
      const NodeId column = broadcast_to(g, reshape(g, b, {kWidth, 1}), {kWidth, kWidth});
      const NodeId sum = reduce(g, Op::ReduceSum, map(g, Op::Mul, {row, column}), {0});
      return pool.rows.push_back(small(g, reshape(g, sum, {kWidth})));
    }
    case 5:
      return pool.scalars.push_back(
          small(g, reshape(g, reduce(g, Op::ReduceSum, a, {0}), {})));
    case 6:
      return pool.scalars.push_back(reshape(g, gather(g, a, index(pool), 0), {}));
    case 7:
      return pool.rows.push_back(scatter(
          g, a, index(pool), reshape(g, any(pool.scalars), {1}), 0, Combiner::Set));
    case 8:
      return depth < 2 ? draw_loop(pool, depth) : draw_one(pool, depth);
    default:
      return depth < 3 ? draw_if(pool, depth) : draw_one(pool, depth);
    }
  }

  // A body's pool over new inputs for the captured values, which it lists.
  void capture(Pool& pool, Pool& body, std::vector<NodeId>& inputs) {
    for (int i = 0; i < 2; ++i) {
      inputs.push_back(any(pool.rows));
      body.rows.push_back(body.g.add_input("", DType::F32, {kWidth}));
      inputs.push_back(any(pool.scalars));
      body.scalars.push_back(body.g.add_input("", DType::F32, {}));
    }
    inputs.push_back(constant(pool.g, DType::F32, {}, 3));
    body.scalars.push_back(body.g.add_input("", DType::F32, {}));
  }

  void draw_if(Pool& pool, int depth) {
    std::vector<NodeId> inputs{truth(pool)};
    uint32_t bodies[2];
    std::vector<NodeId> captured;
    for (int b = 0; b < 2; ++b) {
      Graph graph;
      Pool body{graph, {}, {}};
      if (b == 0) {
        capture(pool, body, captured);
      } else { // the same operands
        for (NodeId id : captured) {
          const Node& node = pool.g[id];
          const NodeId in = graph.add_input("", node.dtype, node.shape);
          (node.shape.empty() ? body.scalars : body.rows).push_back(in);
        }
      }
      draw(body, static_cast<int>(random_.between(0, 4)), depth + 1);
      graph.add_output("", recent(body.rows));
      graph.add_output("", recent(body.scalars));
      graph.add_output("", any(body.rows));
      bodies[b] = pool.g.add_body(std::make_shared<const Graph>(std::move(graph)));
    }
    inputs.insert(inputs.end(), captured.begin(), captured.end());
    const NodeId region = branch(pool.g, bodies[0], bodies[1], std::move(inputs));
    pool.rows.push_back(result(pool.g, region, 0));
    if (random_.chance(70)) pool.scalars.push_back(result(pool.g, region, 1));
    if (random_.chance(70)) pool.rows.push_back(result(pool.g, region, 2));
  }

  void draw_loop(Pool& pool, int depth) {
    Graph& g = pool.g;
    Graph graph;
    Pool body{graph, {}, {}};
    LoopSpec spec;
    spec.limit = kLimit;
    spec.again = random_.chance(40);
    const bool top = depth == 0;
    const bool counted = !top || random_.chance(40);
    const NodeId count = counted
                             ? constant_int(g, DType::I64, {}, random_.between(0, kLimit))
                             : any(counts_);
    const NodeId start =
        random_.chance(20) ? truth(pool) : constant_int(g, DType::Bool, {}, 1);
    std::vector<NodeId> inputs{count, start};
    const NodeId iteration = graph.add_input("", DType::I64, {});
    body.scalars.push_back(cast(graph, iteration, DType::F32));
    const auto carry = [&](std::vector<NodeId>& from, std::vector<NodeId>& to,
                           const Shape& shape) {
      inputs.push_back(any(from));
      to.push_back(graph.add_input("", DType::F32, shape));
      ++spec.carried;
    };
    carry(pool.rows, body.rows, {kWidth});
    carry(pool.scalars, body.scalars, {});
    if (random_.chance(50)) carry(pool.rows, body.rows, {kWidth});
    if (top && random_.chance(60)) { // tables are in the main graph
      inputs.push_back(any(tables_));
      body.rows.push_back(graph.add_input("", DType::F32, {kWidth}));
      ++spec.sliced;
    }
    if (random_.chance(40)) {
      inputs.push_back(
          slice_axis(g, concat(g, {any(pool.rows), any(pool.rows)}, 0), 0, 0, kLimit));
      body.scalars.push_back(graph.add_input("", DType::F32, {}));
      ++spec.sliced;
    }
    capture(pool, body, inputs);
    draw(body, static_cast<int>(random_.between(1, 5)), depth + 1);
    if (spec.again) graph.add_output("", truth(body));
    for (int64_t k = 0; k < spec.carried; ++k)
      graph.add_output("", k == 1 ? recent(body.scalars) : recent(body.rows));
    graph.add_output("", recent(body.rows));
    graph.add_output("", any(body.scalars));
    for (int64_t k = 0; k < spec.sliced + 2; ++k)
      spec.reversed.push_back(random_.chance(30));
    spec.body = g.add_body(std::make_shared<const Graph>(std::move(graph)));
    use_loop(pool, spec, loop(g, spec, std::move(inputs)), top);
  }

  // Items that the loop did not reach are masked.
  NodeId reached(Graph& g, NodeId x, NodeId count, bool reversed) {
    const Shape shape = g[x].shape;
    NodeId at = iota(g, DType::I64, shape, 0);
    if (reversed) at = slice_reversed(g, at);
    const NodeId is_reached = map(g, Op::Less, {at, broadcast_to(g, count, shape)});
    return map(g, Op::Select, {is_reached, x, constant(g, DType::F32, shape, 1)});
  }
  static NodeId slice_reversed(Graph& g, NodeId x) {
    const Shape shape = g[x].shape;
    Shape start(shape.size(), 0), step(shape.size(), 1);
    start[0] = shape[0] - 1;
    step[0] = -1;
    return slice(g, x, start, step, shape);
  }

  void use_loop(Pool& pool, const LoopSpec& spec, NodeId region, bool top) {
    Graph& g = pool.g;
    if (top && random_.chance(50)) made_counts_.push_back(region);
    pool.rows.push_back(result(g, region, 0));
    if (random_.chance(70)) pool.scalars.push_back(result(g, region, 1));
    if (random_.chance(60)) {
      const bool reversed = spec.reversed[static_cast<size_t>(spec.sliced)] != 0;
      NodeId all = reached(g, result(g, region, spec.carried), region, reversed);
      all = reduce(g, Op::ReduceSum, all, {0});
      pool.rows.push_back(small(g, reshape(g, all, {kWidth})));
    }
    if (random_.chance(60)) {
      const bool reversed = spec.reversed[static_cast<size_t>(spec.sliced) + 1] != 0;
      NodeId all = reached(g, result(g, region, spec.carried + 1), region, reversed);
      pool.rows.push_back(slice_axis(g, all, 0, 1, kWidth));
    }
  }

  Random random_;
  RandomGraph out_;
  std::vector<NodeId> tables_, counts_, made_counts_;
};

} // namespace

RandomGraph random_region(uint64_t seed) { return Drawer(seed).run(); }

} // namespace svod::test
