// One analysis finds every sum of products, in whatever views it is written.
#include "compiler/contraction/contraction.h"
#include "compiler/ir/build.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/random_operand.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>

using namespace svod;
using namespace svod::test;

namespace {

std::string sorted_extents(const Contraction& c, std::vector<size_t> axes) {
  Shape extents;
  for (size_t axis : axes) extents.push_back(c.axes[axis].extent);
  std::ranges::sort(extents);
  std::string out;
  for (int64_t extent : extents) out += " " + std::to_string(extent);
  return out;
}

// What does not depend on the order of loops and operands.
std::string facts(const Contraction& c) {
  std::string out = "batch" + sorted_extents(c, c.batch) + ", rows" +
                    sorted_extents(c, c.rows) + ", columns" +
                    sorted_extents(c, c.columns) + ", reduced" +
                    sorted_extents(c, c.reduced);
  std::vector<std::string> windows;
  for (const AxisWindow& w : c.windows)
    windows.push_back(", " + std::to_string(c.axes[w.position].extent) + " by " +
                      std::to_string(c.axes[w.tap].extent) + " stride " +
                      std::to_string(w.stride) + " dilation " +
                      std::to_string(w.dilation) + " pad " + std::to_string(w.low) + "+" +
                      std::to_string(w.high));
  std::ranges::sort(windows);
  for (const std::string& window : windows) out += window;
  return out + (c.left().known ? " of known" : "") + (c.right().known ? " by known" : "");
}

std::string facts_of(const Graph& g, NodeId n) {
  while (g[n].op != Op::ReduceSum) n = g[n].inputs[0];
  std::string refusal;
  const auto c = read_contraction(g, n, &refusal);
  return c ? facts(*c) : refusal;
}

NodeId known(Graph& g, const Shape& shape) {
  Random random(static_cast<uint64_t>(element_count(shape)));
  return weight(g, DType::F32, shape, g.add_blob(random_tensor(random, shape).bytes));
}

Payload axes_from(int64_t first, int64_t end) {
  Payload axes;
  for (; first < end; ++first) axes.push_back(first);
  return axes;
}

NodeId sum_of_products(Graph& g, NodeId a, NodeId b, const Payload& axes) {
  return reduce(g, Op::ReduceSum, broadcast_map(g, Op::Mul, {a, b}), axes);
}

// Windows over every axis but batch and channels.
struct Layer {
  Shape input, taps; // [N, C, extents]
  int64_t outputs, groups = 1, stride = 1, dilation = 1, low = 0, high = 0;
};

NodeId windows_of(Graph& g, const Layer& l, NodeId x, int64_t first) {
  const auto rank = g[x].shape.size();
  Shape low(rank, 0), high = low;
  for (size_t i = 0; i < l.taps.size(); ++i)
    low[first + i] = l.low, high[first + i] = l.high;
  x = pad(g, x, low, high, 0);
  for (size_t i = 0; i < l.taps.size(); ++i)
    x = window(g, x, first + int64_t(i), l.taps[i], l.stride, l.dilation);
  return x;
}

// [N, OC, o.., C, k..], or [N, G, OC/G, o.., C/G, k..]: the importer's order.
NodeId as_imported(const Layer& l, Graph& g, bool turned = false) {
  const auto r = int64_t(l.taps.size());
  const int64_t channels = l.input[1] / l.groups;
  NodeId x = windows_of(g, l, g.add_input("x", DType::F32, l.input), 2);
  Shape place = {1, l.outputs};
  int64_t channel = 1;
  if (l.groups > 1) {
    Shape split = g[x].shape;
    split[1] = channels;
    split.insert(split.begin() + 1, l.groups);
    x = reshape(g, x, split);
    place = {1, l.groups, l.outputs / l.groups};
    channel = 2;
  }
  Payload order = axes_from(0, int64_t(g[x].shape.size()));
  std::rotate(order.begin() + channel, order.begin() + channel + 1,
              order.begin() + channel + 1 + r);
  x = unsqueeze(g, permute(g, x, order), channel);
  place.resize(place.size() + size_t(r), 1);
  place.push_back(channels);
  place.insert(place.end(), l.taps.begin(), l.taps.end());
  const NodeId w = known(g, place);
  const auto all = int64_t(place.size());
  return turned ? sum_of_products(g, w, x, axes_from(all - r - 1, all))
                : sum_of_products(g, x, w, axes_from(all - r - 1, all));
}

// Channels last, in the input and in the result.
NodeId channels_last(const Layer& l, Graph& g) {
  const auto r = int64_t(l.taps.size());
  Shape input = l.input;
  std::rotate(input.begin() + 1, input.begin() + 2, input.end());
  NodeId x = windows_of(g, l, g.add_input("x", DType::F32, input), 1);
  x = unsqueeze(g, x, 1 + r); // [N, o.., 1, C, k..]
  Shape place(size_t(1 + r), 1);
  place.insert(place.end(), {l.outputs, input.back()});
  place.insert(place.end(), l.taps.begin(), l.taps.end());
  return sum_of_products(g, x, known(g, place), axes_from(2 + r, 3 + 2 * r));
}

// A product of matrices: positions by what a window holds.
NodeId unrolled(const Layer& l, Graph& g) {
  const auto r = int64_t(l.taps.size());
  NodeId x = windows_of(g, l, g.add_input("x", DType::F32, l.input), 2);
  Payload order = {0};
  for (int64_t i = 0; i < r; ++i) order.push_back(2 + i);
  order.push_back(1);
  for (int64_t i = 0; i < r; ++i) order.push_back(2 + r + i);
  x = permute(g, x, order);
  const int64_t inside = l.input[1] * element_count(l.taps);
  x = reshape(g, x, {element_count(g[x].shape) / inside, inside});
  return matmul(g, x, permute(g, known(g, {l.outputs, inside}), {1, 0}));
}

// Each axis's windows are made one after the other, with pads of their own, and taps
// before positions.
NodeId step_by_step(const Layer& l, Graph& g) {
  const auto r = int64_t(l.taps.size());
  NodeId x = g.add_input("x", DType::F32, l.input);
  for (int64_t i = 0; i < r; ++i) {
    Layer one = l;
    one.taps = {l.taps[size_t(i)]};
    x = windows_of(g, one, x, 2 + i);
  }
  Payload order = axes_from(2 + r, 2 + 2 * r);
  order.insert(order.end(), {1, 0});
  for (int64_t i = 0; i < r; ++i) order.push_back(2 + i);
  x = unsqueeze(g, permute(g, x, order), r); // [k.., 1, C, N, o..]
  Shape place = l.taps;
  place.insert(place.end(), {l.outputs, l.input[1]});
  place.resize(size_t(3 + 2 * r), 1);
  Payload axes = axes_from(0, r);
  axes.push_back(r + 1);
  return sum_of_products(g, known(g, place), x, axes);
}

template <class Make> std::string written(Make make, bool simpler) {
  Graph g;
  const NodeId sum = make(g);
  if (!simpler) return facts_of(g, sum);
  g.add_output("y", sum);
  const Graph simple = rewrite::simplify(g);
  return facts_of(simple, simple.outputs()[0].node);
}

} // namespace

