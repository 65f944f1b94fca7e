// Winograd's form of a convolution against the direct one.
#include "compiler/ir/build.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline.h"
#include "compiler/select/forms/accuracy.h"
#include "compiler/select/forms/winograd.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace svod;
using namespace svod::select;
using namespace svod::test;

static Graph convolution(const Tensor& weights, int64_t height, int64_t width,
                         int64_t low, Convolution::Pair stride = {1, 1}) {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, weights.shape[1], height, width});
  g.add_output("y", convolve(g, x, weights, low, stride));
  return g;
}

TEST_CASE("winograd's form computes the same convolution", "[winograd]") {
  Random random(7);
  for (auto [height, width, low] :
       {std::array<int64_t, 3>{13, 18, 1}, {16, 16, 1}, {19, 15, 0}}) {
    Tensor weights = random_tensor(random, {32, 32, 3, 3});
    Graph direct = convolution(weights, height, width, low);
    Algorithms chosen = choose_algorithms(direct, *find_target("x86-64-v4"), false);
    REQUIRE(chosen.winograd == 1);
    REQUIRE(verify(chosen.graph).empty());
    Tensor x = random_tensor(random, {2, 32, height, width});
    Tensor want = evaluate(direct, {x}).outputs[0];
    Tensor got = evaluate(chosen.graph, {x}).outputs[0];
    CHECK(compare_tensors(got, want, 1e-4, 1e-4) == "");
    CHECK(choose_algorithms(direct, *find_target("x86-64-v4"), true).winograd == 0);
  }
}

// Few channels: vectors run over the tiles of a row. Channels that fill most of a vector
// leave the rest empty. Transposed and flattened, a result is stored first.
TEST_CASE("winograd with few channels, with many taps, and flattened", "[winograd]") {
  Random random(10);
  struct Case {
    Shape weights;
    int64_t height, width;
    bool flat;
  };
  for (const Case& c :
       {Case{{8, 8, 3, 27}, 12, 100, false}, Case{{13, 16, 5, 5}, 14, 14, false},
        Case{{12, 64, 3, 3}, 8, 9, true}}) {
    Tensor weights = random_tensor(random, c.weights);
    Graph g = convolution(weights, c.height, c.width, c.weights[3] > 9 ? 13 : 1);
    if (c.flat) {
      NodeId y = permute(g, g.outputs()[0].node, {0, 2, 3, 1});
      Shape s = g[y].shape;
      g.set_output(0, reshape(g, y, {s[0], s[1] * s[2] * 3, s[3] / 3}));
    }
    CompileOptions options;
    options.target = *find_target("native");
    Algorithms chosen = choose_algorithms(g, options.target, false);
    if (options.target.levels[0].lanes == 16) CHECK(chosen.winograd == 1);
    Tensor x = random_tensor(random, g[g.inputs()[0].node].shape);
    KernelRun run = run_kernels(compile(g, options), options.target, {x});
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], evaluate(g, {x}).outputs[0], 1e-3, 1e-3) == "");
  }
}

// One channel, an axis that is not shifted by one, and results that are parts of a larger
// tensor where their channels lie apart.
TEST_CASE("winograd of one channel, and beside strides", "[winograd]") {
  Random random(11);
  struct Case {
    Shape weights;
    int64_t height, width, stride;
  };
  for (const Case& c : {Case{{16, 1, 8, 8}, 40, 30, 1}, Case{{32, 8, 5, 5}, 60, 40, 3},
                        Case{{32, 1, 7, 7}, 30, 24, 3}}) {
    Tensor weights = random_tensor(random, c.weights);
    Graph g = convolution(weights, c.height, c.width, 1, {1, c.stride});
    NodeId y = g.outputs()[0].node;
    Shape other = g[y].shape;
    other[1] = 3;
    NodeId z = g.add_input("z", DType::F32, other);
    g.set_output(0, concat(g, {z, y}, 1));
    CompileOptions options;
    options.target = *find_target("native");
    if (options.target.levels[0].lanes == 16 && c.weights[2] != 7)
      CHECK(choose_algorithms(g, options.target, false).winograd == 1);
    std::vector<Tensor> inputs;
    for (const GraphInput& in : g.inputs())
      inputs.push_back(random_tensor(random, g[in.node].shape));
    KernelRun run = run_kernels(compile(g, options), options.target, inputs);
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], 1e-3, 1e-3) ==
          "");
  }
}

