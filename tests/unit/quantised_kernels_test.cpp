// Quantised networks through the whole compiler. All scales are powers of two and all
// sums stay below 2^24, so every way of computing gives the same bits: the float form
// that the evaluator runs and the integer form that kernels run must agree exactly.
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "importer/formula/rule.h"
#include "importer/operators/onnx_ops.h"
#include "tests/support/check_kernels.h"
#include "tests/support/text_for.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>

using namespace svod;
using namespace svod::importer;
using namespace svod::test;

namespace {

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

int byte_sums(const Graph& g) {
  int count = 0;
  for (NodeId n : g.live_nodes()) {
    if (g[n].op != Op::ReduceSum || g[n].dtype != DType::I32) continue;
    if (g[g[n].inputs[0]].op != Op::Mul) continue;
    count += g.depends_on_input(n);
  }
  return count;
}

int failures(uint64_t first, uint64_t last, const Target& target) {
  int count = 0;
  for (uint64_t seed = first; seed <= last; ++seed) {
    std::string what = check_kernels(Quantised(seed).run(), target);
    if (what.empty()) continue;
    UNSCOPED_INFO("seed " << seed << " at " << target.levels[0].name << ", "
                          << target.levels[0].lanes << " lanes: " << what);
    ++count;
  }
  return count;
}

constexpr LevelChoice kLevels[] = {
    {"native"}, {"x86-64-v2"}, {"x86-64-v3"}, {"x86-64-v4"}, {"x86-64-v3", 4}};

// `seeds` of them at each level, from `first` on; the next level's begin `step` later.
int failures_by_level(uint64_t first, uint64_t seeds, uint64_t step) {
  int count = 0;
  for (const LevelChoice& level : kLevels) {
    if (auto target = target_for(level))
      count += failures(first, first + seeds - 1, *target);
    first += step;
  }
  return count;
}

// Whatever a float may be, quantised and as a float again.
RandomGraph corners(int64_t zero, int64_t beside) {
  std::vector<double> values{NAN,          -NAN,          INFINITY, -INFINITY, 0.0,
                             -0.0,         1e30,          -1e30,    3e9,       -3e9,
                             2147483648.0, -2147483648.0, 1e-40};
  for (int i = -12; i < 520; ++i) values.push_back(i / 2.0);
  for (int i = 0; i < 16; ++i) values.push_back(254.5 + std::ldexp(1.0, -2 - i));
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{static_cast<int64_t>(values.size())};
  const NodeId x = g.add_input("x", DType::F32, shape);
  out.inputs.push_back(make_tensor(DType::F32, shape, values));
  NodeId near = map(g, Op::Round, {x});
  if (zero != 0)
    near = map(g, Op::Add,
               {near, constant(g, DType::F32, shape, static_cast<double>(zero))});
  const NodeId byte = cast(g, near, DType::U8);
  NodeId wide = cast(g, byte, DType::I32);
  if (beside != 0)
    wide = map(g, Op::Add, {wide, constant_int(g, DType::I32, shape, beside)});
  // The sign of a zero shows in what divides by it.
  const NodeId again = cast(g, wide, DType::F32);
  g.add_output("byte", byte);
  g.add_output("again", again);
  g.add_output("inverse", map(g, Op::Reciprocal, {again}));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

// x sigmoid(x) of every byte, and what another byte becomes of it.
RandomGraph table_of(DType dtype) {
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{256};
  Tensor all{dtype, shape, {}};
  for (int i = 0; i < 256; ++i) all.bytes.push_back(static_cast<std::byte>(i));
  const NodeId x = g.add_input("x", dtype, shape);
  out.inputs.push_back(std::move(all));
  const NodeId value =
      map(g, Op::Mul, {cast(g, x, DType::F32), constant(g, DType::F32, shape, 0x1p-5)});
  const NodeId smooth = map(g, Op::Mul, {value, map(g, Op::Sigmoid, {value})});
  const NodeId steps =
      map(g, Op::Round, {map(g, Op::Mul, {smooth, constant(g, DType::F32, shape, 24)})});
  g.add_output("y", cast(g, steps, dtype));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

// A softmax over rows of scores, quantised by 1 / 256.
RandomGraph quantised_softmax() {
  RandomGraph out;
  Graph& g = out.graph;
  const Shape shape{6, 70};
  std::vector<double> scores;
  for (int i = 0; i < 6 * 70; ++i) scores.push_back(std::ldexp(i * 2659 % 997 - 498, -6));
  const NodeId x = g.add_input("x", DType::F32, shape);
  out.inputs.push_back(make_tensor(DType::F32, shape, scores));
  auto over_rows = [&](Op op, NodeId of) {
    return expand(g, reduce(g, op, of, {1}), shape);
  };
  const NodeId e = map(g, Op::Exp, {map(g, Op::Sub, {x, over_rows(Op::ReduceMax, x)})});
  const NodeId soft = map(g, Op::Div, {e, over_rows(Op::ReduceSum, e)});
  const NodeId scaled = map(g, Op::Div, {soft, constant(g, DType::F32, shape, 0x1p-8)});
  g.add_output("y", cast(g, map(g, Op::Round, {scaled}), DType::U8));
  out.tolerance.assign(g.size(), 0.0);
  return out;
}

} // namespace

TEST_CASE("a costly function of bytes is a table", "[kernels][quantised]") {
  for (const LevelChoice& level : kLevels)
    for (DType dtype : {DType::U8, DType::I8}) {
      const std::optional<Target> target = target_for(level);
      if (!target) continue;
      INFO(level.name << ' ' << level.lanes);
      const RandomGraph random = table_of(dtype);
      CHECK(check_kernels(random, *target).empty());
      const FusedGraph fused = fuse(random.graph, *target);
      REQUIRE(fused.kernels.size() == 1);
      // All of what is stored comes from it.
      const ScheduledKernel& k = fused.kernels[0];
      CHECK(optimize::schedule_kernel(k, target->levels[0]).tables ==
            std::vector<ExprId>{k.stages.back().value});
    }
}

TEST_CASE("floats become bytes as the evaluator says, whatever they are",
          "[kernels][quantised]") {
  for (const LevelChoice& level : kLevels)
    for (auto [zero, beside] : {std::pair{0, 0}, {128, -128}, {255, -255}, {7, 3}})
      if (auto target = target_for(level)) {
        INFO(level.name << ' ' << level.lanes << " zero " << zero);
        CHECK(check_kernels(corners(zero, beside), *target).empty());
      }
}

TEST_CASE("contractions of bytes are taken on integers", "[rewrite][quantised]") {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Quantised quantised(seed);
    RandomGraph random = quantised.run();
    INFO("seed " << seed);
    Graph better = rewrite::integer_contractions(random.graph);
    CHECK(byte_sums(better) == quantised.contractions());
    CHECK(compare_outputs(random, better).empty());
  }
}

TEST_CASE("a softmax that is quantised divides once per row", "[rewrite][quantised]") {
  const RandomGraph random = quantised_softmax();
  const Graph better = rewrite::simplify(rewrite::integer_contractions(random.graph));
  std::vector<Shape> inverses;
  for (NodeId n : better.live_nodes()) {
    CHECK(better[n].op != Op::Div);
    if (better[n].op == Op::Reciprocal) inverses.push_back(better[n].shape);
  }
  CHECK(inverses == std::vector<Shape>{{6, 1}});
  CHECK(compare_outputs(random, better) == "");
  const Graph exact =
      rewrite::integer_contractions(random.graph, {.merge_scales = false});
  CHECK(compare_outputs(random, exact) == "");
}

TEST_CASE("neighbouring windows share a vector of interleaved bytes",
          "[kernels][quantised]") {
  uint64_t seed = 0;
  for (int64_t kernel : {3, 4})
    for (int64_t stride : {1, 2})
      for (const LevelChoice& level : kLevels) {
        const std::optional<Target> target = target_for(level);
        if (!target) continue;
        const RandomGraph random = Quantised(++seed).depthwise(kernel, stride);
        INFO(level.name << ' ' << level.lanes << " kernel " << kernel << " stride "
                        << stride);
        CHECK(check_kernels(random, *target) == "");
        if (target->levels[0].dots == 0) continue;
        const FusedGraph fused =
            fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), *target);
        std::string text;
        bool begins = false;
        for (const ScheduledKernel& k : fused.kernels) {
          if (!k.has_dot_axis()) continue;
          text += text_for(k, target->levels[0]);
          for (const StageSchedule& s :
               optimize::schedule_kernel(k, target->levels[0]).stages)
            begins |= s.begins_with.has_value();
        }
        REQUIRE(text.find("interleave_dots(") != std::string::npos);
        // What the zero point of x makes of the weights is where sums begin.
        CHECK(begins);
        // Four taps leave no byte for the next window; few registers make short tiles.
        if (stride == 1 && target->levels[0].registers < 32) continue;
        const bool together = stride == 1 && kernel == 3;
        CHECK((text.find(" << 8;") != std::string::npos) == together);
      }
}

