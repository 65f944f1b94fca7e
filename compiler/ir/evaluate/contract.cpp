// Sums of products, the heart of convolutions and matrix products, straight from the
// strides of their operands. Each axis of the product steps through both operands and the
// accumulators; the innermost is chosen so that its steps are short, the others keep
// their order, kept axes outside of reduced ones, so that the accumulators of a piece of
// the innermost stay in the first cache: 4.7 MB of them for a layer of bert_base took
// longer to read and write than the products. Products are rounded to the dtype like
// those of a map, then added as reduce.cpp does.
#include "compiler/ir/evaluate/parts.h"

namespace svod {
namespace {

// One axis: steps in elements of both operands and in accumulators (0: reduced).
struct ContractedAxis {
  int64_t extent, a, b, acc;
};

// Smaller is a better innermost axis: first those whose steps are all 0 or 1, then long
// ones.
auto inner_rank(const ContractedAxis& axis) {
  int far = (axis.a > 1 || axis.a < 0) + (axis.b > 1 || axis.b < 0) + (axis.acc > 1);
  return std::pair(far, -axis.extent);
}

std::vector<ContractedAxis> product_axes(const Node& sum, const Strided& a,
                                         const Strided& b) {
  Shape strides = row_major_strides(sum.shape);
  std::vector<ContractedAxis> axes;
  for (size_t i = 0; i < a.shape.size(); i++) {
    bool reduced = std::count(sum.payload.begin(), sum.payload.end(), int64_t(i)) != 0;
    ContractedAxis axis{a.shape[i], a.strides[i], b.strides[i], reduced ? 0 : strides[i]};
    if (axis.extent == 1) continue;
    ContractedAxis* last = axes.empty() ? nullptr : &axes.back();
    if (last && last->a == axis.a * axis.extent && last->b == axis.b * axis.extent &&
        last->acc == axis.acc * axis.extent)
      *last = {last->extent * axis.extent, axis.a, axis.b, axis.acc};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) return {{1, 0, 0, 0}};
  std::stable_partition(axes.begin(), axes.end(),
                        [](const ContractedAxis& axis) { return axis.acc != 0; });
  auto inner = std::min_element(axes.begin(), axes.end(),
                                [](const ContractedAxis& x, const ContractedAxis& y) {
                                  return inner_rank(x) < inner_rank(y);
                                });
  std::rotate(inner, inner + 1, axes.end());
  return axes;
}

template <class T, class A>
void add_row(const ContractedAxis& axis, const T* a, const T* b, A* acc) {
  const int64_t n = axis.extent;
  if (axis.acc == 0) {
    A total = *acc;
    for (int64_t i = 0; i < n; i++)
      total = A(total + A(T(a[i * axis.a] * b[i * axis.b])));
    *acc = total;
  } else if (axis.acc == 1 && axis.a == 0 && axis.b == 1) {
    for (int64_t i = 0; i < n; i++) acc[i] = A(acc[i] + A(T(*a * b[i])));
  } else if (axis.acc == 1 && axis.a == 1 && axis.b == 0) {
    for (int64_t i = 0; i < n; i++) acc[i] = A(acc[i] + A(T(a[i] * *b)));
  } else {
    for (int64_t i = 0; i < n; i++)
      acc[i * axis.acc] = A(acc[i * axis.acc] + A(T(a[i * axis.a] * b[i * axis.b])));
  }
}

template <class T, class A>
void add_box(std::span<const ContractedAxis> axes, const T* a, const T* b, A* acc) {
  const ContractedAxis& axis = axes[0];
  if (axes.size() == 1) return add_row(axis, a, b, acc);
  for (int64_t i = 0; i < axis.extent; i++)
    add_box(axes.subspan(1), a + i * axis.a, b + i * axis.b, acc);
}

// Writes one result after the other: of kept axes, which come first, and of pieces of the
// innermost one, `row`, which the last of `axes` becomes. Of a piece each result has an
// accumulator.
template <class T, class A>
void sum_box(std::span<ContractedAxis> axes, const ContractedAxis& row, const T* a,
             const T* b, T* out) {
  constexpr int64_t kPieceOfRow = 1024;
  const ContractedAxis& axis = axes[0];
  if (axes.size() > 1 && axis.acc != 0) {
    for (int64_t i = 0; i < axis.extent; i++)
      sum_box<T, A>(axes.subspan(1), row, a + i * axis.a, b + i * axis.b,
                    out + i * axis.acc);
    return;
  }
  if (row.acc == 0) {
    A total = 0;
    add_box<T, A>(axes, a, b, &total);
    *out = T(total);
    return;
  }
  A acc[kPieceOfRow];
  ContractedAxis& piece = axes.back();
  piece.acc = 1;
  for (int64_t at = 0; at < row.extent; at += kPieceOfRow) {
    piece.extent = std::min(kPieceOfRow, row.extent - at);
    std::fill_n(acc, piece.extent, A(0));
    add_box<T, A>(axes, a + at * row.a, b + at * row.b, acc);
    for (int64_t i = 0; i < piece.extent; i++) out[(at + i) * row.acc] = T(acc[i]);
  }
}

} // namespace

void evaluate_sum_of_products(const Node& sum, const Strided& a, const Strided& b,
                              Tensor& out) {
  SVOD_CHECK(a.shape == b.shape && a.base->dtype == b.base->dtype) << "product";
  std::vector<ContractedAxis> axes = product_axes(sum, a, b);
  with_compute_type(out.dtype, [&]<class T>(T) {
    using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    T* to = reinterpret_cast<T*>(out.bytes.data());
    // Sums of nothing are zero, which is what is there.
    if (element_count(a.shape) == 0) return;
    const ContractedAxis row = axes.back();
    sum_box<T, A>(axes, row, reinterpret_cast<const T*>(a.base->bytes.data()) + a.start,
                  reinterpret_cast<const T*>(b.base->bytes.data()) + b.start, to);
  });
}

} // namespace svod