// A stride's phases are convolutions of their own, in kernels that write parts of one
// tensor: where the number of taps is a multiple of the stride, and where the last phases
// have a tap less.
TEST_CASE("winograd of strided convolutions runs", "[winograd][sweep]") {
  Random random(12);
  struct Case {
    Shape weights;
    int64_t height, width, low;
    Convolution::Pair stride;
  };
  for (const Case& c : swept({Case{{32, 32, 3, 3}, 33, 28, 1, {2, 2}},
                              Case{{32, 32, 5, 3}, 40, 21, 1, {3, 1}},
                              Case{{32, 20, 4, 4}, 28, 26, 1, {2, 2}},
                              Case{{48, 24, 3, 3}, 30, 31, 0, {2, 2}},
                              Case{{32, 16, 5, 5}, 29, 40, 1, {2, 2}},
                              Case{{16, 32, 7, 7}, 37, 30, 3, {2, 2}},
                              Case{{32, 32, 3, 3}, 21, 40, 1, {1, 2}}},
                             3)) {
    Tensor weights = random_tensor(random, c.weights);
    Graph g = convolution(weights, c.height, c.width, c.low, c.stride);
    CompileOptions options;
    options.target = *find_target("native");
    if (options.target.levels[0].lanes == 16)
      CHECK(choose_algorithms(g, options.target, false).winograd == 1);
    Tensor x = random_tensor(random, g[g.inputs()[0].node].shape);
    KernelRun run = run_kernels(compile(g, options), options.target, {x});
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], evaluate(g, {x}).outputs[0], 1e-3, 1e-3) == "");
  }
}

// Windows over one to three axes, with dilations: rows of their own, pictures summed up
// over a depth, and every d-th row and column.
static NodeId convolve_axes(Graph& g, NodeId x, const Tensor& weights, const Shape& low,
                            const Shape& stride, const Shape& dilation) {
  const auto rank = static_cast<int64_t>(low.size());
  Shape around = {0, 0}, order = {0}, place = {1, weights.shape[0]};
  around.insert(around.end(), low.begin(), low.end());
  x = pad(g, x, around, around, 0);
  for (int64_t i = 0; i < rank; ++i) {
    x = window(g, x, 2 + i, weights.shape[2 + i], stride[i], dilation[i]);
    order.push_back(2 + i);
  }
  order.push_back(1);
  for (int64_t i = 0; i < rank; ++i) order.push_back(2 + rank + i);
  place.resize(2 + rank, 1);
  place.insert(place.end(), weights.shape.begin() + 1, weights.shape.end());
  x = unsqueeze(g, permute(g, x, order), 1);
  Shape full = g[x].shape;
  full[1] = weights.shape[0];
  const NodeId w = weight(g, DType::F32, place, g.add_blob(weights.bytes));
  std::vector<int64_t> summed;
  for (size_t i = 2 + rank; i < full.size(); ++i)
    summed.push_back(static_cast<int64_t>(i));
  const NodeId y =
      reduce(g, Op::ReduceSum, map(g, Op::Mul, {expand(g, x, full), expand(g, w, full)}),
             summed);
  full.resize(2 + rank);
  return reshape(g, y, full);
}