TEST_CASE("only what may leave 32 bits is looked at before it becomes a byte",
          "[kernels][quantised]") {
  uint64_t seed = 0;
  for (int64_t exponent : {-6, 4, 24})
    for (const LevelChoice& level : kLevels) {
      const std::optional<Target> target = target_for(level);
      if (!target) continue;
      const RandomGraph random = Quantised(++seed).depthwise(3, 1, exponent);
      INFO(level.name << ' ' << level.lanes << " exponent " << exponent);
      CHECK(check_kernels(random, *target) == "");
      const FusedGraph fused =
          fuse(rewrite::simplify(rewrite::integer_contractions(random.graph)), *target);
      const auto near = [](const Expr& e) { return e.near; };
      int count = 0;
      for (const ScheduledKernel& k : fused.kernels)
        count += k.has_dot_axis() && std::ranges::any_of(k.exprs, near);
      CHECK(count == (target->levels[0].dots != 0 && exponent < 0));
    }
}

TEST_CASE("a few weights of nine bits are products apart", "[kernels][quantised]") {
  struct Case {
    Shape weights;
    size_t far, apart;
    int64_t parts;
  };
  // Too many of them are two bytes each; sums too short for that stay 32 bits wide.
  const Case cases[] = {{{16, 8, 3, 3}, 1, 1, 1},
                        {{16, 8, 3, 3}, 4, 4, 1},
                        {{16, 8, 3, 3}, 24, 0, 2},
                        {{5, 2, 3, 3}, 1, 1, 1},
                        {{5, 2, 3, 3}, 5, 0, 0}};
  uint64_t seed = 0;
  for (const Case& c : cases)
    for (const LevelChoice& level : kLevels) {
      const RandomGraph random = Quantised(++seed).outliers(c.weights, c.far);
      const Graph better = rewrite::simplify(rewrite::integer_contractions(random.graph));
      INFO(level.name << " seed " << seed);
      CHECK(compare_outputs(random, better).empty());
      CHECK(byte_sums(better) == (c.parts != 0));
      size_t apart = 0;
      int64_t parts = 0;
      for (NodeId n : better.live_nodes()) {
        apart += better[n].op == Op::Slice;
        if (better[n].dtype == DType::I8 && !better.depends_on_input(n))
          parts = better[n].shape.size() > 7 ? better[n].shape.back() : 1;
      }
      CHECK(apart == c.apart);
      CHECK(parts == c.parts);
      if (auto target = target_for(level)) CHECK(check_kernels(random, *target) == "");
    }
}

