// The forms of contractions that need fewer products, on random shapes against the
// evaluator of the graph as written. Weights cost nothing to read on the machine that is
// chosen for, so that small layers get the forms of large ones; shapes are drawn so that
// a fast form pays.
#include "compiler/ir/build.h"
#include "compiler/ir/print.h"
#include "compiler/pipeline.h"
#include "compiler/select/forms/algorithms.h"
#include "tests/support/check_kernels.h"
#include "tests/support/convolve.h"
#include "tests/support/random_contraction.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstring>
#include <map>

using namespace svod;
using namespace svod::test;

namespace {

// Of the outputs' root mean square. A form is taken whose error on samples is below 1e-5;
// other numbers may meet a little more, and a graph may hold three layers.
constexpr double kAllowed = 4e-5;

struct Drawn {
  Graph graph;
  std::vector<Tensor> inputs;
};
using Draw = std::function<Drawn(Random&)>;

// Neither weights nor launches cost anything, so that small layers have fast forms, too.
std::optional<Target> target_of_free_weights(const LevelChoice& choice) {
  std::optional<Target> target = target_for(choice);
  if (target)
    for (Level& level : target->levels) {
      level.machine.memory_bytes_per_ns = level.machine.second.bytes_per_clock = 1e9;
      level.machine.launch_ns = 0;
    }
  return target;
}

double root_mean_square(const Tensor& t) {
  std::vector<float> values(t.bytes.size() / sizeof(float));
  std::memcpy(values.data(), t.bytes.data(), t.bytes.size());
  double sum = 0;
  for (float v : values) sum += double(v) * v;
  return std::sqrt(sum / double(values.size()));
}

// What is wrong with the kernels of this graph; empty when nothing is.
std::string fault_of(const Drawn& drawn, const Target& target) {
  CompileOptions options;
  options.target = target;
  const KernelRun run = run_kernels(compile(drawn.graph, options), target, drawn.inputs);
  if (!run.error.empty()) return run.error;
  const std::vector<Tensor> want = evaluate(drawn.graph, drawn.inputs).outputs;
  for (size_t i = 0; i < want.size(); ++i) {
    const std::string why = compare_tensors(
        run.outputs[i], want[i], 0, kAllowed * std::max(1e-3, root_mean_square(want[i])));
    if (!why.empty()) return "output " + std::to_string(i) + ": " + why;
  }
  return "";
}

// Every contraction's form, without its numbers: "winograd", "strassen", "groups".
std::string kind_of(const std::string& name) {
  if (name.starts_with("winograd"))
    return name.find("parts") != std::string::npos  ? "winograd in parts"
           : name.find("rows") != std::string::npos ? "winograd along rows"
                                                    : "winograd";
  return name.find("groups") != std::string::npos ? "groups" : name;
}

// Runs seeds [first, last], each on one of the levels; counts the forms that were chosen.
std::map<std::string, int> check_seeds(uint64_t first, uint64_t last, const Draw& draw) {
  static constexpr LevelChoice kLevels[] = {
      {"native"}, {"x86-64-v3"}, {"x86-64-v2"}, {"x86-64-v4"}, {"x86-64-v3", 8}};
  std::map<std::string, int> kinds;
  for (uint64_t seed = first; seed <= last; ++seed) {
    const auto target = target_of_free_weights(kLevels[seed % std::size(kLevels)]);
    if (!target) continue;
    Random random(seed);
    const Drawn drawn = draw(random);
    for (const ChosenAlgorithm& chosen :
         select::choose_algorithms(drawn.graph, *target, false).chosen)
      ++kinds[kind_of(chosen.algorithm)];
    INFO("seed " << seed << "\n" << print_graph(drawn.graph));
    CHECK(fault_of(drawn, *target) == "");
  }
  return kinds;
}

template <size_t n> int64_t one_of(Random& random, const int64_t (&values)[n]) {
  return values[random.below(n)];
}

// What follows layers in models, drawn: it decides in which layout a form is stored.
void finish(Drawn& d, Random& random, NodeId y) {
  Graph& g = d.graph;
  const Shape shape = g[y].shape;
  if (random.chance(50)) {
    Shape channels(shape.size(), 1);
    channels[1] = shape[1];
    const Tensor bias = random_tensor(random, channels);
    const NodeId b = weight(g, DType::F32, channels, g.add_blob(bias.bytes));
    y = map(g, Op::Add, {y, expand(g, b, shape)});
  }
  if (random.chance(30)) {
    d.inputs.push_back(random_tensor(random, shape));
    y = map(g, Op::Add, {y, g.add_input("residual", DType::F32, shape)});
  }
  if (random.chance(50)) y = map(g, Op::Max, {y, constant(g, DType::F32, shape, 0)});
  if (random.chance(20) && shape.size() == 4) y = permute(g, y, {0, 2, 3, 1});
  g.add_output("y", y);
}

// Vectors over channels, or where these are few over a row, which is long then.
Drawn convolution(Random& random) {
  static constexpr int64_t kInputs[] = {16, 20, 24, 32}, kOutputs[] = {12, 16, 24, 32};
  static constexpr std::array<int64_t, 2> kTaps[] = {{3, 3}, {3, 3}, {5, 5}, {2, 2},
                                                     {1, 3}, {7, 1}, {4, 3}, {5, 3}};
  Drawn d;
  const bool few = random.chance(20);
  auto [rows, columns] = kTaps[random.below(std::size(kTaps))];
  if (few) rows = columns = 5;
  const int64_t stride = !few && random.chance(25) && rows > 2 && columns > 2 ? 2 : 1;
  const Shape shape = {
      random.between(1, 2), few ? random.between(6, 9) : one_of(random, kInputs),
      random.between(12, 19), few ? random.between(70, 100) : random.between(12, 30)};
  const int64_t outputs = few ? random.between(5, 7) : one_of(random, kOutputs);
  const Tensor weights = random_tensor(random, {outputs, shape[1], rows, columns});
  d.inputs.push_back(random_tensor(random, shape));
  NodeId x = d.graph.add_input("x", DType::F32, shape);
  x = convolve(d.graph, x, weights, random.below(2), {stride, stride});
  finish(d, random, x);
  return d;
}

Drawn product(Random& random) {
  static constexpr int64_t kExtents[] = {192, 224, 256, 320};
  Drawn d;
  const Shape shape = {random.between(1, 2), random.between(96, 130),
                       one_of(random, kExtents)};
  d.inputs.push_back(random_tensor(random, shape));
  NodeId x = d.graph.add_input("x", DType::F32, shape);
  const Tensor weights = random_tensor(random, {shape[2], one_of(random, kExtents)});
  const NodeId w =
      weight(d.graph, DType::F32, weights.shape, d.graph.add_blob(weights.bytes));
  finish(d, random, matmul(d.graph, x, w));
  return d;
}

// Numbers of a product that only the run picks.
Drawn picked(Random& random) {
  constexpr int64_t kPicked = 500;
  Drawn d = product(random);
  const NodeId y = d.graph.outputs()[0].node;
  const int64_t count = element_count(d.graph[y].shape);
  Tensor places{DType::I64, {kPicked}, std::vector<std::byte>(kPicked * sizeof(int64_t))};
  for (int64_t i = 0; i < kPicked; ++i) {
    const int64_t place = random.between(0, count - 1);
    std::memcpy(places.bytes.data() + i * int64_t{sizeof place}, &place, sizeof place);
  }
  d.inputs.push_back(places);
  const NodeId at = d.graph.add_input("places", DType::I64, {kPicked});
  d.graph.set_output(0, gather(d.graph, reshape(d.graph, y, {count}), at, 0));
  return d;
}

// Several layers of any kind: what one form stores, the next one reads.
Drawn layers(Random& random) {
  Drawn d;
  const auto input = [&](const Shape& shape) {
    d.inputs.push_back(random_tensor(random, shape));
    return d.graph.add_input("x" + std::to_string(d.inputs.size()), DType::F32, shape);
  };
  d.graph.add_output("y",
                     random_contraction({d.graph, random, true, DType::F32, input}).node);
  return d;
}

} // namespace

