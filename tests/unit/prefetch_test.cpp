// Weights that come from memory are fetched one tile of panels ahead, resident ones are
// not.
#include "compiler/ir/build.h"
#include "compiler/ir/region.h"
#include "compiler/pipeline.h"
#include "tests/support/compare.h"
#include "tests/support/known_product.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <memory>
#include <regex>
#include <sstream>

using namespace svod;

namespace {

struct Product {
  ScheduledKernel kernel;
  std::string text;
  bool fetches() const { return text.find("fetch(a") != std::string::npos; }
};

// The kernel of y = x w, x[rows, depth] and w[depth, columns].
Product product(int64_t rows, int64_t depth, int64_t columns,
                const std::string& target = "x86-64-v4", const std::string& cpu = {}) {
  CompileOptions options;
  options.target = *find_target(target);
  if (!cpu.empty()) options.target = with_cpu(options.target, 0, cpu);
  const codegen::Kernels kernels =
      compile(test::known_product(rows, depth, columns), options);
  const auto& programs = kernels.plan.programs;
  const auto longest = std::ranges::max_element(programs, {}, &Kernel::flops);
  return {*longest, codegen::kernel_text(*longest, 0).text};
}

// The first layer of a network over two pictures: 16 results of 3 x 3 at stride 2.
Graph stem() {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 3, 224, 224});
  x = pad(g, x, {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
  x = window(g, window(g, x, 2, 3, 2, 1), 3, 3, 2, 1);
  x = unsqueeze(g, permute(g, x, {0, 2, 3, 1, 4, 5}), 1);
  const Shape of_weights = {1, 16, 1, 1, 3, 3, 3};
  std::vector<double> values(static_cast<size_t>(element_count(of_weights)));
  for (size_t k = 0; k < values.size(); ++k) values[k] = static_cast<double>(k) / 64;
  Tensor w = test::make_tensor(DType::F32, of_weights, values);
  const NodeId weights =
      weight(g, DType::F32, of_weights, g.add_blob(std::move(w.bytes)));
  const NodeId products = broadcast_map(g, Op::Mul, {x, weights});
  const NodeId y =
      squeeze_axes(g, reduce(g, Op::ReduceSum, products, {4, 5, 6}), {4, 5, 6});
  g.add_output("y", map(g, Op::Exp, {y}));
  return g;
}

// y = x w eight times, x of rows of `width` numbers, which takes w at each step.
Graph recurrent(int64_t rows, int64_t width) {
  Graph body;
  body.add_input("i", DType::I64, {});
  const NodeId x = body.add_input("x", DType::F32, {rows, width});
  std::vector<double> values(static_cast<size_t>(width * width));
  for (size_t k = 0; k < values.size(); ++k)
    values[k] = static_cast<double>(k % 97) / 4096;
  Tensor w = test::make_tensor(DType::F32, {width, width}, values);
  const NodeId weights =
      weight(body, DType::F32, {width, width}, body.add_blob(std::move(w.bytes)));
  body.add_output("x", map(body, Op::Tanh, {matmul(body, x, weights)}));
  Graph g;
  const NodeId first = g.add_input("x", DType::F32, {rows, width});
  LoopSpec spec;
  spec.body = g.add_body(std::make_shared<const Graph>(std::move(body)));
  spec.carried = 1;
  spec.limit = 8;
  const NodeId steps = loop(
      g, spec, {constant(g, DType::I64, {}, 8), constant(g, DType::Bool, {}, 1), first});
  g.add_output("y", result(g, steps, 0));
  return g;
}

} // namespace

TEST_CASE("the next weight panels are fetched ahead", "[kernels]") {
  const Product p = product(64, 96, 1024);
  const LevelSchedule& how = p.kernel.levels[0];
  REQUIRE(how.stages[0].weights.size() == 1);
  const WeightPrefetch& ahead = how.stages[0].weights[0];
  CHECK(ahead.panel_elements == 96 * 16);
  const int panels = tile_count(how.tile, ahead.panels);
  CHECK(panels > 1);
  REQUIRE(ahead.sweep != ahead.panels);
  // Each sweep fetches its share of them: the first line says which are left.
  const int64_t sweeps = tile_trips(p.kernel, how.tile, ahead.sweep),
                each = (panels + sweeps - 1) / sweeps;
  CHECK(p.text.find(" < " + std::to_string((panels + each - 1) / each) + " ? (" +
                    std::to_string(panels) + " + ") != std::string::npos);
  CHECK(p.fetches());
}

