// The evaluator, op by op, against values worked out by hand or by the plainest loop.
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

using namespace svod;

namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

template <class T> constexpr DType dtype_of() {
  if (std::is_same_v<T, float>) return DType::F32;
  if (std::is_same_v<T, double>) return DType::F64;
  if (std::is_same_v<T, int8_t>) return DType::I8;
  if (std::is_same_v<T, uint8_t>) return DType::U8;
  if (std::is_same_v<T, uint16_t>) return DType::U16;
  if (std::is_same_v<T, int32_t>) return DType::I32;
  return DType::I64;
}

template <class T> Tensor tensor(Shape shape, const std::vector<T>& values) {
  Tensor t{dtype_of<T>(), std::move(shape), {}};
  t.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}
template <class T> std::vector<T> values(const Tensor& t) {
  std::vector<T> result(t.bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), t.bytes.data(), t.bytes.size());
  return result;
}
Tensor as(DType dtype, Tensor t) {
  t.dtype = dtype;
  return t;
}

// A graph with one input per given tensor; `make` returns the node to evaluate.
template <class F> Tensor run(const std::vector<Tensor>& inputs, F&& make) {
  Graph g;
  std::vector<NodeId> ids;
  for (const Tensor& t : inputs) ids.push_back(g.add_input("x", t.dtype, t.shape));
  g.add_output("y", make(g, ids));
  Evaluated result = evaluate(g, inputs);
  REQUIRE(result.failed == kNoNode);
  return std::move(result.outputs[0]);
}
using Ids = std::vector<NodeId>;

std::vector<float> counting(int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; i++) result.push_back(float(i));
  return result;
}
Tensor range(Shape shape) {
  int64_t count = element_count(shape);
  return tensor<float>(std::move(shape), counting(count));
}

template <class T> Tensor map_of(Op op, const std::vector<std::vector<T>>& operands) {
  std::vector<Tensor> in;
  for (const auto& operand : operands)
    in.push_back(tensor<T>({int64_t(operand.size())}, operand));
  return run(in, [&](Graph& g, const Ids& x) { return map(g, op, x); });
}

} // namespace

TEST_CASE("maps: cells per type", "[evaluate]") {
  CHECK(values<float>(map_of<float>(Op::Add, {{1, 2}, {3, 5}})) ==
        std::vector<float>{4, 7});
  CHECK(values<int8_t>(map_of<int8_t>(Op::Add, {{127, -128}, {1, -1}})) ==
        std::vector<int8_t>{-128, 127});
  CHECK(
      values<int32_t>(map_of<int32_t>(Op::Div, {{7, -7, 5, INT32_MIN}, {2, 2, 0, -1}})) ==
      std::vector<int32_t>{3, -3, 0, INT32_MIN});
  CHECK(
      values<int32_t>(map_of<int32_t>(Op::Mod, {{7, -7, 7, -7, 5}, {3, 3, -3, -3, 0}})) ==
      std::vector<int32_t>{1, 2, -2, -1, 0});
  CHECK(values<int32_t>(map_of<int32_t>(Op::Fmod, {{7, -7, 7, -7}, {3, 3, -3, -3}})) ==
        std::vector<int32_t>{1, -1, 1, -1});
  CHECK(values<uint8_t>(map_of<float>(Op::Less, {{1, 2, kNan}, {2, 2, 0}})) ==
        std::vector<uint8_t>{1, 0, 0});
  CHECK(values<uint8_t>(map_of<float>(Op::IsNan, {{1, kInf, kNan}})) ==
        std::vector<uint8_t>{0, 0, 1});
  CHECK(values<uint8_t>(map_of<uint8_t>(Op::ShiftLeft, {{1, 1, 3}, {7, 8, 1}})) ==
        std::vector<uint8_t>{128, 0, 6});
  CHECK(values<int64_t>(map_of<int64_t>(Op::Pow, {{2, -3, 5}, {10, 3, 0}})) ==
        std::vector<int64_t>{1024, -27, 1});
  std::vector<float> largest =
      values<float>(map_of<float>(Op::Max, {{1, kNan, 2}, {kNan, 1, 3}}));
  CHECK(std::isnan(largest[0]));
  CHECK(std::isnan(largest[1]));
  CHECK(largest[2] == 3);
}

TEST_CASE("maps: select and not on booleans", "[evaluate]") {
  Tensor flag = as(DType::Bool, tensor<uint8_t>({3}, {1, 0, 1}));
  Tensor a = tensor<float>({3}, {1, 2, 3}), b = tensor<float>({3}, {-1, -2, -3});
  Tensor y = run({flag, a, b}, [](Graph& g, const Ids& x) {
    return map(g, Op::Select, {map(g, Op::Not, {x[0]}), x[1], x[2]});
  });
  CHECK(values<float>(y) == std::vector<float>{-1, 2, -3});
}

