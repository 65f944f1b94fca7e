// Random quantised networks, made by the operator rules as an importer makes them. All
// scales are powers of two and all sums stay below 2^24, so every way of computing gives
// the same bits.
#pragma once

#include "compiler/ir/build.h"
#include "importer/formula/rule.h"
#include "importer/operators/onnx_ops.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

namespace svod::test {

using namespace svod::importer;

class Quantised {
public:
  explicit Quantised(uint64_t seed) : random_(seed) {}

  // Up to three convolutions, each quantised again, and a product of matrices.
  RandomGraph run() {
    Shape shape{random_.between(1, 2), channels(), random_.between(4, 14),
                random_.between(4, 20)};
    Value x = input(shape);
    for (int64_t i = random_.between(0, 3); i > 0; --i) x = convolution(x);
    if (random_.chance(30)) {
      x = integer_convolution(x);
    } else if (random_.chance(60)) {
      x = matrix_product(x);
    }
    g().add_output("y", x.node);
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }
  int contractions() const { return contractions_; }

  // Queries times keys: both vary, in either order of their axes.
  RandomGraph attention(bool transposed, int64_t zero_a, int64_t zero_b) {
    const int64_t heads = random_.between(1, 3), rows = random_.between(4, 40),
                  length = 4 * random_.between(4, 20), columns = random_.between(16, 70);
    const Value a = activation({heads, rows, length}, zero_a);
    const Value b = activation(transposed ? Shape{heads, columns, length}
                                          : Shape{heads, length, columns},
                               zero_b);
    NodeId second = dequantised(b);
    if (transposed) second = permute(g(), second, {0, 2, 1});
    g().add_output("y", apply("MatMul", {dequantised(a), second}));
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }

  // Weights of which `far` need nine bits after their zero point, the first at the very
  // beginning.
  RandomGraph outliers(const Shape& of_weights, size_t far) {
    const Value x = input({1, of_weights[1], 9, 13});
    Tensor values = bytes(DType::U8, of_weights, 0, 248);
    // Their taps differ.
    const size_t step = values.bytes.size() / far - 1;
    for (size_t i = 0; i < far; ++i) values.bytes[i * step] = std::byte(255 - i % 7);
    const NodeId w =
        apply("DequantizeLinear", {known(values), scale(-6), zero_point(DType::U8, 121)});
    g().add_output("y", apply("Conv", {dequantised(x), w}, {ints("pads", {1, 1, 1, 1})}));
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }

  // A channel by itself, its pictures in whole vectors.
  RandomGraph depthwise(int64_t kernel, int64_t stride, int64_t exponent = -6) {
    ModelAttribute group;
    group.name = "group";
    group.i = 32;
    const Value x = activation({1, 32, 14, 17}, 7);
    const NodeId w = apply("DequantizeLinear",
                           {known(bytes(DType::I8, {32, 1, kernel, kernel}, -128, 127)),
                            scale(exponent), zero_point(DType::I8, 0)});
    const NodeId y = apply("Conv", {dequantised(x), w},
                           {group, ints("strides", {stride, stride}),
                            ints("pads", {1, 1, kernel / 2, kernel / 2})});
    g().add_output("y",
                   apply("QuantizeLinear", {y, scale(-4), zero_point(DType::U8, 99)}));
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }

  // A picture of `channels`, made by one convolution, which another one reads.
  RandomGraph wide(int64_t channels, int64_t outputs, int64_t rows, int64_t columns,
                   int64_t kernel, int64_t stride) {
    Value x = activation({1, 8, rows, columns}, 7);
    x = quantised_convolution(x, channels, 1, 1);
    const Value y = quantised_convolution(x, outputs, kernel, stride);
    g().add_output("y", y.node);
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }

  // Rows of bytes times a known matrix.
  RandomGraph product(int64_t rows, int64_t summed, int64_t columns) {
    const Value x = activation({rows, summed}, 131);
    const NodeId w =
        apply("DequantizeLinear", {known(bytes(DType::I8, {summed, columns}, -50, 50)),
                                   scale(-7), zero_point(DType::I8, 0)});
    const NodeId y = apply("MatMul", {dequantised(x), w});
    g().add_output("y",
                   apply("QuantizeLinear", {y, scale(-2), zero_point(DType::U8, 99)}));
    out_.tolerance.assign(g().size(), 0.0);
    return std::move(out_);
  }

private:
  struct Value { // (node - zero) * 2^exponent
    NodeId node;
    int64_t zero, exponent;
  };

