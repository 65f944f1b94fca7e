// Every function of the scalar library under a name of its own, to see that a target
// compiles them all and what they then call. Built by check_vectors.py.
#include "compiler/ir/scalar_angle.h"
#include "compiler/ir/scalar_convert.h"
#include "compiler/ir/scalar_power.h"

using namespace scalar;

#if SVOD_LANES > 1
template <class E> using Wide = Vector<E, SVOD_LANES>;
#else
template <class E> using Wide = E;
#endif

#define MAP(name, text, arity, result, cell)                                             \
  struct Cell##name {                                                                    \
    template <class T, class A>                                                          \
    static auto valid([[maybe_unused]] A a, [[maybe_unused]] T b, [[maybe_unused]] T c)  \
        -> decltype(cell);                                                               \
    template <class T, class A>                                                          \
    static SVOD_INLINE void run(void* to, [[maybe_unused]] A a, [[maybe_unused]] T b,    \
                                [[maybe_unused]] T c) {                                  \
      auto y = cell;                                                                     \
      *static_cast<decltype(y)*>(to) = y;                                                \
    }                                                                                    \
  };
#include "compiler/ir/ops.def"

template <class Cell, class E, class B> void run_cell(void* to, const void* from) {
  using T = Wide<E>;
  using A = Wide<B>;
  if constexpr (requires(A a, T b) { Cell::template valid<T, A>(a, b, b); }) {
    const T* in = static_cast<const T*>(from);
    Cell::template run<T, A>(to, *static_cast<const A*>(from), in[1], in[2]);
  }
}

#define MAP(name, text, arity, result, cell)                                             \
  extern "C" void name##_float(void* to, const void* from) {                             \
    run_cell<Cell##name, float, float>(to, from);                                        \
  }                                                                                      \
  extern "C" void name##_double(void* to, const void* from) {                            \
    run_cell<Cell##name, double, double>(to, from);                                      \
  }                                                                                      \
  extern "C" void name##_i8(void* to, const void* from) {                                \
    run_cell<Cell##name, i8, i8>(to, from);                                              \
  }                                                                                      \
  extern "C" void name##_i64(void* to, const void* from) {                               \
    run_cell<Cell##name, i64, i64>(to, from);                                            \
  }                                                                                      \
  extern "C" void name##_u32(void* to, const void* from) {                               \
    run_cell<Cell##name, u32, u32>(to, from);                                            \
  }
#include "compiler/ir/ops.def"

#define CAST(to_type, from_type)                                                         \
  extern "C" void cast_##from_type##_##to_type(Wide<to_type>* to,                        \
                                               Wide<from_type>* from) {                  \
    *to = convert_<to_type>(*from);                                                      \
  }
#define CASTS(from)                                                                      \
  CAST(i8, from)                                                                         \
  CAST(u8, from)                                                                         \
  CAST(i16, from)                                                                        \
  CAST(u16, from)                                                                        \
  CAST(i32, from)                                                                        \
  CAST(u32, from) CAST(i64, from) CAST(u64, from) CAST(float, from) CAST(double, from)
CASTS(i8)
CASTS(u32)
CASTS(i64)
CASTS(u64)
CASTS(float)
CASTS(double)

extern "C" void halves(Wide<float>* f, Wide<u16>* h) {
  f[0] = f16_to_float(h[0]);
  f[1] = bf16_to_float(h[0]);
  h[1] = float_to_f16(f[2]);
  h[2] = float_to_bf16(f[2]);
}