TEST_CASE("maps: 16-bit floats round every result to even", "[evaluate]") {
  // 2049 lies between the halves 2048 and 2050; 2051 between 2050 and 2052.
  Tensor a = as(DType::F16, tensor<uint16_t>({2}, {0x6800, 0x6801}));
  Tensor one = as(DType::F16, tensor<uint16_t>({2}, {0x3c00, 0x3c00}));
  Tensor y = run({a, one}, [](Graph& g, const Ids& x) { return map(g, Op::Add, x); });
  CHECK(values<uint16_t>(y) == std::vector<uint16_t>{0x6800, 0x6802});
}

TEST_CASE("cast: truncates, saturates, wraps, rounds", "[evaluate]") {
  auto cast_to = [](const Tensor& t, DType dtype) {
    return run({t}, [&](Graph& g, const Ids& x) { return cast(g, x[0], dtype); });
  };
  Tensor x = tensor<float>({7}, {1.9f, -1.9f, 300, -300, kNan, kInf, -kInf});
  CHECK(values<int8_t>(cast_to(x, DType::I8)) ==
        std::vector<int8_t>{1, -1, 127, -128, 0, 127, -128});
  CHECK(values<uint8_t>(cast_to(x, DType::U8)) ==
        std::vector<uint8_t>{1, 0, 255, 0, 0, 255, 0});
  CHECK(values<int64_t>(cast_to(x, DType::I64)) ==
        std::vector<int64_t>{1, -1, 300, -300, 0, INT64_MAX, INT64_MIN});
  CHECK(values<uint8_t>(cast_to(x, DType::Bool)) ==
        std::vector<uint8_t>{1, 1, 1, 1, 1, 1, 1});
  CHECK(values<int8_t>(cast_to(tensor<int32_t>({2}, {300, -129}), DType::I8)) ==
        std::vector<int8_t>{44, 127});
  // 1 + 2^-11 + 2^-40 is above the middle of two halves; by way of a float it would be on
  // it.
  double above = 1 + 0x1p-11 + 0x1p-40;
  CHECK(values<uint16_t>(
            cast_to(tensor<double>({3}, {above, -above, 1 + 0x1p-11}), DType::F16)) ==
        std::vector<uint16_t>{0x3c01, 0xbc01, 0x3c00});
}

TEST_CASE("sources: iota, constant, weight", "[evaluate]") {
  Graph g;
  CHECK(values<int64_t>(evaluate_known(g, iota(g, DType::I64, {2, 3}, 1))) ==
        std::vector<int64_t>{0, 1, 2, 0, 1, 2});
  CHECK(values<float>(evaluate_known(g, iota(g, DType::F32, {2, 2}, 0))) ==
        std::vector<float>{0, 0, 1, 1});
  CHECK(values<float>(evaluate_known(g, constant(g, DType::F32, {3}, 2.5))) ==
        std::vector<float>{2.5f, 2.5f, 2.5f});
  std::vector<float> some{1, 2, 3};
  CHECK(values<float>(evaluate_known(g, tensor_f32(g, {3}, some))) == some);
}

TEST_CASE("views: permute of every order, against the index formula", "[evaluate]") {
  const Shape shape{2, 3, 4, 5};
  Tensor x = range(shape);
  Shape strides = row_major_strides(shape);
  std::vector<int64_t> perm{0, 1, 2, 3};
  do {
    Tensor y = run({x}, [&](Graph& g, const Ids& in) { return permute(g, in[0], perm); });
    std::vector<float> want;
    for (int64_t a = 0; a < shape[perm[0]]; a++)
      for (int64_t b = 0; b < shape[perm[1]]; b++)
        for (int64_t c = 0; c < shape[perm[2]]; c++)
          for (int64_t d = 0; d < shape[perm[3]]; d++)
            want.push_back(float(a * strides[perm[0]] + b * strides[perm[1]] +
                                 c * strides[perm[2]] + d * strides[perm[3]]));
    REQUIRE(values<float>(y) == want);
  } while (std::next_permutation(perm.begin(), perm.end()));
}

TEST_CASE("views: a transposition larger than a tile", "[evaluate]") {
  Tensor y = run({range({100, 70})},
                 [](Graph& g, const Ids& x) { return permute(g, x[0], {1, 0}); });
  std::vector<float> got = values<float>(y);
  for (int i = 0; i < 70; i++)
    for (int j = 0; j < 100; j++) REQUIRE(got[i * 100 + j] == float(j * 70 + i));
}

