// How lanes meet memory: neighbours, a few elements apart, past a border; and positions
// of extremes found lane by lane; sorts, which pass over keys a vector at a time. Kernels
// against the evaluator, for several levels and lane counts.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "tests/support/check_kernels.h"
#include "tests/support/compare.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <functional>

using namespace svod;
using namespace svod::test;

namespace {

constexpr LevelChoice kLevels[] = {{"x86-64-v3", 8}, {"x86-64-v4"}, {"x86-64-v2", 4}};

// What the kernels of a graph over one input make of it differs from the evaluator's; the
// empty text for nothing.
std::string difference(const Tensor& x, const Target& target,
                       const std::function<void(Graph&, NodeId)>& build,
                       double tolerance = 0, bool exact = false) {
  Graph g;
  build(g, g.add_input("x", x.dtype, x.shape));
  const Evaluated want = evaluate(g, {x});
  CompileOptions options;
  options.target = target;
  options.exact = exact;
  const KernelRun run = run_kernels(compile(std::move(g), options), target, {x});
  std::string out = run.error;
  for (size_t i = 0; out.empty() && i < want.outputs.size(); ++i)
    out = compare_tensors(run.outputs[i], want.outputs[i], tolerance, tolerance);
  return out;
}

// Numbers in no order, some of them equal.
Tensor numbers(DType dtype, const Shape& shape) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<double>((i * 7919) % 101);
  return make_tensor(dtype, shape, values);
}

} // namespace

TEST_CASE("lanes a few elements apart, with borders", "[lanes][sweep]") {
  for (const LevelChoice& level : swept(kLevels, 1)) {
    const auto target = target_for(level);
    if (!target) continue;
    for (DType dtype : {DType::F32, DType::U8, DType::F16, DType::I64}) {
      const Tensor x = numbers(dtype, {2, 5, 43});
      const std::string what = difference(x, *target, [](Graph& g, NodeId in) {
        int number = 0;
        auto give = [&](NodeId y) { g.add_output("y" + std::to_string(number++), y); };
        for (int64_t step = 2; step <= 5; ++step) {
          const int64_t extent = 42 / step;
          give(slice(g, in, {0, 0, 1}, {1, 1, step}, {2, 5, extent}));
          // A pooling over a border whose value is not 0.
          NodeId wide = pad(g, in, {0, 0, 2}, {0, 0, 3}, 33);
          give(reduce(g, Op::ReduceMax, window(g, wide, 2, 3, step, 1), {3}));
        }
      });
      CAPTURE(info(dtype).text, level.name);
      CHECK(what == "");
    }
  }
}

TEST_CASE("pictures read past their edges", "[lanes][sweep]") {
  for (const LevelChoice& level : swept(kLevels, 1)) {
    const auto target = target_for(level);
    if (!target) continue;
    const Tensor x = numbers(DType::F32, {1, 3, 131, 130});
    const std::string what = difference(
        x, *target,
        [](Graph& g, NodeId in) {
          int number = 0;
          for (int64_t stride : {1, 2})
            for (int64_t end : {0, 1})
              for (int64_t channels : {16, 24}) {
                NodeId wide = pad(g, in, {0, 0, 1, end}, {0, 0, end, 1}, 0);
                NodeId seen =
                    window(g, window(g, wide, 2, 3, stride, 1), 3, 3, stride, 1);
                seen = unsqueeze(g, permute(g, seen, {0, 2, 3, 1, 4, 5}), 1);
                const Tensor w = numbers(DType::F32, {1, channels, 1, 1, 3, 3, 3});
                NodeId weights = weight(g, DType::F32, w.shape, g.add_blob(w.bytes));
                NodeId product = broadcast_map(g, Op::Mul, {seen, weights});
                g.add_output("y" + std::to_string(number++),
                             reduce(g, Op::ReduceSum, product, {4, 5, 6}));
              }
        },
        0, true);
    CAPTURE(level.name);
    CHECK(what == "");
  }
}

