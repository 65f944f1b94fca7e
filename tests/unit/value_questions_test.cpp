// The questions that are asked of a whole weight, each by itself: a plan is one for other
// weights of the same answer, and none for weights of another one, for no other reason.
#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/pipeline.h"
#include "compiler/select/forms/algorithms.h"
#include "compiler/value_questions.h"
#include "tests/support/convolve.h"
#include "tests/support/random_tensor.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace svod;
using namespace svod::test;

namespace {

// What a plan of the graph takes for granted of its weights.
ValueRecord taken_for_granted(const Graph& graph, const char* target) {
  CompileOptions options{*find_target(target)};
  options.facts = std::make_shared<ValueFacts>();
  compile(graph, options);
  REQUIRE_FALSE(options.facts->is_lost());
  return record_of(*options.facts, graph);
}

bool is_right_for(const ValueRecord& record, const Graph& graph) {
  return values_of(record, graph, {}).has_value();
}

// A plan that takes answers to the question for granted is one for `same`. It is none for
// `other`, where it would be one if nobody asked.
void check_question(ValueQuestion question, const char* target, const Graph& made_for,
                    const Graph& same, const Graph& other) {
  ValueRecord record = taken_for_granted(made_for, target);
  CHECK(is_right_for(record, same));
  CHECK_FALSE(is_right_for(record, other));
  CHECK(std::erase_if(record.facts, [&](const ValueFact& fact) {
          return fact.question == question;
        }) > 0);
  CHECK(is_right_for(record, other));
}

Tensor changed(Tensor values, const std::function<double(int64_t, double)>& change) {
  std::vector<double> numbers = doubles_of(values);
  for (size_t i = 0; i < numbers.size(); ++i)
    numbers[i] = change(static_cast<int64_t>(i), numbers[i]);
  return make_tensor(values.dtype, values.shape, numbers);
}

Tensor with_noise(const Tensor& values) {
  Random random(2);
  return changed(values, [&](int64_t, double v) {
    return v * (1 + double(random.between(-10, 10)) / 1000);
  });
}

NodeId known(Graph& g, const Tensor& values) {
  return weight(g, values.dtype, values.shape, g.add_blob(values.bytes));
}

Graph convolution(const Tensor& weights) {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {2, weights.shape[1], 16, 16});
  g.add_output("y", convolve(g, x, weights, 1));
  return g;
}

Graph product(const Tensor& weights, DType of_input, int64_t rows, DType sums) {
  Graph g;
  const NodeId x = g.add_input("x", of_input, {rows, weights.shape[0]});
  g.add_output("y", matmul(g, cast(g, x, sums), cast(g, known(g, weights), sums)));
  return g;
}

// Bytes, scaled and made bytes again.
Graph scaled_bytes(const std::vector<double>& scales) {
  Graph g;
  const auto columns = static_cast<int64_t>(scales.size());
  const NodeId x = g.add_input("x", DType::U8, {8, columns});
  const NodeId w = known(g, make_tensor(DType::F32, {1, columns}, scales));
  const NodeId y = map(g, Op::Mul, {cast(g, x, DType::F32), expand(g, w, {8, columns})});
  g.add_output("y", cast(g, y, DType::U8));
  return g;
}

// Signed bytes, all alike but the first, for a constant would be none.
Graph byte_product(int value) {
  const Tensor all = make_tensor(DType::I8, {64, 8}, std::vector<double>(64 * 8, value));
  const Tensor weights = changed(all, [](int64_t i, double v) { return i == 0 ? 0 : v; });
  return product(weights, DType::I8, 6, DType::I32);
}

} // namespace

// A sum of one product hardly errs as it is written: Winograd's form then errs far more.
TEST_CASE("weights of which Winograd's form errs more are another plan",
          "[plan][cache]") {
  Random random(7);
  const Tensor weights = random_tensor(random, {32, 32, 3, 3});
  const Tensor sparse =
      changed(weights, [](int64_t i, double v) { return i % 288 == 4 ? v + 2 : 0; });
  const Graph made_for = convolution(weights);
  REQUIRE(
      select::choose_algorithms(made_for, *find_target("x86-64-v4"), false).winograd ==
      1);
  check_question(ValueQuestion::Accurate, "x86-64-v4", made_for,
                 convolution(with_noise(weights)), convolution(sparse));
}

// Strassen's form adds columns to each other: small ones lose what large ones round.
TEST_CASE("weights of which Strassen's form errs more are another plan",
          "[plan][cache]") {
  constexpr int64_t kSize = 1024;
  Random random(8);
  const Tensor weights = random_tensor(random, {kSize, kSize});
  const Tensor uneven = changed(
      weights, [](int64_t i, double v) { return i % kSize < kSize / 2 ? v : v * 4096; });
  const auto graph = [](const Tensor& w) {
    return product(w, DType::F32, kSize, DType::F32);
  };
  const Graph made_for = graph(weights);
  REQUIRE(
      select::choose_algorithms(made_for, *find_target("x86-64-v4"), false).strassen ==
      1);
  check_question(ValueQuestion::Accurate, "x86-64-v4", made_for,
                 graph(with_noise(weights)), graph(uneven));
}

// Four products of a byte and 63 fit 16 bits, four of a byte and 64 do not.
TEST_CASE("weights whose products fit no 16 bits are another plan", "[plan][cache]") {
  check_question(ValueQuestion::ShortSums, "armv7", byte_product(40), byte_product(63),
                 byte_product(64));
}

TEST_CASE("weights beyond the magnitude that was seen are another plan",
          "[plan][cache]") {
  const std::vector<double> scales = {0.1, -0.2, 0.3, 2.5};
  check_question(ValueQuestion::Within, "x86-64-v3", scaled_bytes(scales),
                 scaled_bytes({0.2, -4, 0.5, 3.9}), scaled_bytes({0.1, -0.2, 0.3, 4.1}));
}