TEST_CASE("views: expand, slice, pad, window, concat", "[evaluate]") {
  Tensor y = run({range({2, 1})},
                 [](Graph& g, const Ids& x) { return expand(g, x[0], {2, 3}); });
  CHECK(values<float>(y) == std::vector<float>{0, 0, 0, 1, 1, 1});
  y = run({range({2, 4})}, [](Graph& g, const Ids& x) {
    return slice(g, x[0], {1, 3}, {-1, -2}, {2, 2});
  });
  CHECK(values<float>(y) == std::vector<float>{7, 5, 3, 1});
  y = run({range({1, 2})},
          [](Graph& g, const Ids& x) { return pad(g, x[0], {1, 0}, {0, 2}, -1); });
  CHECK(values<float>(y) == std::vector<float>{-1, -1, -1, -1, 0, 1, -1, -1});
  y = run({range({7})},
          [](Graph& g, const Ids& x) { return window(g, x[0], 0, 2, 2, 3); });
  CHECK(values<float>(y) == std::vector<float>{0, 3, 2, 5});
  y = run({range({2, 1}), range({2, 2})},
          [](Graph& g, const Ids& x) { return concat(g, {x[0], x[1], x[0]}, 1); });
  CHECK(values<float>(y) == std::vector<float>{0, 0, 1, 0, 1, 2, 3, 1});
}

TEST_CASE("reductions: axes, identities, NaN", "[evaluate]") {
  auto reduced = [](Op op, const Tensor& t, std::vector<int64_t> axes) {
    return run({t}, [&](Graph& g, const Ids& x) { return reduce(g, op, x[0], axes); });
  };
  Tensor x = range({2, 3, 2});
  CHECK(values<float>(reduced(Op::ReduceSum, x, {1})) ==
        std::vector<float>{6, 9, 24, 27});
  CHECK(values<float>(reduced(Op::ReduceSum, x, {0, 2})) ==
        std::vector<float>{14, 22, 30});
  CHECK(values<float>(reduced(Op::ReduceMax, x, {0, 1, 2})) == std::vector<float>{11});
  CHECK(values<float>(reduced(Op::ReduceMin, x, {2})) ==
        std::vector<float>{0, 2, 4, 6, 8, 10});
  Tensor none = tensor<float>({2, 0}, {});
  CHECK(values<float>(reduced(Op::ReduceSum, none, {1})) == std::vector<float>{0, 0});
  CHECK(values<float>(reduced(Op::ReduceProd, none, {1})) == std::vector<float>{1, 1});
  CHECK(values<float>(reduced(Op::ReduceMax, none, {1})) ==
        std::vector<float>{-kInf, -kInf});
  CHECK(values<float>(reduced(Op::ReduceMin, none, {1})) ==
        std::vector<float>{kInf, kInf});
  Tensor holed = tensor<float>({3}, {1, kNan, 2});
  CHECK(std::isnan(values<float>(reduced(Op::ReduceMax, holed, {0}))[0]));
  CHECK(std::isnan(values<float>(reduced(Op::ReduceMin, holed, {0}))[0]));
  CHECK(values<int8_t>(reduced(Op::ReduceProd, tensor<int8_t>({3}, {100, 3, 1}), {0})) ==
        std::vector<int8_t>{44});
  CHECK(values<int64_t>(reduced(Op::ReduceMin, tensor<int64_t>({2}, {5, -5}), {0})) ==
        std::vector<int64_t>{-5});
}

TEST_CASE("argmax and argmin: ties and NaN", "[evaluate]") {
  auto arg = [](Op op, std::vector<float> v, bool last) {
    Tensor t = tensor<float>({int64_t(v.size())}, v);
    return values<int64_t>(run({t}, [&](Graph& g, const Ids& x) {
      return arg_reduce(g, op, x[0], 0, last);
    }))[0];
  };
  CHECK(arg(Op::ArgMax, {1, 3, 3, 2}, false) == 1);
  CHECK(arg(Op::ArgMax, {1, 3, 3, 2}, true) == 2);
  CHECK(arg(Op::ArgMin, {1, 3, 1, 2}, false) == 0);
  CHECK(arg(Op::ArgMin, {1, 3, 1, 2}, true) == 2);
  CHECK(arg(Op::ArgMax, {1, kNan, kInf, kNan}, false) == 1);
  CHECK(arg(Op::ArgMax, {1, kNan, kInf, kNan}, true) == 3);
  Tensor y = run({range({2, 2, 2})}, [](Graph& g, const Ids& x) {
    return arg_reduce(g, Op::ArgMax, x[0], 1, false);
  });
  CHECK(y.shape == Shape{2, 1, 2});
  CHECK(values<int64_t>(y) == std::vector<int64_t>{1, 1, 1, 1});
}

