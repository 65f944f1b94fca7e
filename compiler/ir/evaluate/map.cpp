// Maps and casts. The cells of ops.def are compiled here, once per compute type for which
// they are C++ (`~a` is none for floats; the verifier keeps such nodes out of a graph).
#include "compiler/ir/evaluate/parts.h"
#include "compiler/ir/scalar_angle.h"
#include "compiler/ir/scalar_math.h"
#include "compiler/ir/scalar_power.h"

namespace svod {
namespace {

// One struct per cell. A is the type of the first operand: T, but for select.
namespace cells {
using namespace scalar;
#define RESULT_same T
#define RESULT_second T
#define RESULT_boolean uint8_t
#define MAP(name, text, arity, result, cell)                                             \
  struct name {                                                                          \
    template <class T, class A>                                                          \
    static auto valid([[maybe_unused]] A a, [[maybe_unused]] T b, [[maybe_unused]] T c)  \
        -> decltype(cell);                                                               \
    template <class T, class A>                                                          \
    static RESULT_##result at([[maybe_unused]] A a, [[maybe_unused]] T b,                \
                              [[maybe_unused]] T c) {                                    \
      return RESULT_##result(cell);                                                      \
    }                                                                                    \
    template <class T> using Result = RESULT_##result;                                   \
  };
#include "compiler/ir/ops.def"
} // namespace cells

template <class T, class A, class R>
using CellLoop = void (*)(const A* a, const T* b, const T* c, R* to, int64_t count);

// Absent operands are read from operand 0, so every cell is called with three. All cells
// of the same types share this; on its own in each of them it took half the time that
// this file takes to compile.
template <class T, class A, class R>
void run_pieces(const Inputs& in, Tensor& out, CellLoop<T, A, R> loop) {
  const Tensor& second = in.size() > 1 ? *in[1] : *in[0];
  const Tensor& third = in.size() > 2 ? *in[2] : second;
  std::vector<A> room_a(kPiece);
  std::vector<T> room_b(kPiece), room_c(kPiece);
  std::vector<R> room_out(kPiece);
  for_pieces(element_count(out.shape), [&](int64_t at, int64_t count) {
    R* to = piece_room<R>(out, at, room_out.data());
    loop(load_piece<A>(*in[0], at, count, room_a.data()),
         load_piece<T>(second, at, count, room_b.data()),
         load_piece<T>(third, at, count, room_c.data()), to, count);
    store_piece<R>(out, at, count, to);
  });
}

template <class Cell, class T, class A> void run_cell(const Inputs& in, Tensor& out) {
  using R = typename Cell::template Result<T>;
  if constexpr (requires(A a, T b) { Cell::template valid<T, A>(a, b, b); }) {
    run_pieces<T, A, R>(in, out,
                        [](const A* a, const T* b, const T* c, R* to, int64_t count) {
                          for (int64_t i = 0; i < count; i++)
                            to[i] = Cell::template at<T, A>(a[i], b[i], c[i]);
                        });
  } else {
    SVOD_CHECK(false) << "a map on a type it is not defined for";
  }
}

template <class Cell> void run_map(const Inputs& in, Tensor& out) {
  if constexpr (std::is_same_v<Cell, cells::Select>)
    with_compute_type(in[1]->dtype,
                      [&]<class T>(T) { run_cell<Cell, T, uint8_t>(in, out); });
  else
    with_compute_type(in[0]->dtype, [&]<class T>(T) { run_cell<Cell, T, T>(in, out); });
}

template <class To, class From> void cast_elements(const Tensor& in, Tensor& out) {
  std::vector<From> room_in(kPiece);
  std::vector<To> room_out(kPiece);
  for_pieces(element_count(out.shape), [&](int64_t at, int64_t count) {
    const From* from = load_piece<From>(in, at, count, room_in.data());
    To* to = piece_room<To>(out, at, room_out.data());
    // To a narrow float the float between must not round a second time.
    bool twice = std::is_same_v<From, double> && to == room_out.data();
    for (int64_t i = 0; i < count; i++) to[i] = scalar::convert_<To>(from[i]);
    if constexpr (std::is_same_v<From, double> && std::is_same_v<To, float>)
      for (int64_t i = 0; twice && i < count; i++) to[i] = scalar::odd_float(from[i]);
    store_piece<To>(out, at, count, to);
  });
}

template <class From> void cast_to_bool(const Tensor& in, Tensor& out) {
  std::vector<From> room(kPiece);
  for_pieces(element_count(out.shape), [&](int64_t at, int64_t count) {
    const From* from = load_piece<From>(in, at, count, room.data());
    uint8_t* to = piece_room<uint8_t>(out, at, nullptr);
    for (int64_t i = 0; i < count; i++) to[i] = scalar::to_bool_(from[i]);
  });
}

} // namespace

void evaluate_map(const Node& node, const Inputs& in, Tensor& out) {
  for (const Tensor* input : in)
    SVOD_CHECK(input->shape == out.shape) << info(node.op).text << ": shapes differ";
  switch (node.op) {
#define MAP(name, text, arity, result, cell)                                             \
  case Op::name:                                                                         \
    return run_map<cells::name>(in, out);
#include "compiler/ir/ops.def"
  default:
    SVOD_CHECK(false) << "no map: " << info(node.op).text;
  }
}

bool map_is_defined(Op op, DType dtype) {
  return with_compute_type(dtype, [&]<class T>(T) {
    switch (op) {
#define MAP(name, text, arity, result, cell)                                             \
  case Op::name:                                                                         \
    return requires(T a) { cells::name::template valid<T, T>(a, a, a); };
#include "compiler/ir/ops.def"
    default:
      return false;
    }
  });
}

void widen(DType dtype, const std::byte* from, int64_t count, float* to) {
  [[maybe_unused]] auto none_to_float = [](auto) { return 0.0f; };
  using namespace scalar;
  switch (dtype) {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  case DType::name:                                                                      \
    for (int64_t i = 0; i < count; i++)                                                  \
      to[i] = codec##_to_float(reinterpret_cast<const store*>(from)[i]);                 \
    return;
#include "compiler/ir/dtypes.def"
  }
}

void narrow(DType dtype, const float* from, int64_t count, std::byte* to) {
  [[maybe_unused]] auto float_to_none = [](float) { return 0; };
  using namespace scalar;
  switch (dtype) {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  case DType::name:                                                                      \
    for (int64_t i = 0; i < count; i++)                                                  \
      reinterpret_cast<store*>(to)[i] = store(float_to_##codec(from[i]));                \
    return;
#include "compiler/ir/dtypes.def"
  }
}

void evaluate_cast(const Tensor& in, Tensor& out) {
  with_compute_type(in.dtype, [&]<class From>(From) {
    if (out.dtype == DType::Bool) return cast_to_bool<From>(in, out);
    with_compute_type(out.dtype, [&]<class To>(To) { cast_elements<To, From>(in, out); });
  });
}

} // namespace svod