TEST_CASE("rows and columns change places", "[lanes][sweep]") {
  for (const LevelChoice& level : swept(kLevels, 1)) {
    const auto target = target_for(level);
    if (!target) continue;
    for (DType dtype : {DType::F32, DType::U8, DType::F16, DType::I64, DType::Bool}) {
      const Tensor x = numbers(dtype, {3, 37, 50});
      const std::string what = difference(x, *target, [](Graph& g, NodeId in) {
        int number = 0;
        auto give = [&](NodeId y) { g.add_output("y" + std::to_string(number++), y); };
        give(permute(g, in, {0, 2, 1}));
        give(permute(g, in, {2, 0, 1}));
        give(permute(g, in, {2, 1, 0}));
        give(permute(g, slice(g, in, {0, 0, 3}, {1, 1, 1}, {3, 32, 17}), {0, 2, 1}));
        give(permute(g, pad(g, in, {0, 1, 0}, {0, 2, 5}, 7), {1, 2, 0}));
      });
      CAPTURE(info(dtype).text, level.name);
      CHECK(what == "");
    }
  }
}

TEST_CASE("shuffled channels in blocks", "[lanes][sweep]") {
  for (const LevelChoice& level : swept(kLevels, 1)) {
    const auto target = target_for(level);
    if (!target) continue;
    for (const Shape& apart : {Shape{1, 2, 29, 9, 21}, Shape{1, 4, 13, 5, 4},
                               Shape{1, 3, 16, 4, 18}, Shape{1, 8, 7, 3, 33}}) {
      const Shape joined = {1, apart[1] * apart[2], apart[3], apart[4]};
      const Tensor x = numbers(DType::F32, joined);
      const std::string what = difference(x, *target, [&](Graph& g, NodeId in) {
        NodeId turned = permute(g, reshape(g, in, apart), {0, 2, 1, 3, 4});
        NodeId wide = pad(g, reshape(g, turned, joined), {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
        // Channel by channel, so that channels are lanes: a sum over windows with
        // weights.
        NodeId windows = window(g, window(g, wide, 2, 3, 2, 1), 3, 3, 2, 1);
        std::vector<float> weights;
        for (int64_t i = 0; i < joined[1] * 9; ++i)
          weights.push_back(static_cast<float>(i % 7) - 3);
        NodeId w = tensor_f32(g, {1, joined[1], 1, 1, 3, 3}, weights);
        NodeId product = broadcast_map(g, Op::Mul, {windows, w});
        g.add_output("y", reduce(g, Op::ReduceSum, product, {4, 5}));
      });
      CAPTURE(level.name, apart[1], apart[2]);
      CHECK(what == "");
    }
  }
}

TEST_CASE("running sums of neighbouring vectors", "[lanes]") {
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    const Tensor x = numbers(DType::F32, {3, 20, 112});
    const std::string what = difference(x, *target, [](Graph& g, NodeId in) {
      for (int64_t axis : {0, 1, 2})
        g.add_output("y" + std::to_string(axis), scan(g, Op::ScanSum, in, axis));
    });
    CAPTURE(level.name);
    CHECK(what == "");
  }
}

// Long enough for several accumulators, with and without steps left over, and sums of
// blocks.
TEST_CASE("long reductions, one axis and several that lie in a row", "[lanes][long]") {
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    for (DType dtype : {DType::F32, DType::F16, DType::I32, DType::U8})
      for (const Shape& shape :
           {Shape{3, 7, 1000}, Shape{2, 13, 331}, Shape{1, 90, 112}}) {
        const Tensor x = numbers(dtype, shape);
        const double tolerance = is_float(dtype) ? 1e-3 : 0;
        const auto build = [](Graph& g, NodeId in) {
          int number = 0;
          for (Op op : {Op::ReduceSum, Op::ReduceMin, Op::ReduceMax})
            for (const std::vector<int64_t>& axes :
                 {std::vector<int64_t>{2}, {1, 2}, {0, 1, 2}, {0, 2}})
              g.add_output("y" + std::to_string(number++), reduce(g, op, in, axes));
        };
        CAPTURE(level.name, info(dtype).text);
        CHECK(difference(x, *target, build, tolerance) == "");
      }
  }
}