TEST_CASE("a convolution is the same in other words", "[contraction]") {
  struct Case {
    Layer layer;
    std::string facts;
  };
  for (const Case& c :
       {Case{{{2, 3, 9, 8}, {3, 3}, 5, 1, 1, 1, 1, 1},
             "batch, rows 2 8 9, columns 5, reduced 3 3 3, 8 by 3 stride 1 dilation 1 "
             "pad 1+1, 9 by 3 stride 1 dilation 1 pad 1+1 by known"},
        Case{{{2, 4, 11}, {3}, 5, 1, 2, 1, 1, 0},
             "batch, rows 2 5, columns 5, reduced 3 4, 5 by 3 stride 2 dilation 1 pad "
             "1+0 by known"},
        Case{{{2, 4, 13}, {3}, 5, 1, 1, 4, 4, 4},
             "batch, rows 2 13, columns 5, reduced 3 4, 13 by 3 stride 1 dilation 4 pad "
             "4+4 by known"},
        Case{{{2, 3, 5, 6, 7}, {2, 3, 2}, 4, 1, 1, 1, 1, 1},
             "batch, rows 2 6 6 8, columns 4, reduced 2 2 3 3, 6 by 2 stride 1 dilation "
             "1 pad 1+1, 6 by 3 stride 1 dilation 1 pad 1+1, 8 by 2 stride 1 dilation 1 "
             "pad 1+1 by known"}})
    for (bool simpler : {false, true}) {
      INFO(c.facts << (simpler ? ", simplified" : ""));
      const Layer& l = c.layer;
      CHECK(written([&](Graph& g) { return as_imported(l, g); }, simpler) == c.facts);
      CHECK(written([&](Graph& g) { return as_imported(l, g, true); }, simpler) ==
            c.facts);
      CHECK(written([&](Graph& g) { return channels_last(l, g); }, simpler) == c.facts);
      CHECK(written([&](Graph& g) { return unrolled(l, g); }, simpler) == c.facts);
      CHECK(written([&](Graph& g) { return step_by_step(l, g); }, simpler) == c.facts);
    }
}