  Graph& g() { return out_.graph; }
  Shape shape(NodeId id) { return g()[id].shape; }
  int64_t channels() {
    static constexpr int64_t kChannels[] = {3, 4, 6, 8, 16, 17, 24, 32};
    return kChannels[random_.below(std::size(kChannels))];
  }

  NodeId apply(const std::string& op, std::vector<NodeId> inputs,
               std::vector<ModelAttribute> attributes = {}) {
    ModelNode node;
    node.op_type = op;
    node.attributes = std::move(attributes);
    for (size_t i = 0; i < inputs.size(); ++i)
      node.inputs.push_back("x" + std::to_string(i));
    node.outputs = {"y"};
    const OnnxForm* row = find_onnx_form("", op, 19);
    NodeImport import(g(), node, 19, inputs, row->attributes);
    try {
      row->rule(import);
    } catch (const RuleFailure& stopped) {
      FAIL(op << ": " << stopped.why);
    }
    return import.results().at(0);
  }

  Tensor bytes(DType dtype, const Shape& shape, int64_t low, int64_t high) {
    std::vector<double> values(static_cast<size_t>(element_count(shape)));
    for (double& v : values) v = static_cast<double>(random_.between(low, high));
    return make_tensor(dtype, shape, values);
  }
  NodeId known(Tensor t) {
    return weight(g(), t.dtype, t.shape, g().add_blob(std::move(t.bytes)));
  }
  NodeId scale(int64_t exponent) {
    return constant(g(), DType::F32, {}, std::ldexp(1.0, static_cast<int>(exponent)));
  }
  NodeId zero_point(DType dtype, int64_t zero) {
    return constant_int(g(), dtype, {}, zero);
  }

  Value input(const Shape& shape) {
    bool is_signed = random_.chance(30);
    DType dtype = is_signed ? DType::I8 : DType::U8;
    NodeId id = g().add_input("x", dtype, shape);
    out_.inputs.push_back(is_signed ? bytes(dtype, shape, -128, 127)
                                    : bytes(dtype, shape, 0, 255));
    return {id, is_signed ? random_.between(-128, 127) : random_.between(0, 255), -5};
  }

  // Bytes that the graph makes itself.
  Value activation(const Shape& shape, int64_t zero) {
    NodeId id = g().add_input("x", DType::F32, shape);
    Tensor values = bytes(DType::I8, shape, -128, 127);
    std::vector<double> floats;
    for (std::byte v : values.bytes) floats.push_back(static_cast<int8_t>(v) / 16.0);
    out_.inputs.push_back(make_tensor(DType::F32, shape, floats));
    return {apply("QuantizeLinear", {id, scale(-4), zero_point(DType::U8, zero)}), zero,
            -4};
  }

  NodeId dequantised(const Value& x) {
    DType dtype = g()[x.node].dtype;
    return apply("DequantizeLinear",
                 {x.node, scale(x.exponent), zero_point(dtype, x.zero)});
  }

  // Weights of small numbers, one scale per output or one for all.
  NodeId weights(const Shape& shape, int64_t& exponent) {
    exponent = -6;
    // Nine bits after the zero point: two bytes each.
    nine_bits_ = false;
    // Shorter sums stay floats, and floats may take Winograd's forms.
    if (random_.chance(20) && element_count(shape) / shape[0] >= 64) {
      Tensor values = bytes(DType::U8, shape, 0, 255);
      nine_bits_ = std::ranges::any_of(
          values.bytes, [](std::byte b) { return std::to_integer<int>(b) > 121 + 127; });
      NodeId w = known(std::move(values));
      return apply("DequantizeLinear", {w, scale(exponent), zero_point(DType::U8, 121)});
    }
    if (random_.chance(30)) {
      NodeId w = known(bytes(DType::U8, shape, 118, 140));
      return apply("DequantizeLinear", {w, scale(exponent), zero_point(DType::U8, 128)});
    }
    NodeId w = known(bytes(DType::I8, shape, -12, 12));
    std::vector<float> scales;
    for (int64_t i = 0; i < shape[0]; ++i)
      scales.push_back(std::ldexp(1.0F, static_cast<int>(random_.between(-7, -6))));
    ModelAttribute axis;
    axis.name = "axis";
    axis.i = 0;
    std::vector<int64_t> zeros(static_cast<size_t>(shape[0]));
    NodeId zero = cast(g(), tensor_i64(g(), {shape[0]}, zeros), DType::I8);
    return apply("DequantizeLinear", {w, tensor_f32(g(), {shape[0]}, scales), zero},
                 {axis});
  }