// Of ten contractions at most one stays as it is written.
static bool nearly_all_are_fast(const std::map<std::string, int>& kinds) {
  int all = 0, direct = 0;
  for (const auto& [kind, count] : kinds) {
    all += count;
    if (kind == "direct") direct += count;
  }
  return all > 0 && 10 * direct <= all;
}

TEST_CASE("winograd's forms compute what is written",
          "[kernels][property][winograd][sweep]") {
  CHECK(nearly_all_are_fast(check_seeds(1, swept(10, 3), convolution)));
}

TEST_CASE("strassen's form computes what is written", "[kernels][property][strassen]") {
  CHECK(nearly_all_are_fast(check_seeds(1, 3, product)));
}

TEST_CASE("numbers of a strassen product that the run picks are those of their places",
          "[kernels][strassen]") {
  CHECK(nearly_all_are_fast(check_seeds(5, 8, picked)));
}

TEST_CASE("forms of layers that follow each other compute what is written",
          "[kernels][property][winograd][sweep]") {
  CHECK(check_seeds(1, swept(12, 6), layers)["winograd"] > 0);
}

TEST_CASE("many layers in fast forms compute what is written",
          "[kernels][property][winograd][strassen][long]") {
  auto convolutions = check_seeds(11, 150, convolution);
  CHECK(nearly_all_are_fast(convolutions));
  CHECK(convolutions["winograd in parts"] > 0);
  CHECK(convolutions["winograd along rows"] > 0);
  CHECK(nearly_all_are_fast(check_seeds(4, 24, product)));
  auto kinds = check_seeds(13, 300, layers);
  CHECK(kinds["winograd"] > 0);
  CHECK(kinds["groups"] > 0);
}