TEST_CASE("groups and depthwise layers have a batch of channels", "[contraction]") {
  for (bool simpler : {false, true}) {
    CHECK(
        written(
            [](Graph& g) { return as_imported({{2, 8, 9}, {3}, 12, 4, 1, 1, 1, 1}, g); },
            simpler) ==
        "batch 4, rows 2 9, columns 3, reduced 2 3, 9 by 3 stride 1 dilation 1 pad 1+1 "
        "by known");
    CHECK(written(
              [](Graph& g) { return as_imported({{2, 8, 9}, {3}, 8, 8, 2, 1, 1, 1}, g); },
              simpler) ==
          "batch 8, rows 2 5, columns, reduced 3, 5 by 3 stride 2 dilation 1 pad 1+1 by "
          "known");
  }
}

TEST_CASE("a product of matrices is the same in other words", "[contraction]") {
  const std::string want = "batch, rows 2 5, columns 4, reduced 6 by known";
  const auto flat = [](Graph& g) {
    NodeId x = reshape(g, g.add_input("x", DType::F32, {2, 5, 6}), {10, 6});
    return matmul(g, x, known(g, {6, 4}));
  };
  const auto batched = [](Graph& g) {
    return matmul(g, g.add_input("x", DType::F32, {2, 5, 6}), known(g, {6, 4}));
  };
  const auto transposed = [](Graph& g) { // w x instead of x w
    NodeId x = permute(g, g.add_input("x", DType::F32, {2, 5, 6}), {0, 2, 1});
    return matmul(g, known(g, {4, 6}), x);
  };
  for (bool simpler : {false, true}) {
    CHECK(written(flat, simpler) == want);
    CHECK(written(batched, simpler) == want);
    CHECK(written(transposed, simpler) == want);
  }
  const auto scores = [](Graph& g) {
    NodeId q = g.add_input("q", DType::F32, {2, 7, 3, 8}); // [batch, tokens, heads, ..]
    NodeId k = g.add_input("k", DType::F32, {2, 9, 3, 8});
    return matmul(g, permute(g, q, {0, 2, 1, 3}), permute(g, k, {0, 2, 3, 1}));
  };
  const auto scores_of_one_batch = [](Graph& g) {
    NodeId q = g.add_input("q", DType::F32, {2, 7, 3, 8});
    NodeId k = g.add_input("k", DType::F32, {2, 9, 3, 8});
    q = reshape(g, permute(g, q, {0, 2, 1, 3}), {6, 7, 8});
    k = reshape(g, permute(g, k, {0, 2, 1, 3}), {6, 9, 8});
    return matmul(g, q, permute_last_two(g, k));
  };
  CHECK(written(scores, false) == "batch 2 3, rows 7, columns 9, reduced 8");
  CHECK(written(scores_of_one_batch, false) == "batch 2 3, rows 7, columns 9, reduced 8");
}