TEST_CASE("scans run along their axis", "[evaluate]") {
  Tensor x = range({2, 3});
  auto scanned = [&](Op op, int64_t axis) {
    return values<float>(
        run({x}, [&](Graph& g, const Ids& in) { return scan(g, op, in[0], axis); }));
  };
  CHECK(scanned(Op::ScanSum, 1) == std::vector<float>{0, 1, 3, 3, 7, 12});
  CHECK(scanned(Op::ScanSum, 0) == std::vector<float>{0, 1, 2, 3, 5, 7});
  CHECK(scanned(Op::ScanProd, 1) == std::vector<float>{0, 0, 0, 3, 12, 60});
  CHECK(scanned(Op::ScanMax, 0) == std::vector<float>{0, 1, 2, 3, 4, 5});
  CHECK(scanned(Op::ScanMin, 0) == std::vector<float>{0, 1, 2, 0, 1, 2});
}

TEST_CASE("gather, scatter and their checks", "[evaluate]") {
  Tensor x = range({2, 3}), index = tensor<int64_t>({2, 2}, {2, 0, 1, 1});
  Tensor y =
      run({x, index}, [](Graph& g, const Ids& in) { return gather(g, in[0], in[1], 1); });
  CHECK(values<float>(y) == std::vector<float>{2, 0, 4, 4});
  auto scattered = [&](Combiner how) {
    Tensor update = tensor<float>({2, 2}, {10, 20, 30, 40});
    return values<float>(run({x, index, update}, [&](Graph& g, const Ids& in) {
      return scatter(g, in[0], in[1], in[2], 1, how);
    }));
  };
  CHECK(scattered(Combiner::Set) == std::vector<float>{20, 1, 10, 3, 40, 5});
  CHECK(scattered(Combiner::Add) == std::vector<float>{20, 1, 12, 3, 74, 5});
  CHECK(scattered(Combiner::Max) == std::vector<float>{20, 1, 10, 3, 40, 5});

  for (int64_t wrong : {-1, 3}) {
    Graph g;
    NodeId a = g.add_input("x", DType::F32, {2, 3});
    NodeId b = g.add_input("i", DType::I64, {2, 1});
    NodeId node = gather(g, a, b, 1);
    g.add_output("y", node);
    Evaluated result = evaluate(g, {x, tensor<int64_t>({2, 1}, {0, wrong})});
    CHECK(result.failed == node);
    CHECK(result.outputs.empty());
  }
}

TEST_CASE("argsort is stable, NaN comes last", "[evaluate]") {
  auto sorted = [](std::vector<float> v, bool descending) {
    Tensor t = tensor<float>({int64_t(v.size())}, v);
    return values<int64_t>(run(
        {t}, [&](Graph& g, const Ids& x) { return argsort(g, x[0], 0, descending); }));
  };
  CHECK(sorted({2, kNan, 1, 2, 1}, false) == std::vector<int64_t>{2, 4, 0, 3, 1});
  CHECK(sorted({2, kNan, 1, 2, 1}, true) == std::vector<int64_t>{0, 3, 2, 4, 1});
}

TEST_CASE("a graph's values are freed and outputs may repeat", "[evaluate]") {
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2});
  NodeId sum = map(g, Op::Add, {x, x});
  g.add_output("a", sum);
  g.add_output("b", sum);
  g.add_output("c", x);
  Evaluated result = evaluate(g, {tensor<float>({2}, {1, 2})});
  REQUIRE(result.outputs.size() == 3);
  CHECK(values<float>(result.outputs[0]) == std::vector<float>{2, 4});
  CHECK(values<float>(result.outputs[1]) == std::vector<float>{2, 4});
  CHECK(values<float>(result.outputs[2]) == std::vector<float>{1, 2});
}

namespace {

std::vector<float> waves(int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; i++) result.push_back(float((i * 37) % 101) / 16 - 3);
  return result;
}

} // namespace