TEST_CASE("resident weights are not fetched ahead", "[kernels]") {
  const Product p = product(64, 96, 128);
  CHECK(p.kernel.levels[0].stages[0].weights.empty());
  CHECK(!p.fetches());
}

// Of a line whose products take at most four clocks a core that runs ahead of itself asks
// for others in time.
TEST_CASE("panels that are met once, by few rows, are not fetched ahead", "[kernels]") {
  for (const int64_t rows : {1, 4, 8}) {
    INFO(rows);
    CHECK(!product(rows, 1024, 1024).fetches());
    CHECK(!product(rows, 128, 512).fetches());
    CHECK(product(rows, 1024, 1024, "x86-64-v4", "znver4").fetches() == (rows > 4));
  }
  CHECK(product(16, 512, 512).fetches());
  CHECK(product(16, 128, 512).fetches());
}

TEST_CASE("a core that waits for each load has short panels fetched", "[kernels]") {
  CHECK(product(1, 32, 4096, "armv7").fetches());
  CHECK(!product(1, 1024, 1024, "armv7").fetches());
}

// A tile of both pictures fetches rows of each, not what lies between them, which is
// 9408 lines a tile (an 82 ms run of MobileNetV3 small that takes 3.8).
TEST_CASE("a tile over pictures fetches rows of each of them", "[kernels]") {
  for (const char* name : {"x86-64-v3", "x86-64-v4"}) {
    CompileOptions options;
    options.target = *find_target(name);
    const codegen::Kernels kernels = compile(stem(), options);
    int64_t fetches = 0;
    for (const ScheduledKernel& k : kernels.plan.programs) {
      std::istringstream text(codegen::kernel_text(k, 0).text);
      for (std::string line; std::getline(text, line);) {
        if (line.find("fetch(a") == std::string::npos) continue;
        INFO(line);
        int64_t lines = 1;
        const std::regex loop("(\\d+); n\\w* < (\\d+);");
        for (std::sregex_iterator at(line.begin(), line.end(), loop), end; at != end;
             ++at)
          lines *= std::stoll((*at)[2]) - std::stoll((*at)[1]);
        CHECK(lines <= 4 * 3 * 2 * 4); // rows, channels, pictures, lines of a tile's row
        ++fetches;
      }
    }
    CHECK(fetches > 0);
  }
}

TEST_CASE("weights that a loop reads at each step are not fetched", "[kernels]") {
  CompileOptions options;
  options.target = *find_target("x86-64-v4");
  const int64_t rows = 16, width = 256;
  const codegen::Kernels kernels = compile(recurrent(rows, width), options);
  const auto& programs = kernels.plan.programs;
  const auto longest = std::ranges::max_element(programs, {}, &Kernel::flops);
  REQUIRE(longest != programs.end());
  CHECK(longest->flops >= 2 * rows * width * width);
  CHECK(longest->loops.repeated);
  CHECK(longest->levels[0].stages[0].weights.empty());
  // The same weights, read once.
  CHECK(product(rows, width, width).fetches());
}

// Steps of a recurrent layer, written out, before a product whose weights are read once.
TEST_CASE("weights that several kernels of a run read are not fetched", "[kernels]") {
  const int64_t rows = 16, width = 256, outputs = 4096;
  const auto known = [](Graph& g, const Shape& shape) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (size_t k = 0; k < values.size(); ++k)
      values[k] = static_cast<double>(k % 97) / 4096;
    Tensor w = test::make_tensor(DType::F32, shape, values);
    return weight(g, DType::F32, shape, g.add_blob(std::move(w.bytes)));
  };
  Graph g;
  NodeId state = g.add_input("x", DType::F32, {rows, width});
  const NodeId weights = known(g, {width, width});
  for (int step = 0; step < 4; ++step)
    state = map(g, Op::Tanh, {matmul(g, state, weights)});
  g.add_output("y", matmul(g, state, known(g, {width, outputs})));
  CompileOptions options;
  options.target = *find_target("x86-64-v4");
  const codegen::Kernels kernels = compile(g, options);
  size_t repeated = 0, fetching = 0;
  for (const ScheduledKernel& k : kernels.plan.programs) {
    repeated += k.loops.repeated;
    for (const StageSchedule& s : k.levels[0].stages) fetching += !s.weights.empty();
    CHECK((k.loops.repeated || k.flops >= 2 * rows * width * outputs));
  }
  CHECK(repeated > 0);
  CHECK(fetching == 1);
}