  static ModelAttribute ints(const std::string& name, std::vector<int64_t> values) {
    ModelAttribute a;
    a.name = name;
    a.type = AttributeType::Ints;
    a.ints = std::move(values);
    return a;
  }

  Value quantised_convolution(const Value& x, int64_t outputs, int64_t kernel,
                              int64_t stride) {
    const int64_t pad = kernel / 2;
    const NodeId w = apply(
        "DequantizeLinear",
        {known(bytes(DType::I8, {outputs, shape(x.node)[1], kernel, kernel}, -50, 50)),
         scale(-7), zero_point(DType::I8, 0)});
    const NodeId y =
        apply("Conv", {dequantised(x), w},
              {ints("strides", {stride, stride}), ints("pads", {pad, pad, pad, pad})});
    Value out{y, 99, -2};
    out.node = apply("QuantizeLinear",
                     {y, scale(out.exponent), zero_point(DType::U8, out.zero)});
    return out;
  }

  Value convolution(const Value& x) {
    Shape in = shape(x.node);
    bool depthwise = random_.chance(25);
    int64_t kernel = 2 * random_.below(2) + 1, stride = random_.between(1, 2);
    int64_t outputs = depthwise ? in[1] : channels(), exponent = 0;
    NodeId w = weights({outputs, depthwise ? 1 : in[1], kernel, kernel}, exponent);
    ModelAttribute group;
    group.name = "group";
    group.i = depthwise ? in[1] : 1;
    bool small = in[2] < kernel || in[3] < kernel;
    int64_t pad = small || random_.chance(70) ? kernel / 2 : 0;
    NodeId y = apply(
        "Conv", {dequantised(x), w},
        {group, ints("strides", {stride, stride}), ints("pads", {pad, pad, pad, pad})});
    // A handful of weights is folded as a float before anything looks at it.
    int64_t products = (depthwise ? 1 : in[1]) * kernel * kernel;
    contractions_ += products > (nine_bits_ ? 63 : 1) && products * outputs > 16;
    if (random_.chance(50)) y = apply("Relu", {y});
    if (random_.chance(30) && shape(y) == in) y = apply("Add", {y, dequantised(x)});
    bool is_signed = random_.chance(30);
    DType dtype = is_signed ? DType::I8 : DType::U8;
    Value out{y, random_.between(is_signed ? -20 : 0, 100), random_.between(-5, -2)};
    out.node =
        apply("QuantizeLinear", {y, scale(out.exponent), zero_point(dtype, out.zero)});
    return out;
  }

  // Its zero point is an input: no border can be filled with it.
  Value integer_convolution(const Value& x) {
    DType dtype = g()[x.node].dtype;
    NodeId zero = g().add_input("zero", dtype, {});
    out_.inputs.push_back(bytes(dtype, {}, 0, 100));
    int64_t inputs = shape(x.node)[1];
    NodeId w = known(bytes(DType::I8, {channels(), inputs, 3, 3}, -12, 12));
    ++contractions_;
    return {apply("ConvInteger", {x.node, w, zero}, {ints("pads", {1, 1, 1, 1})}), 0, 0};
  }

  Value matrix_product(const Value& x) {
    Shape in = shape(x.node);
    int64_t rows = in[0] * in[1] * in[2], k = in[3], n = random_.between(1, 40);
    NodeId a = reshape(g(), x.node, {rows, k});
    bool per_column = random_.chance(40);
    NodeId b = known(bytes(DType::I8, {k, n}, -50, 50));
    NodeId b_zero = per_column ? known(bytes(DType::I8, {n}, -30, 30))
                               : zero_point(DType::I8, random_.between(-30, 30));
    contractions_ += k > 1;
    DType dtype = g()[x.node].dtype;
    return {apply("MatMulInteger", {a, b, zero_point(dtype, x.zero), b_zero}), 0, 0};
  }

  Random random_;
  RandomGraph out_;
  int contractions_ = 0;
  bool nine_bits_ = false; // of the last weights
};

} // namespace svod::test
