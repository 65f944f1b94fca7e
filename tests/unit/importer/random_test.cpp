// Random operators: the words of the generator against its published answers, the
// distributions, and kernels against the evaluator bit for bit.
#include "importer/formula/random.h"
#include "tests/support/check_kernels.h"
#include "tests/support/run_rule.h"

#include <bit>

using namespace svod;
using namespace svod::rule_test;

namespace {

struct Moments {
  double mean = 0, variance = 0;
};
Moments moments(const std::vector<float>& numbers) {
  Moments m;
  for (float x : numbers) m.mean += x / double(numbers.size());
  for (float x : numbers)
    m.variance += (x - m.mean) * (x - m.mean) / double(numbers.size());
  return m;
}

// Both words of the counters 0 .. count-1.
std::vector<uint32_t> words(RandomStream stream, int64_t count) {
  Graph g;
  const RandomWords words = random_words(g, stream, {count});
  g.add_output("first", words.first.id);
  g.add_output("second", words.second.id);
  std::vector<uint32_t> result;
  for (const Tensor& t : evaluate(g, {}).outputs)
    for (uint32_t word : values<uint32_t>(t)) result.push_back(word);
  return result;
}

// Larger than what the builder folds, so that kernels compute it.
constexpr int64_t kMany = 100'003;

Graph random_program(DType dtype) {
  Graph g;
  g.add_output("uniform", random_uniform(g, {7, 1}, {kMany}, dtype).id);
  g.add_output("normal", random_normal(g, {7, 2}, {kMany}, dtype).id);
  return g;
}

} // namespace

TEST_CASE("words are those of Philox2x32-10", "[importer][random]") {
  // The answer for counter and key 0 in the authors' table of known answers.
  CHECK(words({0, 0}, 1) == std::vector<uint32_t>{0xff1dae59, 0x6cd10df2});
  const std::vector<uint32_t> two = words({0, 0}, 2);
  CHECK(two[0] == 0xff1dae59);
  CHECK(two[1] != two[0]);
  CHECK(words({1, 0}, 1) != words({0, 0}, 1));
  CHECK(words({0, 1}, 1) != words({0, 0}, 1));
}