TEST_CASE("winograd over one axis, three axes and with dilations", "[winograd][sweep]") {
  Random random(13);
  struct Case {
    Shape input, weights, low, stride, dilation;
    bool fast = true;
  };
  for (const Case& c : swept(
           {Case{{2, 32, 203}, {32, 32, 5}, {8}, {1}, {4}},
            Case{{1, 32, 40}, {32, 32, 3}, {2}, {2}, {2}, false},
            Case{{1, 32, 30, 17}, {32, 32, 3, 3}, {2, 1}, {1, 2}, {2, 1}},
            Case{{2, 16, 5, 14, 13}, {32, 16, 3, 3, 3}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
            Case{{1, 32, 203}, {48, 32, 5}, {2}, {1}, {1}},
            Case{{1, 48, 500}, {32, 48, 3}, {32}, {1}, {32}},
            Case{{1, 32, 120}, {32, 32, 4}, {1}, {2}, {1}},
            Case{{1, 32, 21, 26}, {32, 32, 3, 3}, {2, 3}, {1, 1}, {2, 3}},
            Case{{1, 16, 7, 13, 14}, {32, 16, 2, 3, 3}, {0, 1, 1}, {2, 1, 1}, {1, 1, 1}},
            Case{{1, 16, 6, 12, 20}, {32, 16, 3, 1, 5}, {1, 0, 2}, {1, 1, 1}, {1, 1, 1}},
            Case{{1, 32, 6, 14, 12},
                 {32, 32, 3, 3, 3},
                 {2, 1, 1},
                 {1, 1, 1},
                 {2, 1, 1},
                 false}},
           4)) {
    INFO("rank " << c.low.size() << ", batch " << c.input[0] << ", last extent "
                 << c.input.back());
    Graph g;
    NodeId x = g.add_input("x", DType::F32, c.input);
    NodeId y = convolve_axes(g, x, random_tensor(random, c.weights), c.low, c.stride,
                             c.dilation);
    g.add_output("y", map(g, Op::Max, {y, g.add_input("z", DType::F32, g[y].shape)}));
    CompileOptions options;
    options.target = *find_target("native");
    Algorithms chosen = choose_algorithms(g, options.target, false);
    if (options.target.levels[0].lanes == 16) CHECK((chosen.winograd == 1) == c.fast);
    REQUIRE(verify(chosen.graph).empty());
    std::vector<Tensor> inputs;
    for (const GraphInput& in : g.inputs())
      inputs.push_back(random_tensor(random, g[in.node].shape));
    const Tensor want = evaluate(g, inputs).outputs[0];
    CHECK(compare_tensors(evaluate(chosen.graph, inputs).outputs[0], want, 1e-3, 1e-3) ==
          "");
    KernelRun run = run_kernels(compile(g, options), options.target, inputs);
    REQUIRE(run.error == "");
    CHECK(compare_tensors(run.outputs[0], want, 1e-3, 1e-3) == "");
  }
}

// Two contractions meet in a residual; the tiles are stored, as sums that are roots.
TEST_CASE("winograd beside another contraction", "[winograd]") {
  Random random(12);
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {1, 16, 28, 12});
  NodeId y = convolve(g, x, random_tensor(random, {16, 16, 3, 3}), 1);
  NodeId z = convolve(g, x, random_tensor(random, {16, 16, 1, 1}), 0);
  g.add_output("y", map(g, Op::Add, {y, z}));
  CompileOptions options;
  options.target = *find_target("native");
  if (options.target.levels[0].lanes == 16)
    CHECK(choose_algorithms(g, options.target, false).winograd == 1);
  Tensor values = random_tensor(random, g[x].shape);
  KernelRun run = run_kernels(compile(g, options), options.target, {values});
  REQUIRE(run.error == "");
  CHECK(compare_tensors(run.outputs[0], evaluate(g, {values}).outputs[0], 1e-3, 1e-3) ==
        "");
}

// The pool's reduction cannot take in what is written out over positions of the result.
TEST_CASE("winograd under a pooling", "[winograd]") {
  Random random(8);
  Tensor weights = random_tensor(random, {32, 32, 3, 3});
  Graph g = convolution(weights, 16, 16, 1);
  NodeId y = g.outputs()[0].node;
  y = map(g, Op::Max, {y, constant(g, DType::F32, g[y].shape, 0)});
  y = window(g, window(g, y, 2, 2, 2, 1), 3, 2, 2, 1);
  g.set_output(0, reduce(g, Op::ReduceMax, y, {4, 5}));
  CompileOptions options;
  options.target = *find_target("native");
  Tensor x = random_tensor(random, {2, 32, 16, 16});
  KernelRun run = run_kernels(compile(g, options), options.target, {x});
  REQUIRE(run.error == "");
  CHECK(compare_tensors(run.outputs[0], evaluate(g, {x}).outputs[0], 1e-4, 1e-4) == "");
}

