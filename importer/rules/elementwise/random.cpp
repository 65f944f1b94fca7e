// Random operators. Their numbers are drawn by counting (random.h): a packed program
// gives the same ones at each run, and another seed is another sequence. ONNX leaves the
// generator open, so no other runtime gives these numbers.
#include "importer/formula/random.h"
#include "importer/formula/movement.h"
#include "importer/formula/rule.h"

#include <cmath>

namespace svod::importer {
namespace {

// The type of the result: the attribute dtype, else what `otherwise` says.
DType result_type(NodeImport& node, DType otherwise) {
  if (!node.has("dtype")) return otherwise;
  const auto dtype = dtype_from_onnx(static_cast<int>(node.get_int("dtype")));
  if (!dtype) node.unsupported("dtype asks for an element type not held here");
  return *dtype;
}

DType float_result(NodeImport& node, DType otherwise) {
  const DType dtype = result_type(node, otherwise);
  require(node, is_float(dtype), "random numbers of this type need the attribute dtype");
  return dtype;
}

// The type numbers are drawn in: half precision is rounded once, at the end.
DType drawn_in(DType dtype) { return dtype == DType::F64 ? DType::F64 : DType::F32; }

Shape attribute_shape(NodeImport& node) {
  Shape shape = node.get_ints("shape");
  int64_t count = 1;
  for (int64_t extent : shape)
    if (__builtin_mul_overflow(count, within_reach(node, extent, "an extent of shape"),
                               &count) ||
        count > int64_t{1} << 31)
      node.unsupported("more than 2^31 random numbers");
  return shape;
}

void give_uniform(NodeImport& node, const Shape& shape, DType dtype) {
  const double low = node.get_float("low"), high = node.get_float("high");
  require(node, std::isfinite(low) && std::isfinite(high), "low and high must be finite");
  const Expr unit = random_uniform(node.g, stream_of(node), shape, drawn_in(dtype));
  give(node, 0, convert(unit * (high - low) + low, dtype));
}

void give_normal(NodeImport& node, const Shape& shape, DType dtype) {
  const double mean = node.get_float("mean"), scale = node.get_float("scale");
  require(node, std::isfinite(mean) && std::isfinite(scale),
          "mean and scale must be finite");
  const Expr normal = random_normal(node.g, stream_of(node), shape, drawn_in(dtype));
  give(node, 0, convert(normal * scale + mean, dtype));
}

bool is_zero(Expr x) {
  const auto values = known_floats(*x.g, x.id);
  return values && values->front() == 0;
}

// y = x / (1 - ratio) where an element is kept, which it is with probability 1 - ratio.
void drop_out(NodeImport& node, Expr ratio, Expr training, DType mask_type) {
  const Shape shape = node.shape(0);
  if (is_zero(training) || is_zero(ratio)) {
    node.output(0, node.input(0));
    if (node.wants_output(1))
      give(node, 1, {&node.g, constant(node.g, mask_type, shape, 1)});
    return;
  }
  const Expr x = wide(node, 0);
  const Expr unit = random_uniform(node.g, stream_of(node), shape, DType::F32);
  const Expr chance = convert(reshape(ratio, {}), DType::F32);
  // Nothing is dropped outside of training, nor by a ratio of 0: no number is below it.
  const Expr all = equal(reshape(training, {}), 0.0);
  const Expr kept = either(less_equal(chance, unit), all);
  const Expr scale = select(all, like(chance, 1), reciprocal(1 - chance));
  const Expr scaled = x * convert(scale, x.dtype());
  finish(node, select(kept, scaled, like(x, 0)));
  if (node.wants_output(1)) give(node, 1, convert(kept, mask_type));
}

} // namespace

void import_random_uniform(NodeImport& node) {
  give_uniform(node, attribute_shape(node), float_result(node, DType::F32));
}

void import_random_uniform_like(NodeImport& node) {
  give_uniform(node, node.shape(0), float_result(node, node.dtype(0)));
}

void import_random_normal(NodeImport& node) {
  give_normal(node, attribute_shape(node), float_result(node, DType::F32));
}

void import_random_normal_like(NodeImport& node) {
  give_normal(node, node.shape(0), float_result(node, node.dtype(0)));
}

// 1 with the probability that the input states.
void import_bernoulli(NodeImport& node) {
  const Expr chance = wide(node, 0);
  const Expr unit =
      random_uniform(node.g, stream_of(node), Shape(chance.shape()), chance.dtype());
  give(node, 0, convert(less(unit, chance), result_type(node, node.dtype(0))));
}

// Samples of class indices: how many of the running sums of the classes' probabilities
// lie at or below a number drawn from [0, their total).
void import_multinomial(NodeImport& node) {
  const Expr x = wide(node, 0);
  require(node, x.rank() == 2, "input 0 must be [batch, classes]");
  const int64_t batch = extent(x, 0), classes = extent(x, 1);
  require(node, classes > 0, "there is no class to draw");
  const int64_t samples = within_reach(node, node.get_int("sample_size"), "sample_size");
  const DType dtype = result_type(node, DType::I32);
  require(node, is_integer(dtype), "dtype must be an integer type");
  if (batch > 0 && samples > (int64_t{1} << 31) / batch)
    node.unsupported("more than 2^31 samples");

  const Expr weight = exp(x - reduce(Op::ReduceMax, x, {1}));
  const Expr sums = with(x, scan(node.g, Op::ScanSum, weight.id, 1));
  const Expr unit = random_uniform(node.g, stream_of(node), {batch, samples}, x.dtype());
  const Expr drawn = unit * cut(sums, 1, classes - 1, 1);
  // The last sum is left out: rounding may put a number at it.
  const Expr below =
      less_equal(unsqueeze(cut(sums, 1, 0, classes - 1), 1), unsqueeze(drawn, 2));
  const Expr count = sum(convert(below, DType::I64), {2});
  give(node, 0, convert(reshape(count, {batch, samples}), dtype));
}

// Until opset 6 is_test says whether the model trains; since 7 dropout by attributes only
// infers.
void import_dropout_attributes(NodeImport& node) {
  const bool training = node.opset < 7 && node.get_int("is_test") == 0;
  const DType mask_type = node.opset < 10 ? node.dtype(0) : DType::Bool;
  drop_out(node, number(node.g, DType::F32, node.get_float("ratio")),
           number(node.g, DType::Bool, training), mask_type);
}

void import_dropout(NodeImport& node) {
  for (size_t i : {1, 2})
    if (node.has_input(i))
      require(node, element_count(node.shape(i)) == 1, "inputs 1 and 2 must be scalars");
  const Expr ratio =
      node.has_input(1) ? operand(node, 1) : number(node.g, DType::F32, 0.5);
  const Expr training =
      node.has_input(2) ? operand(node, 2) : number(node.g, DType::Bool, 0);
  drop_out(node, ratio, training, DType::Bool);
}

} // namespace svod::importer
