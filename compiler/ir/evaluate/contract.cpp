// Sums of products, the heart of convolutions and matrix products, straight from the
// strides of their operands. Each axis of the product steps through both operands and the
// accumulators; the innermost is chosen so that it is long and its steps are short, the
// others keep their order, kept axes outside of reduced ones, so that the accumulators of
// a piece of the innermost stay in the first cache: 4.7 MB of them for a layer of
// bert_base took longer to read and write than the products. Pieces come one after the
// other: of Winograd's weights, 6 x 3 numbers for each of some 100 000 filters, each
// piece of the filters is read and written while it is in a cache. Products are rounded
// to the dtype like those of a map, then added as reduce.cpp does.
#include "compiler/ir/evaluate/parts.h"

namespace svod {
namespace {

constexpr int64_t kPieceOfRow = 1024;

// One axis: steps in elements of both operands and in accumulators (0: reduced).
struct ContractedAxis {
  int64_t extent, a, b, acc;
};

// Smaller is a better innermost axis: first those that are longer than it takes to begin
// one, then those whose steps are all 0 or 1, then long ones.
auto inner_rank(const ContractedAxis& axis) {
  constexpr int64_t kShort = 16;
  int far = (axis.a > 1 || axis.a < 0) + (axis.b > 1 || axis.b < 0) + (axis.acc > 1);
  return std::tuple(axis.extent < kShort, far, -axis.extent);
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

// Writes the results of kept axes, which come first, and of the last of `axes`, whose
// results lie `step` apart and have an accumulator each; 0: it is reduced, too.
template <class T, class A>
void sum_box(std::span<const ContractedAxis> axes, const T* a, const T* b, T* out,
             int64_t step) {
  const ContractedAxis& axis = axes[0];
  if (axes.size() > 1 && axis.acc != 0) {
    for (int64_t i = 0; i < axis.extent; i++)
      sum_box<T, A>(axes.subspan(1), a + i * axis.a, b + i * axis.b, out + i * axis.acc,
                    step);
    return;
  }
  if (step == 0) {
    A total = 0;
    add_box<T, A>(axes, a, b, &total);
    *out = T(total);
    return;
  }
  A acc[kPieceOfRow];
  const int64_t results = axes.back().extent;
  std::fill_n(acc, results, A(0));
  add_box<T, A>(axes, a, b, acc);
  for (int64_t i = 0; i < results; i++) out[i * step] = T(acc[i]);
}

template <class T, class A>
void sum_in_pieces(std::vector<ContractedAxis> axes, const T* a, const T* b, T* out) {
  const ContractedAxis row = axes.back();
  if (row.acc == 0) return sum_box<T, A>(axes, a, b, out, 0);
  for (int64_t at = 0; at < row.extent; at += kPieceOfRow) {
    axes.back() = {std::min(kPieceOfRow, row.extent - at), row.a, row.b, 1};
    sum_box<T, A>(axes, a + at * row.a, b + at * row.b, out + at * row.acc, row.acc);
  }
}

} // namespace

void evaluate_sum_of_products(const Node& sum, const Strided& a, const Strided& b,
                              Tensor& out) {
  SVOD_CHECK(a.shape == b.shape && a.base->dtype == b.base->dtype) << "product";
  const std::vector<ContractedAxis> axes = product_axes(sum, a, b);
  with_compute_type(out.dtype, [&]<class T>(T) {
    using A = std::conditional_t<std::is_floating_point_v<T>, double, T>;
    T* to = reinterpret_cast<T*>(out.bytes.data());
    // Sums of nothing are zero, which is what is there.
    if (element_count(a.shape) == 0) return;
    sum_in_pieces<T, A>(axes, reinterpret_cast<const T*>(a.base->bytes.data()) + a.start,
                        reinterpret_cast<const T*>(b.base->bytes.data()) + b.start, to);
  });
}

} // namespace svod
