// Two ways of adding the same numbers differ in their last places, and how far is a
// matter of the numbers: a sum that cancels keeps few right digits, a value half way
// between two bytes may become either. So there is no one tolerance. Elements that differ
// by more than any sum of usual size does are looked at again: the evaluator computes
// them with every value moved by some units in its last place. How far that carries them
// is no kernel's fault.
#include "packager/verify/compare.h"

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "compiler/support/splitmix.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace svod::packager {

static uint64_t bits_at(const Tensor& t, int64_t element) {
  const auto size = static_cast<size_t>(byte_size(t.dtype));
  uint64_t bits = 0;
  std::memcpy(&bits, t.bytes.data() + static_cast<size_t>(element) * size, size);
  return bits;
}

double value_at(const Tensor& t, int64_t element) {
  return scalar_value(t.dtype, bits_at(t, element));
}

namespace {

// Of a magnitude of the element, and of the largest in the tensor.
constexpr double kRelative = 1e-4, kOfLargest = 2e-5;
// How often what the moves change is allowed.
constexpr double kMargin = 4;
constexpr int kMoves = 8;
// Units in the last place by which values are moved; of floats of two bytes and less.
constexpr double kUnits = 32, kNarrowUnits = 2;

// One unit in the last place of a number near one.
double unit(DType dtype) {
  if (dtype == DType::F64) return 0x1p-52;
  if (dtype == DType::F32) return 0x1p-23;
  if (dtype == DType::F16) return 0x1p-10;
  if (dtype == DType::BF16) return 0x1p-7;
  return 0x1p-2; // floats of a byte and less
}

double largest_in(const Tensor& t) {
  double largest = 0;
  for (int64_t i = 0; i < element_count(t.shape); ++i)
    if (const double value = std::fabs(value_at(t, i)); std::isfinite(value))
      largest = std::max(largest, value);
  return largest;
}

// The first move makes all magnitudes larger, the second smaller, the others differ from
// element to element. Whole numbers stay: they are indices, masks and counts, and sums of
// them are exact.
void move_elements(Tensor& t, double by, int move) {
  if (!is_float(t.dtype)) return;
  const auto size = static_cast<size_t>(byte_size(t.dtype));
  for (int64_t i = 0; i < element_count(t.shape); ++i) {
    const double value = value_at(t, i);
    if (value == std::rint(value) || !std::isfinite(value)) continue;
    const uint64_t random =
        mix_splitmix(static_cast<uint64_t>(i + 1) * kSplitmixStep + uint64_t(move));
    const bool up = move == 0 || (move > 1 && (random & 1) != 0);
    const uint64_t bits = scalar_bits(t.dtype, value * (up ? 1 + by : 1 - by));
    std::memcpy(t.bytes.data() + static_cast<size_t>(i) * size, &bits, size);
  }
}

// The value of `root` with all that it is computed from moved.
Evaluated evaluate_moved(const Graph& g, NodeId root,
                         const std::map<NodeId, Tensor>& known, const CallRunner& calls,
                         double by, int move) {
  std::map<NodeId, Tensor> given = known;
  for (auto& [id, value] : given) move_elements(value, by, move);
  return evaluate_from(g, {root}, given, calls, [&](NodeId id, Tensor& value) {
    if (id != root) move_elements(value, by, move);
  });
}

// By how much, relatively: the coarsest type decides.
double move_size(const Graph& g, NodeId root, const std::map<NodeId, Tensor>& known) {
  double coarsest = unit(DType::F64);
  for (NodeId id : nodes_between(g, {root}, known))
    if (is_float(g[id].dtype)) coarsest = std::max(coarsest, unit(g[id].dtype));
  return coarsest * (coarsest > unit(DType::F32) ? kNarrowUnits : kUnits);
}

double allowed(const Tensor& expected, int64_t element, double largest) {
  if (!is_float(expected.dtype)) return 0;
  const double units = unit(expected.dtype) / unit(DType::F32);
  const double wider = std::max(1.0, units / 64);
  const double relative = expected.dtype == DType::F64 ? 1e-9 : kRelative * wider;
  const double of_largest = expected.dtype == DType::F64 ? 1e-11 : kOfLargest * wider;
  return relative * std::fabs(value_at(expected, element)) + of_largest * largest;
}

bool near(const Tensor& expected, const Tensor& got, int64_t i, double tolerance) {
  const uint64_t a = bits_at(expected, i), b = bits_at(got, i);
  if (a == b) return true;
  const double x = scalar_value(expected.dtype, a), y = scalar_value(got.dtype, b);
  if (std::isnan(x) && std::isnan(y)) return true;
  // Integers that are equal as doubles and not in bits are 2^53 and beyond.
  if (!is_float(expected.dtype) && x == y) return false;
  return x == y || std::fabs(x - y) <= tolerance;
}

} // namespace

Shape position_of(const Shape& shape, int64_t element) {
  Shape at(shape.size());
  for (size_t i = shape.size(); i-- > 0; element /= shape[i]) at[i] = element % shape[i];
  return at;
}