TEST_CASE("every form of winograd computes the same convolution", "[winograd]") {
  Random random(9);
  struct Case {
    Shape taps;
    Convolution::Pair outputs;
    Convolution::Pair parts = {1, 1};
    Convolution::Pair stride = {1, 1};
  };
  for (const Case& c :
       {Case{{3, 3}, {2, 2}}, Case{{3, 3}, {6, 4}}, Case{{3, 3}, {1, 4}},
        Case{{5, 5}, {4, 2}}, Case{{1, 7}, {1, 3}}, Case{{5, 1}, {6, 1}},
        Case{{3, 9}, {4, 1}}, Case{{3, 9}, {4, 3}, {1, 3}}, Case{{5, 8}, {2, 3}, {3, 3}},
        Case{{7, 1}, {4, 1}, {2, 1}}, Case{{3, 3}, {4, 4}, {1, 1}, {2, 2}},
        Case{{3, 3}, {2, 3}, {1, 1}, {2, 1}}, Case{{3, 3}, {3, 1}, {1, 1}, {2, 2}},
        Case{{4, 5}, {4, 2}, {1, 1}, {2, 2}}, Case{{8, 7}, {3, 4}, {1, 1}, {3, 2}},
        Case{{8, 7}, {2, 3}, {2, 2}, {2, 2}}, Case{{2, 2}, {1, 2}, {1, 1}, {2, 1}}}) {
    Tensor weights = random_tensor(random, {16, 16, c.taps[0], c.taps[1]});
    Graph direct = convolution(weights, 17, 14, 1, c.stride);
    std::optional<Convolution> conv;
    NodeId sum = kNoNode;
    for (NodeId n : direct.live_nodes())
      if (auto read = read_contraction(direct, n))
        if (auto found = match_convolution(direct, *read)) conv = found, sum = n;
    REQUIRE(conv);
    WinogradForm form{c.outputs, c.parts};
    CHECK(winograd_error(direct, *conv, form).largest < 1e-4);

    Algorithms out;
    Graph& g = out.graph;
    Shape shape = direct[direct.inputs()[0].node].shape;
    NodeId x = g.add_input("x", DType::F32, shape);
    x = pad(g, x, {0, 0, c.taps[0] > 1, c.taps[1] > 1},
            {0, 0, c.taps[0] > 1, c.taps[1] > 1}, 0);
    NodeId w = weight(g, DType::F32, conv->weight.shape, g.add_blob(weights.bytes));
    NodeId y = winograd(out, *conv, form, x, w, 16);
    REQUIRE(g[y].shape == direct[sum].shape);
    g.add_output("y", reshape(g, y, Shape(g[y].shape.begin(), g[y].shape.begin() + 4)));
    REQUIRE(verify(g).empty());
    Tensor input = random_tensor(random, shape);
    CHECK(compare_tensors(evaluate(g, {input}).outputs[0],
                          evaluate(direct, {input}).outputs[0], 1e-3, 1e-3) == "");
  }
}

// One after the other, the products of 256 channels err four times as much as the sum as
// it is written.
TEST_CASE("products of a fast form are summed in short blocks", "[winograd]") {
  Random random(12);
  const Tensor weights = random_tensor(random, {32, 256, 3, 3});
  const Graph direct = convolution(weights, 28, 28, 1);
  CompileOptions options;
  options.target = *find_target("x86-64-v4");
  const Algorithms chosen = choose_algorithms(direct, options.target, false);
  REQUIRE(chosen.winograd == 1);
  CHECK(chosen.sums.amplified.size() == 1);
  std::optional<Convolution> conv;
  for (NodeId n : direct.live_nodes())
    if (auto read = read_contraction(direct, n)) conv = match_convolution(direct, *read);
  REQUIRE(conv);
  const WinogradError error = winograd_error(direct, *conv, {{4, 4}});
  CHECK(error.plain > 3);
  CHECK(error.blocked < 0.7 * error.plain);

  int64_t amplified = 0;
  for (const ScheduledKernel& k : compile(direct, options).plan.programs)
    for (size_t s = 0; s < k.stages.size(); ++s) {
      if (!k.stages[s].amplified) continue;
      ++amplified;
      const std::optional<SumBlocks>& blocks = k.levels[0].stages[s].blocks;
      REQUIRE(blocks);
      int64_t numbers = blocks->steps;
      const std::vector<AxisId>& loops = k.inner(k.stages[s]);
      for (size_t d = loops.size(); loops[--d] != blocks->loop;)
        numbers *= k.indices.extent(loops[d]);
      CHECK(numbers == 64);
    }
  CHECK(amplified == 1);
}

