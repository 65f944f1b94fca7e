// Reductions and scans. The input is walked once in its own order; each axis steps
// through the accumulators by its stride in the result, or by 0 when it is reduced, and
// neighbours of one kind are walked as one. Sums and products of floats are accumulated
// in double: the reference should be nearer to the truth than any order of float
// additions a kernel may choose.
#include "compiler/ir/evaluate/parts.h"

#include <limits>

namespace svod {
namespace {

template <class T>
using Wide = std::conditional_t<std::is_floating_point_v<T>, double, T>;

// Each combination: its accumulator for elements of type T, identity and step.
struct Sum {
  template <class T> using Acc = Wide<T>;
  template <class A> static A identity() { return A(0); }
  template <class A> static A join(A a, A b) { return A(a + b); }
};
struct Product {
  template <class T> using Acc = Wide<T>;
  template <class A> static A identity() { return A(1); }
  template <class A> static A join(A a, A b) { return A(a * b); }
};
template <class A> A largest() {
  if constexpr (std::is_floating_point_v<A>)
    return std::numeric_limits<A>::infinity();
  else
    return std::numeric_limits<A>::max();
}
struct Minimum {
  template <class T> using Acc = T;
  template <class A> static A identity() { return largest<A>(); }
  template <class A> static A join(A a, A b) { return scalar::min_(a, b); }
};
struct Maximum {
  template <class T> using Acc = T;
  template <class A> static A identity() {
    return std::is_floating_point_v<A> ? A(-largest<A>())
                                       : std::numeric_limits<A>::lowest();
  }
  template <class A> static A join(A a, A b) { return scalar::max_(a, b); }
};

template <class F> void with_combination(Op op, F&& f) {
  switch (op) {
  case Op::ReduceSum:
  case Op::ScanSum:
    return f(Sum());
  case Op::ReduceProd:
  case Op::ScanProd:
    return f(Product());
  case Op::ReduceMin:
  case Op::ScanMin:
    return f(Minimum());
  default:
    return f(Maximum());
  }
}

struct ReducedAxis {
  int64_t extent, acc; // acc: stride in the accumulators, 0 when reduced
};

std::vector<ReducedAxis> reduce_axes(const Node& node, const Shape& shape) {
  Shape strides = row_major_strides(node.shape);
  std::vector<ReducedAxis> axes;
  for (size_t i = 0; i < shape.size(); i++) {
    bool reduced = std::count(node.payload.begin(), node.payload.end(), int64_t(i)) != 0;
    ReducedAxis axis{shape[i], reduced ? 0 : strides[i]};
    if (axis.extent == 1) continue;
    if (!axes.empty() && axes.back().acc == axis.acc * axis.extent)
      axes.back() = {axes.back().extent * axis.extent, axis.acc};
    else
      axes.push_back(axis);
  }
  if (axes.empty()) axes.push_back({1, 0});
  return axes;
}

// Reduces the elements at `in` over the axes; returns where it stopped reading.
template <class C, class T, class A>
const T* reduce_box(std::span<const ReducedAxis> axes, const T* in, A* acc) {
  const ReducedAxis& axis = axes[0];
  if (axes.size() > 1) {
    for (int64_t i = 0; i < axis.extent; i++)
      in = reduce_box<C>(axes.subspan(1), in, acc + i * axis.acc);
    return in;
  }
  if (axis.acc == 0) {
    A total = *acc;
    for (int64_t i = 0; i < axis.extent; i++) total = C::join(total, A(in[i]));
    *acc = total;
  } else {
    for (int64_t i = 0; i < axis.extent; i++)
      acc[i * axis.acc] = C::join(acc[i * axis.acc], A(in[i]));
  }
  return in + axis.extent;
}

// Writes accumulators as elements of `out`, rounding once.
template <class A> void store_all(Tensor& out, std::vector<A>& acc) {
  Tensor wide{DType::F64, out.shape, {}};
  const int64_t count = int64_t(acc.size());
  if constexpr (std::is_same_v<A, double>) {
    wide.bytes.resize(size_t(count) * sizeof(double));
    std::copy(acc.begin(), acc.end(), reinterpret_cast<double*>(wide.bytes.data()));
    evaluate_cast(wide, out);
  } else {
    A* to = piece_room<A>(out, 0, acc.data());
    if (to != acc.data()) std::copy(acc.begin(), acc.end(), to);
    store_piece<A>(out, 0, count, to);
  }
}

template <class C, class T>
void scan_elements(const AxisView& view, const T* in, Tensor& out) {
  using A = typename C::template Acc<T>;
  std::vector<A> acc(size_t(view.outer * view.extent * view.inner));
  A* to = acc.data();
  for (int64_t o = 0; o < view.outer; o++)
    for (int64_t k = 0; k < view.extent; k++)
      for (int64_t i = 0; i < view.inner; i++, in++, to++)
        *to = k == 0 ? A(*in) : C::join(to[-view.inner], A(*in));
  store_all(out, acc);
}

// The order of argmin and argmax: NaN is taken before any number.
template <class T> bool before(T x, T best, bool minimum, bool last) {
  bool x_nan = x != x, best_nan = best != best;
  if (x_nan || best_nan) return x_nan && (!best_nan || last);
  if (x == best) return last;
  return minimum ? x < best : x > best;
}

template <class T>
void arg_rows(const AxisView& view, const T* in, int64_t* out, bool minimum, bool last) {
  std::vector<T> best(size_t(view.inner));
  for (int64_t o = 0; o < view.outer; o++, out += view.inner)
    for (int64_t k = 0; k < view.extent; k++)
      for (int64_t i = 0; i < view.inner; i++, in++)
        if (k == 0 || before(*in, best[i], minimum, last)) best[i] = *in, out[i] = k;
}

// Stable, NaN last in either direction.
template <class T>
void sort_row(const T* in, int64_t step, bool descending, std::span<int64_t> order) {
  for (size_t i = 0; i < order.size(); i++) order[i] = int64_t(i);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    T x = in[i * step], y = in[j * step];
    if (x != x || y != y) return x == x;
    return descending ? x > y : x < y;
  });
}

} // namespace