TEST_CASE("products of bytes that both vary are dot products", "[kernels][quantised]") {
  uint64_t seed = 1;
  for (const LevelChoice& level : kLevels)
    for (bool transposed : {false, true})
      for (auto [a, b] : {std::pair{0, 128}, {128, 0}, {131, 117}}) {
        const std::optional<Target> target = target_for(level);
        if (!target) continue;
        RandomGraph random = Quantised(++seed).attention(transposed, a, b);
        INFO(level.name << ' ' << level.lanes << " seed " << seed);
        CHECK(check_kernels(random, *target) == "");
        const Graph better = rewrite::integer_contractions(random.graph);
        CHECK(byte_sums(better) == 1);
        CHECK(compare_outputs(random, better).empty());
        const FusedGraph fused = fuse(rewrite::simplify(better), *target);
        INFO(print(fused));
        CHECK(std::ranges::count_if(fused.kernels, &ScheduledKernel::has_dot_axis) == 1);
      }
}

TEST_CASE("quantised kernels give the bits of the float form",
          "[kernels][property][quantised]") {
  CHECK(failures_by_level(1, 8, 8) == 0);
}

TEST_CASE("many quantised kernels give the bits of the float form",
          "[kernels][property][quantised][long]") {
  CHECK(failures_by_level(100, 81, 100) == 0);
}