// A layer of few products hardly errs as it is written. Alone, it gets no form that errs
// many times as much; before layers whose sums are long it may.
TEST_CASE("the forms of a network err together as other runtimes do", "[winograd]") {
  for (int long_layers : {0, 12}) {
    Random random(13);
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, 1, 48, 48});
    x = convolve(g, x, random_tensor(random, {16, 1, 5, 5}), 2);
    for (int layer = 0; layer < long_layers; ++layer)
      x = convolve(g, x, random_tensor(random, {256, layer == 0 ? 16 : 256, 1, 1}), 0);
    g.add_output("y", x);
    const Algorithms chosen = choose_algorithms(g, *find_target("x86-64-v4"), false);
    NetworkError error;
    size_t number = 0;
    for (NodeId n : g.live_nodes())
      if (const auto c = read_contraction(g, n))
        error.add(c->terms(), chosen.chosen[number++].error);
    CHECK(number == chosen.chosen.size());
    CHECK(error.is_within());
    INFO(chosen.chosen[0].algorithm);
    CHECK((chosen.chosen[0].error > 2.5) == (long_layers != 0));
  }
}

// Drawings are nearly all zero, and a written sum is right where it adds zeros: F(1x4,
// 5x5) errs three times as much there, and no more on what a rectifier gives.
TEST_CASE("networks of drawings get forms that err little where most is zero",
          "[winograd]") {
  for (int64_t side : {28, 48}) {
    Random random(13);
    Graph g;
    NodeId x = g.add_input("x", DType::F32, {1, 1, side, side});
    x = convolve(g, x, random_tensor(random, {8, 1, 5, 5}), 2);
    g.add_output("y", convolve(g, x, random_tensor(random, {16, 8, 5, 5}), 2));
    const ErrorBound bound = error_bound(g);
    CHECK((bound.inputs == Inputs::Drawings) == (side == 28));
    CHECK(bound.most == (side == 28 ? 2 : 8.5));
    const Algorithms chosen = choose_algorithms(g, *find_target("x86-64-v4"), false);
    bool fast = false;
    for (const ChosenAlgorithm& c : chosen.chosen) {
      INFO(c.algorithm << " " << c.error);
      CHECK(c.error <= bound.most);
      fast = fast || c.error > 0;
    }
    CHECK(fast);
  }
  Samples samples(Inputs::Drawings);
  int zeros = 0;
  for (int i = 0; i < 10000; ++i) zeros += samples.next() == 0;
  CHECK(zeros > 8800);
  CHECK(zeros < 9200);
}

TEST_CASE("what contractions err together is their mean share", "[winograd]") {
  NetworkError error;
  CHECK(error.value() == 0);
  error.add(100, 2); // one block
  CHECK(error.value() == Approx(2));
  error.add(64 * 256, 1); // as long as 64 of them, which err as 5 of its 64
  CHECK(error.value() == Approx(std::sqrt((4 + 320.0 / (64 * 256)) / 2)));
  error.add(10, 9);
  CHECK(!error.is_within());
}

TEST_CASE("winograd's matrices are a correlation", "[winograd]") {
  const double x[10] = {3, -1, 4, 1, -5, 9, 2, -6, 5, 3}, w[5] = {2, -7, 1, 8, -2};
  for (auto [outputs, taps] : {std::array<int64_t, 2>{2, 3}, {4, 3}, {6, 3}, {6, 5}}) {
    const WinogradMatrices m = winograd_matrices(outputs, taps);
    const int64_t n = outputs + taps - 1;
    auto apply = [](const Steps& steps, std::vector<double> values) {
      for (const Matrix& matrix : steps) {
        std::vector<double> next(static_cast<size_t>(matrix.rows));
        for (int64_t i = 0; i < matrix.rows; ++i)
          for (int64_t j = 0; j < matrix.columns; ++j)
            next[i] += matrix.at(i, j) * values[j];
        values = next;
      }
      return values;
    };
    std::vector<double> v = apply(m.input, {x, x + n}),
                        u = apply(m.weight, {w, w + taps});
    for (int64_t j = 0; j < n; ++j) v[j] *= u[j];
    const std::vector<double> y = apply(m.output, v);
    REQUIRE(y.size() == static_cast<size_t>(outputs));
    for (int64_t i = 0; i < outputs; ++i) {
      double want = 0;
      for (int64_t k = 0; k < taps; ++k) want += x[i + k] * w[k];
      CHECK(y[i] == Approx(want));
    }
  }
}