TEST_CASE("bytes that are widened are an operand's elements", "[contraction]") {
  Graph g;
  NodeId x = cast(g, g.add_input("x", DType::U8, {5, 6}), DType::I32);
  NodeId w = cast(g, g.add_input("w", DType::I8, {6, 4}), DType::I32);
  NodeId n = matmul(g, x, w);
  while (g[n].op != Op::ReduceSum) n = g[n].inputs[0];
  const auto c = read_contraction(g, n);
  REQUIRE(c);
  CHECK(g[c->left().source()].dtype == DType::U8);
  CHECK(print(g, *c) == "i32 of u8 and i8 rows 5 columns 4 reduced 6");
}

TEST_CASE("what is no contraction is refused with the reason", "[contraction]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4, 5});
  const NodeId y = g.add_input("y", DType::F32, {4, 5});
  const auto why = [&](NodeId n) {
    std::string refusal;
    CHECK(!read_contraction(g, n, &refusal));
    return refusal;
  };
  CHECK(why(x) == "it is no sum over axes");
  CHECK(why(reduce(g, Op::ReduceMax, map(g, Op::Mul, {x, y}), {1})) ==
        "it is no sum over axes");
  CHECK(why(reduce(g, Op::ReduceSum, map(g, Op::Add, {x, y}), {1})) ==
        "what is summed up is no product");
  const NodeId dot = reduce(g, Op::ReduceSum, map(g, Op::Mul, {x, y}), {1});
  CHECK(why(dot) == "each element of both operands is in one product only");
  CHECK(read_sum_of_products(g, dot));
  // A border is no second use.
  const NodeId wide = pad(g, x, {0, 1}, {0, 1}, 0);
  const NodeId z = g.add_input("z", DType::F32, {4, 7});
  CHECK(why(reduce(g, Op::ReduceSum, map(g, Op::Mul, {wide, z}), {1})) ==
        "each element of both operands is in one product only");
}

// The sum as the contraction's own maps give it, from any view of each operand.
TEST_CASE("maps of random views read what the graph reads", "[contraction][property]") {
  int cuts = 0, guards = 0, deep = 0;
  for (uint64_t seed = 1; seed <= 600; ++seed) {
    INFO("seed " << seed);
    Random random(seed);
    RandomGraph drawn;
    const NodeId sum = random_sum_of_products(random, drawn);
    const auto c = read_sum_of_products(drawn.graph, sum);
    REQUIRE(c);
    drawn.graph.add_output("sum", sum);
    for (const Operand& operand : c->operands)
      for (const OperandView& view : operand.views)
        drawn.graph.add_output("view", view.node);
    const std::vector<Tensor> values = evaluate(drawn.graph, drawn.inputs).outputs;
    size_t next = 1;
    for (const Operand& operand : c->operands) {
      const std::vector<float> whole = mapped_values(*c, operand.views[0], values[next]);
      for (const OperandView& view : operand.views) {
        if (view.map) CHECK(mapped_values(*c, view, values[next]) == whole);
        if (view.map) guards += int(view.map->guards.size());
        deep += view.map.has_value();
        ++next;
      }
    }
    cuts += c->axes.size() > drawn.graph[c->product].shape.size();
    std::vector<float> got(values[0].bytes.size() / 4);
    std::memcpy(got.data(), values[0].bytes.data(), values[0].bytes.size());
    CHECK(summed(drawn.graph, *c, values[1], values[1 + c->left().views.size()]) == got);
  }
  // The draw meets what it is for.
  CHECK(cuts > 50);
  CHECK(guards > 100);
  CHECK(deep > 2500);
}
