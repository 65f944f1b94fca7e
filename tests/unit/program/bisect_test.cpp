// What --bisect calls wrong: more than roundings explain, nothing less.
#include "compiler/ir/build.h"
#include "packager/verify/compare.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <numeric>

namespace svod::packager {

namespace {

Tensor floats(Shape shape, const std::vector<float>& values) {
  Tensor out{DType::F32, std::move(shape), {}};
  out.bytes.resize(values.size() * sizeof(float));
  std::memcpy(out.bytes.data(), values.data(), out.bytes.size());
  return out;
}

// The elements of an output that are wrong when `got` stands there.
std::vector<int64_t> wrong(const Graph& g, const Tensor& input, const Tensor& got) {
  const std::map<NodeId, Tensor> known{{g.inputs()[0].node, input}};
  const NodeId root = g.outputs()[0].node;
  const Evaluated expected = evaluate_from(g, {root}, known, {});
  return wrong_elements(g, root, known, {}, expected.outputs[0], got);
}

} // namespace

TEST_CASE("a blocked buffer with a border holds its value", "[bisect]") {
  Buffer b{0, DType::F32, {1, 5, 3, 2}, blocked(4, 1, 4), -1, {}};
  b.layout.low = {0, 0, 1, 1}, b.layout.high = {0, 0, 2, 1};
  std::vector<float> memory(static_cast<size_t>(physical_count(b.layout, b.shape)), 0);
  std::vector<float> values(30);
  std::iota(values.begin(), values.end(), 1.0f);
  for (size_t i = 0; i < values.size(); ++i) {
    IndexPool pool;
    std::vector<Index> at;
    for (int64_t x : position_of(b.shape, static_cast<int64_t>(i)))
      at.push_back(IndexPool::constant(x));
    const int64_t offset = offset_of(b, static_cast<int64_t>(i));
    CHECK(layout_offset(pool, b.layout, b.shape, at) == IndexPool::constant(offset));
    memory[static_cast<size_t>(offset)] = values[i];
  }
  const auto* bytes = reinterpret_cast<const std::byte*>(memory.data());
  CHECK(value_in(b, bytes).bytes == floats(b.shape, values).bytes);
  CHECK_FALSE(wrong_border(b, bytes));
  memory[1] = 7; // the border's first row
  CHECK(wrong_border(b, bytes) == 1);
}

TEST_CASE("a sum that cancels may differ as far as its terms round", "[bisect]") {
  Graph g;
  g.add_output("y", reduce(g, Op::ReduceSum, g.add_input("x", DType::F32, {2, 3}), {1}));
  const Tensor x = floats({2, 3}, {123456.7f, 0.25f, -123456.7f, 1, 2, 3});
  CHECK(wrong(g, x, floats({2, 1}, {0.25f, 6})).empty());
  CHECK(wrong(g, x, floats({2, 1}, {0.5f, 6})).empty());
  CHECK(wrong(g, x, floats({2, 1}, {5e5f, 6})) == std::vector<int64_t>{0});
  CHECK(wrong(g, x, floats({2, 1}, {0.25f, 6.01f})) == std::vector<int64_t>{1});
  CHECK(wrong(g, x, floats({2, 1}, {NAN, 6})) == std::vector<int64_t>{0});
}

} // namespace svod::packager