TEST_CASE("uniform and normal numbers are spread as they should be",
          "[importer][random]") {
  for (const DType dtype : {DType::F32, DType::F64}) {
    Graph g;
    for (Expr x : {random_uniform(g, {1, 0}, {40'000}, dtype),
                   random_normal(g, {1, 1}, {40'000}, dtype)})
      g.add_output("y", convert(x, DType::F32).id);
    const Evaluated run = evaluate(g, {});
    const std::vector<float> unit = values<float>(run.outputs[0]);
    CHECK(*std::min_element(unit.begin(), unit.end()) >= 0);
    CHECK(*std::max_element(unit.begin(), unit.end()) < 1);
    const Moments of_unit = moments(unit),
                  of_normal = moments(values<float>(run.outputs[1]));
    // Four standard errors of 40000 draws.
    CHECK(of_unit.mean == Approx(0.5).margin(0.006));
    CHECK(of_unit.variance == Approx(1.0 / 12).margin(0.002));
    CHECK(of_normal.mean == Approx(0).margin(0.02));
    CHECK(of_normal.variance == Approx(1).margin(0.03));
  }
}

TEST_CASE("kernels draw the evaluator's numbers", "[importer][random][kernels]") {
  for (const DType dtype : {DType::F32, DType::F64})
    for (const char* level : {"native", "x86-64-v2", "x86-64-v3"}) {
      const auto target = test::target_for({level});
      if (!target) continue;
      test::RandomGraph random;
      random.graph = random_program(dtype);
      // 0: every bit must agree.
      random.tolerance.assign(random.graph.size(), 0);
      CHECK(test::check_kernels(random, *target) == "");
    }
}

TEST_CASE("a seed fixes the numbers, another changes them", "[importer][random]") {
  const std::vector<ModelAttribute> shape = {
      attribute("shape", std::vector<int64_t>{50})};
  const auto draw = [&](double seed) {
    std::vector<ModelAttribute> attributes = shape;
    attributes.push_back(attribute("seed", seed));
    return apply({"RandomUniform", 22, attributes}, {});
  };
  CHECK(draw(1.5) == draw(1.5));
  CHECK(draw(1.5) != draw(2));
  CHECK(apply({"RandomUniform", 22, shape}, {}) ==
        apply({"RandomUniform", 22, shape}, {}));
}

TEST_CASE("random operators honour their attributes", "[importer][random]") {
  const Tensor like = f32({100, 100}, counting(10'000));
  Operator uniform{
      "RandomUniformLike",
      1,
      {attribute("low", 2.0), attribute("high", 6.0), attribute("dtype", int64_t{11})}};
  REQUIRE(uniform.run({like}).results.size() == 1);
  CHECK(uniform.results[0].dtype == DType::F64);
  CHECK(uniform.results[0].shape == Shape{100, 100});
  const std::vector<float> normal =
      apply({"RandomNormalLike", 1, {attribute("mean", 10.0), attribute("scale", 3.0)}},
            {like});
  CHECK(moments(normal).mean == Approx(10).margin(0.12));
  CHECK(moments(normal).variance == Approx(9).margin(0.6));
  const Tensor whole = i64({2}, {1, 2});
  CHECK(Operator{"RandomNormalLike", 1}.run({whole}).failure.find("dtype") !=
        std::string::npos);
}

TEST_CASE("bernoulli draws ones with the input's chances", "[importer][random]") {
  std::vector<float> chances(10'000, 0.25f);
  chances[0] = 0, chances[1] = 1;
  const std::vector<float> y = apply({"Bernoulli", 15}, {f32({10'000}, chances)});
  CHECK(y[0] == 0);
  CHECK(y[1] == 1);
  CHECK(std::all_of(y.begin(), y.end(), [](float v) { return v == 0 || v == 1; }));
  CHECK(moments(y).mean == Approx(0.25).margin(0.02));
}

TEST_CASE("multinomial draws classes by their weights", "[importer][random]") {
  // Chances 1/8, 0, 5/8, 2/8; the second row always gives class 0.
  const float none = -kInf;
  const Tensor x = f32({2, 4}, {std::log(1.0f), none, std::log(5.0f), std::log(2.0f), 3,
                                none, none, none});
  Operator draw{
      "Multinomial",
      7,
      {attribute("sample_size", int64_t{8000}), attribute("dtype", int64_t{7})}};
  REQUIRE(draw.run({x}).results.size() == 1);
  std::vector<double> share(4);
  const std::vector<int64_t> y = values<int64_t>(draw.results[0]);
  for (size_t i = 0; i < 8000; ++i) share.at(static_cast<size_t>(y[i])) += 1.0 / 8000;
  CHECK(share[0] == Approx(0.125).margin(0.02));
  CHECK(share[1] == 0);
  CHECK(share[2] == Approx(0.625).margin(0.025));
  CHECK(std::all_of(y.begin() + 8000, y.end(), [](int64_t c) { return c == 0; }));
}

TEST_CASE("dropout drops by its ratio and scales what is left", "[importer][random]") {
  const std::vector<float> x(10'000, 3.0f);
  const Tensor training = tensor<uint8_t>(DType::Bool, {}, {1});
  const Tensor inferring = tensor<uint8_t>(DType::Bool, {}, {0});
  Operator drop{"Dropout", 12, {}, 0, 2};
  drop.run({f32({10'000}, x), f32({}, {0.4f}), training});
  REQUIRE(drop.results.size() == 2);
  const std::vector<float> y = values<float>(drop.results[0]);
  const std::vector<uint8_t> mask = values<uint8_t>(drop.results[1]);
  double kept = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    CHECK(y[i] == Approx(mask[i] ? 5.0f : 0.0f));
    kept += mask[i];
  }
  CHECK(kept / 10'000 == Approx(0.6).margin(0.02));
  // The same program may be told that it does not train.
  CHECK(apply({"Dropout", 12}, {f32({10'000}, x), f32({}, {0.4f}), inferring}) == x);
  CHECK(apply({"Dropout", 12}, {f32({10'000}, x), f32({}, {0.0f}), training}) == x);
}