TEST_CASE("a matrix product is summed from strides", "[evaluate]") {
  const int m = 5, k = 7, n = 6, batch = 2;
  std::vector<float> a = waves(batch * m * k), b = waves(k * n);
  Tensor y = run({tensor<float>({batch, m, k}, a), tensor<float>({k, n}, b)},
                 [](Graph& g, const Ids& x) { return matmul(g, x[0], x[1]); });
  REQUIRE(y.shape == Shape{batch, m, n});
  std::vector<float> got = values<float>(y);
  for (int i = 0; i < batch * m; i++)
    for (int j = 0; j < n; j++) {
      double want = 0;
      for (int l = 0; l < k; l++) want += double(a[i * k + l] * b[l * n + j]);
      REQUIRE(got[i * n + j] == float(want));
    }
}

TEST_CASE("a strided, padded convolution is summed from strides", "[evaluate]") {
  const int channels = 3, size = 9, filters = 4, kernel = 3;
  std::vector<float> x = waves(channels * size * size);
  std::vector<float> w = waves(filters * channels * kernel * kernel);
  Tensor y = run(
      {tensor<float>({1, channels, size, size}, x),
       tensor<float>({filters, channels, kernel, kernel}, w)},
      [&](Graph& g, const Ids& in) {
        NodeId p = pad(g, in[0], {0, 0, 1, 1}, {0, 0, 1, 1}, 0);
        p = window(g, window(g, p, 2, kernel, 2, 1), 3, kernel, 2, 1);
        const Shape shape{1, filters, channels, 5, 5, kernel, kernel};
        p = broadcast_to(g, reshape(g, p, {1, 1, channels, 5, 5, kernel, kernel}), shape);
        NodeId q = reshape(g, in[1], {1, filters, channels, 1, 1, kernel, kernel});
        NodeId products = map(g, Op::Mul, {p, broadcast_to(g, q, shape)});
        return reduce(g, Op::ReduceSum, products, {2, 5, 6});
      });
  std::vector<float> got = values<float>(y);
  for (int f = 0; f < filters; f++)
    for (int i = 0; i < 25; i++) {
      double want = 0;
      for (int c = 0; c < channels; c++)
        for (int t = 0; t < kernel * kernel; t++) {
          int row = i / 5 * 2 + t / 3 - 1, column = i % 5 * 2 + t % 3 - 1;
          if (row < 0 || column < 0 || row >= size || column >= size) continue;
          want += double(x[(c * size + row) * size + column] *
                         w[(f * channels + c) * kernel * kernel + t]);
        }
      REQUIRE(got[f * 25 + i] == float(want));
    }
}

TEST_CASE("views of views, with and without a reshape between, are the same values",
          "[evaluate]") {
  // Run one node at a time, each result laid out, against the whole graph at once.
  auto build = [](Graph& g, NodeId x) {
    NodeId a = permute(g, x, {2, 0, 1});             // 4 2 3
    NodeId b = reshape(g, a, {4, 6});                // strides can not say this
    NodeId c = slice(g, b, {3, 1}, {-1, 2}, {4, 2}); // 4 2
    NodeId d = reshape(g, c, {2, 2, 1, 2});          // and this they can
    NodeId e = expand(g, d, {2, 2, 3, 2});
    return reshape(g, window(g, e, 0, 2, 1, 1), {12, 2}); // 1 2 3 2 2
  };
  Graph g;
  NodeId x = g.add_input("x", DType::F32, {2, 3, 4});
  NodeId root = build(g, x);
  g.add_output("y", root);
  std::map<NodeId, Tensor> by_node{{x, range({2, 3, 4})}};
  for (NodeId id : g.live_nodes()) {
    if (id == x) continue;
    REQUIRE(evaluate_node(g, id, {&by_node.at(g[id].inputs[0])}, by_node[id]));
  }
  Evaluated all = evaluate(g, {range({2, 3, 4})});
  CHECK(values<float>(all.outputs[0]) == values<float>(by_node.at(root)));
}

TEST_CASE("a product with another reader than its sum", "[evaluate]") {
  Tensor x = range({2, 3});
  Graph g;
  NodeId a = g.add_input("x", DType::F32, {2, 3});
  NodeId product = map(g, Op::Mul, {a, a});
  NodeId by_row = reduce(g, Op::ReduceSum, product, {1});
  NodeId by_column = reduce(g, Op::ReduceSum, product, {0});
  g.add_output("row", by_row);
  g.add_output("column", by_column);
  Evaluated both = evaluate(g, {x});
  CHECK(values<float>(both.outputs[0]) == std::vector<float>{5, 50});
  CHECK(values<float>(both.outputs[1]) == std::vector<float>{9, 17, 29});
  g.add_output("product", product);
  CHECK(values<float>(evaluate(g, {x}).outputs[2]) ==
        std::vector<float>{0, 1, 4, 9, 16, 25});
}
