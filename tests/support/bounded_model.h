// Layers on a tensor whose length only the run knows, beside the same layers on a tensor
// that has this length when packing: values and sizes must be the same.
#pragma once

#include "tests/support/import_model.h"

#include <algorithm>
#include <cmath>

namespace svod::import_test {

using Values = std::vector<float>;

inline const Values kMixed = {3, -1, 2, 0.5, -3, 4, 1, -2, 5, 7, -1, 6};
inline const Values kPositive = {3, 2, 0.5, 4, 1, 5, 7, 6};

inline std::string tensor_of(const char* name, Shape shape) {
  Values values;
  for (int64_t i = 0; i < element_count(shape); ++i)
    values.push_back(static_cast<float>((i * 7 % 11) - 5) / 4);
  return floats(name, shape, values);
}

struct Result {
  Values values;
  Shape shape;
  bool operator==(const Result&) const = default;
};

// `nodes` make y [1, channels, n] of v [1, 1, n], the positive elements of x [12].
inline Result of_bounded(std::vector<std::string> nodes,
                         std::vector<std::string> constants, int64_t version = 17) {
  std::vector<std::string> all{node("Greater", {"x", "zero"}, {"c"}),
                               node("Compress", {"x", "c"}, {"kept"}),
                               node("Unsqueeze", {"kept", "front"}, {"v"})};
  all.insert(all.end(), nodes.begin(), nodes.end());
  constants.push_back(floats("zero", {}, {0}));
  constants.push_back(ints("front", {2}, {0, 1}));
  const Imported model = imported(
      import_test::model({all, {value("x", {12})}, {value("y", {""})}, constants},
                         version, opset("com.microsoft", 1)));
  const Evaluated run = evaluate(*model.graph, {f32({12}, kMixed)});
  REQUIRE(run.failed == kNoNode);
  REQUIRE(model.interface.extents.contains(0));
  const Tensor& extents = run.outputs[model.interface.extents.at(0)];
  Shape shape(static_cast<size_t>(element_count(extents.shape)));
  std::memcpy(shape.data(), extents.bytes.data(), extents.bytes.size());
  // The elements that are meant lie at the front of every row of the bound.
  const Values all_values = floats_of(run.outputs[0]);
  const int64_t bound = run.outputs[0].shape.back();
  REQUIRE(shape.back() <= bound);
  Values values;
  for (int64_t row = 0; row < std::ssize(all_values) / bound; ++row)
    values.insert(values.end(), all_values.begin() + row * bound,
                  all_values.begin() + row * bound + shape.back());
  return {values, shape};
}

inline Result of_known(const std::vector<std::string>& nodes,
                       std::vector<std::string> constants, int64_t version = 17) {
  const Imported model = imported(
      import_test::model({nodes, {value("v", {1, 1, 8})}, {value("y", {""})}, constants},
                         version, opset("com.microsoft", 1)));
  const Evaluated run = evaluate(*model.graph, {f32({1, 1, 8}, kPositive)});
  REQUIRE(run.failed == kNoNode);
  return {floats_of(run.outputs[0]), run.outputs[0].shape};
}

inline void check_same(const std::string& made, std::vector<std::string> constants = {}) {
  CHECK(of_bounded({made}, constants) == of_known({made}, constants));
}

// Where sums of more numbers round differently.
inline void check_close(const std::vector<std::string>& nodes,
                        const std::vector<std::string>& constants = {},
                        int64_t version = 17) {
  const Result bounded = of_bounded(nodes, constants, version),
               known = of_known(nodes, constants, version);
  CHECK(bounded.shape == known.shape);
  REQUIRE(bounded.values.size() == known.values.size());
  for (size_t i = 0; i < known.values.size(); ++i)
    CHECK(std::fabs(bounded.values[i] - known.values[i]) < 1e-5F);
}

} // namespace svod::import_test