void evaluate_reduce(const Node& node, const Tensor& in, Tensor& out) {
  std::vector<ReducedAxis> axes = reduce_axes(node, in.shape);
  with_combination(node.op, [&]<class C>(C) {
    with_compute_type(in.dtype, [&]<class T>(T) {
      using A = typename C::template Acc<T>;
      std::vector<A> acc(size_t(element_count(out.shape)), C::template identity<A>());
      std::vector<T> room;
      const T* from = load_all<T>(in, room);
      if (!in.bytes.empty())
        reduce_box<C>(std::span<const ReducedAxis>(axes), from, acc.data());
      store_all(out, acc);
    });
  });
}

void evaluate_scan(const Node& node, const Tensor& in, Tensor& out) {
  AxisView view = axis_view(in.shape, node.payload[0]);
  with_combination(node.op, [&]<class C>(C) {
    with_compute_type(in.dtype, [&]<class T>(T) {
      std::vector<T> room;
      scan_elements<C>(view, load_all<T>(in, room), out);
    });
  });
}

void evaluate_arg_reduce(const Node& node, const Tensor& in, Tensor& out) {
  AxisView view = axis_view(in.shape, node.payload[0]);
  const bool minimum = node.op == Op::ArgMin, last = node.payload[1] != 0;
  with_compute_type(in.dtype, [&]<class T>(T) {
    std::vector<T> room;
    const T* from = load_all<T>(in, room);
    arg_rows(view, from, reinterpret_cast<int64_t*>(out.bytes.data()), minimum, last);
  });
}

void evaluate_argsort(const Node& node, const Tensor& in, Tensor& out) {
  AxisView view = axis_view(in.shape, node.payload[0]);
  const bool descending = node.payload[1] != 0;
  const int64_t count = node.payload[2];
  int64_t* to = reinterpret_cast<int64_t*>(out.bytes.data());
  std::vector<int64_t> order(size_t(view.extent));
  with_compute_type(in.dtype, [&]<class T>(T) {
    std::vector<T> room;
    const T* from = load_all<T>(in, room);
    for (int64_t o = 0; o < view.outer; o++)
      for (int64_t i = 0; i < view.inner; i++) {
        const int64_t base = o * view.inner;
        sort_row(from + base * view.extent + i, view.inner, descending, order);
        for (int64_t k = 0; k < count; k++)
          to[base * count + k * view.inner + i] = order[size_t(k)];
      }
  });
}

} // namespace svod