int64_t offset_of(const Buffer& buffer, int64_t element) {
  const Layout& l = buffer.layout;
  const Dims dims = dims_of(l, buffer.shape);
  const Shape at = position_of(buffer.shape, element);
  int64_t offset = 0;
  for (size_t i = 0; i < l.order.size(); ++i) {
    const auto axis = static_cast<size_t>(l.order[i]);
    const bool in_blocks = l.order[i] == l.block_axis;
    offset += dims.strides[i] * (in_blocks ? at[axis] / l.block : at[axis] + l.low[axis]);
    if (in_blocks) offset += at[axis] % l.block;
  }
  return offset;
}

Tensor value_in(const Buffer& buffer, const std::byte* memory) {
  Tensor out{buffer.dtype, buffer.shape, {}};
  const auto size = static_cast<size_t>(byte_size(buffer.dtype));
  const int64_t count = element_count(buffer.shape);
  out.bytes.resize(static_cast<size_t>(count) * size);
  if (buffer.layout == row_major(buffer.shape.size())) {
    if (count != 0) std::memcpy(out.bytes.data(), memory, out.bytes.size());
    return out;
  }
  for (int64_t i = 0; i < count; ++i)
    std::memcpy(out.bytes.data() + static_cast<size_t>(i) * size,
                memory + static_cast<size_t>(offset_of(buffer, i)) * size, size);
  return out;
}

std::optional<int64_t> wrong_border(const Buffer& buffer, const std::byte* memory) {
  if (!buffer.layout.has_border()) return std::nullopt;
  Buffer whole = buffer; // the border is a part of this one's extents
  const Shape &low = buffer.layout.low, &high = buffer.layout.high;
  for (size_t i = 0; i < low.size(); ++i) whole.shape[i] += low[i] + high[i];
  whole.layout.low.assign(low.size(), 0), whole.layout.high.assign(low.size(), 0);
  const auto size = static_cast<size_t>(byte_size(buffer.dtype));
  for (int64_t element = 0; element < element_count(whole.shape); ++element) {
    const Shape at = position_of(whole.shape, element);
    bool inside = true;
    for (size_t i = 0; i < at.size(); ++i)
      inside = inside && at[i] >= low[i] && at[i] < low[i] + buffer.shape[i];
    const int64_t offset = offset_of(whole, element);
    uint64_t bits = 0;
    std::memcpy(&bits, memory + static_cast<size_t>(offset) * size, size);
    if (!inside && bits != buffer.layout.fill) return offset;
  }
  return std::nullopt;
}

std::vector<int64_t> distant_elements(const Tensor& expected, const Tensor& got) {
  std::vector<int64_t> out;
  if (expected.bytes == got.bytes) return out;
  const double largest = is_float(expected.dtype) ? largest_in(expected) : 0;
  for (int64_t i = 0; i < element_count(expected.shape); ++i)
    if (!near(expected, got, i, allowed(expected, i, largest))) out.push_back(i);
  return out;
}

std::vector<int64_t> wrong_elements(const Graph& g, NodeId root,
                                    const std::map<NodeId, Tensor>& known,
                                    const CallRunner& calls, const Tensor& expected,
                                    const Tensor& got) {
  std::vector<int64_t> wrong = distant_elements(expected, got);
  if (wrong.empty()) return wrong;
  const double by = move_size(g, root, known), largest = largest_in(expected);
  std::vector<double> spread(wrong.size());
  for (int move = 0; move < kMoves && !wrong.empty(); ++move) {
    const Evaluated other = evaluate_moved(g, root, known, calls, by, move);
    if (other.failed != kNoNode) continue;
    std::vector<int64_t> left;
    std::vector<double> left_spread;
    for (size_t k = 0; k < wrong.size(); ++k) {
      const double x = value_at(expected, wrong[k]);
      const double y = value_at(other.outputs[0], wrong[k]);
      const double change = x == y || (std::isnan(x) && std::isnan(y)) ? 0
                            : std::isfinite(x - y)                     ? std::fabs(x - y)
                                                                       : INFINITY;
      const double all = std::max(spread[k], change);
      if (near(expected, got, wrong[k],
               allowed(expected, wrong[k], largest) + kMargin * all))
        continue;
      left.push_back(wrong[k]);
      left_spread.push_back(all);
    }
    wrong = std::move(left);
    spread = std::move(left_spread);
  }
  return wrong;
}

std::string buffer_text(const Buffer& buffer) {
  return "%" + std::to_string(buffer.node) + ", " +
         type_text(buffer.dtype, buffer.shape) + " stored as " + print(buffer.layout);
}

std::string difference_text(const Tensor& expected, const Tensor& got,
                            const std::vector<int64_t>& wrong) {
  std::string at;
  for (int64_t i : position_of(expected.shape, wrong[0]))
    at += (at.empty() ? "" : ", ") + std::to_string(i);
  return std::to_string(wrong.size()) + " of " +
         std::to_string(element_count(expected.shape)) +
         " elements are wrong, the first at [" + at + "]: got " +
         scalar_text(got.dtype, bits_at(got, wrong[0])) + ", expected " +
         scalar_text(expected.dtype, bits_at(expected, wrong[0]));
}

} // namespace svod::packager
