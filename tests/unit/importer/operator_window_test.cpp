// Corners of convolutions and poolings: what the specification says where
// implementations differ. Expected values are worked out by hand.
#include "tests/support/run_rule.h"

using namespace svod;
using namespace svod::rule_test;

TEST_CASE("an odd total of padding goes to one side", "[importer][rules]") {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4}), w = f32({1, 1, 2}, {1, 10});
  check_close(apply({"Conv", 11, {attribute("auto_pad", "SAME_UPPER")}}, {x, w}),
              {21, 32, 43, 4});
  check_close(apply({"Conv", 11, {attribute("auto_pad", "SAME_LOWER")}}, {x, w}),
              {10, 21, 32, 43});
}

TEST_CASE("grouped convolution keeps its groups apart", "[importer][rules]") {
  const Tensor x = f32({1, 4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
  const Tensor w = f32({2, 2, 1}, {1, 10, 100, 1000});
  check_close(apply({"Conv", 11, {attribute("group", int64_t{2})}}, {x, w}),
              {31, 42, 7500, 8600});
}

// Taps that meet only the zeros around the input are not computed.
TEST_CASE("taps far beyond the input of a convolution", "[importer][rules]") {
  const std::vector<float> x = {2, -3, 5, 7}, w = {1, 10, 100, 1000};
  for (int64_t dilation : {1, 2, 4, 5})
    for (int64_t low = 0; low < 12; ++low)
      for (int64_t high : {0, 5, 11})
        for (int64_t stride : {1, 2, 3}) {
          std::vector<float> want;
          for (int64_t at = -low; at + 3 * dilation < 4 + high; at += stride) {
            want.push_back(0);
            for (int64_t k = 0; k < 4; ++k)
              if (int64_t i = at + k * dilation; i >= 0 && i < 4)
                want.back() += w[k] * x[i];
          }
          if (want.empty()) continue;
          CAPTURE(dilation, low, high, stride);
          check_close(apply({"Conv",
                             11,
                             {attribute("dilations", std::vector<int64_t>{dilation}),
                              attribute("pads", std::vector<int64_t>{low, high}),
                              attribute("strides", std::vector<int64_t>{stride})},
                             1},
                            {f32({1, 1, 4}, x), f32({1, 1, 4}, w)}),
                      want);
        }
}

TEST_CASE("transposed convolution is the sum of scaled kernels", "[importer][rules]") {
  const Tensor x = f32({1, 1, 3}, {1, 2, 3}), w = f32({1, 1, 3}, {1, 10, 100});
  const auto with = [&](std::vector<ModelAttribute> attributes) {
    return apply({"ConvTranspose", 11, std::move(attributes)}, {x, w});
  };
  const ModelAttribute stride = attribute("strides", std::vector<int64_t>{2});
  check_close(with({}), {1, 12, 123, 230, 300});
  check_close(with({stride}), {1, 10, 102, 20, 203, 30, 300});
  check_close(with({stride, attribute("pads", std::vector<int64_t>{1, 1})}),
              {10, 102, 20, 203, 30});
  check_close(with({stride, attribute("output_padding", std::vector<int64_t>{1})}),
              {1, 10, 102, 20, 203, 30, 300, 0});
  check_close(with({attribute("dilations", std::vector<int64_t>{2})}),
              {1, 2, 13, 20, 130, 200, 300});
  check_close(with({attribute("strides", std::vector<int64_t>{5})}),
              {1, 10, 100, 0, 0, 2, 20, 200, 0, 0, 3, 30, 300});
}

TEST_CASE("transposed convolution in groups", "[importer][rules]") {
  const Tensor x = f32({1, 2, 2}, {1, 2, 3, 4}), w = f32({2, 1, 2}, {1, 10, 100, 1000});
  check_close(apply({"ConvTranspose", 11, {attribute("group", int64_t{2})}}, {x, w}),
              {1, 12, 20, 300, 3400, 4000});
  // Two channels of each group, in two phases of one tap.
  const Tensor wide = f32({2, 2, 2}, {1, 10, 2, 20, 3, 30, 4, 40});
  check_close(apply({"ConvTranspose",
                     11,
                     {attribute("group", int64_t{2}),
                      attribute("strides", std::vector<int64_t>{2})}},
                    {x, wide}),
              {1, 10, 2, 20, 2, 20, 4, 40, 9, 90, 12, 120, 12, 120, 16, 160});
}

TEST_CASE("poolings at the border", "[importer][rules]") {
  const Tensor x = f32({1, 1, 4}, {1, 2, 3, 4});
  const auto ints = [](const char* name, std::vector<int64_t> v) {
    return attribute(name, std::move(v));
  };
  const std::vector<ModelAttribute> three{ints("kernel_shape", {3}), ints("strides", {3}),
                                          ints("pads", {1, 1})};
  const auto plus = [&](ModelAttribute more) {
    std::vector<ModelAttribute> all = three;
    all.push_back(std::move(more));
    return all;
  };
  check_close(apply({"AveragePool", 19, three}, {x}), {1.5f, 3.5f});
  check_close(
      apply({"AveragePool", 19, plus(attribute("count_include_pad", int64_t{1}))}, {x}),
      {1, 7.0f / 3});
  // The last window has one element; nothing behind the input counts.
  check_close(apply({"AveragePool",
                     19,
                     {ints("kernel_shape", {3}), ints("strides", {3}),
                      attribute("ceil_mode", int64_t{1})}},
                    {x}),
              {2, 4});
  check_close(apply({"MaxPool", 12, three}, {f32({1, 1, 4}, {-1, -2, -3, -4})}),
              {-1, -3});
}

TEST_CASE("max pool tells where the first maximum was", "[importer][rules]") {
  const Tensor x = f32({1, 1, 2, 3}, {1, 5, 5, 2, 0, 7});
  Operator pool{"MaxPool", 12, {attribute("kernel_shape", std::vector<int64_t>{2, 2})}};
  pool.outputs = 2;
  CHECK(values<int64_t>(pool.run({x}).results.at(1)) == std::vector<int64_t>{1, 5});
  pool.attributes.push_back(attribute("storage_order", int64_t{1}));
  CHECK(values<int64_t>(pool.run({x}).results.at(1)) == std::vector<int64_t>{2, 5});
}