TEST_CASE("the position of an extreme among lanes", "[lanes][sweep]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const LevelChoice& level : swept(kLevels, 1)) {
    const auto target = target_for(level);
    if (!target) continue;
    for (DType dtype : {DType::F32, DType::F16, DType::I32, DType::I64})
      for (int64_t width : {16, 21, 50, 200}) {
        std::vector<double> values(static_cast<size_t>(8 * width));
        for (size_t i = 0; i < values.size(); ++i)
          values[i] = static_cast<double>((i * 31) % 17);
        for (int64_t i = 0; i < width; ++i) // rows of equals, of which one has an end
          values[size_t(i)] = values[size_t(width + i)] = 3;
        values[size_t(2 * width - 1)] = 4;
        if (is_float(dtype)) {
          for (int64_t i = 0; i < width; ++i)
            values[size_t(2 * width + i)] = -inf, values[size_t(3 * width + i)] = inf;
          values[size_t(4 * width + width / 2)] = values[size_t(5 * width - 1)] = nan;
        }
        const Tensor x = make_tensor(dtype, {8, width}, values);
        const std::string what = difference(x, *target, [](Graph& g, NodeId in) {
          for (bool last : {false, true}) {
            const std::string name = last ? "last" : "first";
            g.add_output("most " + name, arg_reduce(g, Op::ArgMax, in, 1, last));
            g.add_output("least " + name, arg_reduce(g, Op::ArgMin, in, 1, last));
          }
        });
        CAPTURE(info(dtype).text, level.name, width);
        CHECK(what == "");
      }
  }
}

TEST_CASE("the first few of many in order", "[lanes][long]") {
  const double inf = std::numeric_limits<double>::infinity(), nan = std::nan("");
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    for (DType dtype : {DType::F32, DType::F64, DType::F16, DType::U8, DType::I64}) {
      constexpr int64_t kWidth = 150;
      std::vector<double> values(4 * kWidth);
      for (size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<double>((i * 7919) % 101);
      for (size_t i = 0; i < kWidth; ++i) values[i] = double(i); // each beats the last
      if (is_float(dtype)) {
        for (size_t i = 2 * kWidth; i + 4 < values.size(); i += 9)
          values[i] = nan, values[i + 1] = -inf, values[i + 2] = inf,
          values[i + 3] = -0.0, values[i + 4] = 0;
      }
      const Tensor x = make_tensor(dtype, {4, kWidth}, values);
      const std::string what = difference(x, *target, [](Graph& g, NodeId in) {
        for (bool descending : {false, true})
          for (int64_t count : {1, 5, 60, 80, 150})
            g.add_output((descending ? "down " : "up ") + std::to_string(count),
                         argsort(g, in, 1, descending, count));
      });
      CAPTURE(info(dtype).text, level.name);
      CHECK(what == "");
    }
  }
}

// A costly product that three passes over a row need, written by the first of them.
TEST_CASE("a row of costly values is normalised", "[lanes]") {
  for (const LevelChoice& level : kLevels) {
    const auto target = target_for(level);
    if (!target) continue;
    const Tensor x = numbers(DType::F32, {3, 50});
    const std::string what = difference(
        x, *target,
        [](Graph& g, NodeId in) {
          const Shape shape{3, 50};
          auto mean = [&](NodeId of) {
            NodeId sum = reduce(g, Op::ReduceSum, of, {1});
            return expand(
                g, map(g, Op::Mul, {sum, constant(g, DType::F32, {3, 1}, 0.02)}), shape);
          };
          NodeId small = map(g, Op::Mul, {in, constant(g, DType::F32, shape, 0.03)});
          NodeId y = map(g, Op::Mul, {small, map(g, Op::Erf, {small})});
          NodeId centred = map(g, Op::Sub, {y, mean(y)});
          NodeId spread = mean(map(g, Op::Mul, {centred, centred}));
          g.add_output("y", map(g, Op::Div, {centred, map(g, Op::Sqrt, {spread})}));
        },
        1e-5);
    CHECK(what == "");
  }
}
