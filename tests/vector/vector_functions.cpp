// Runs every cell of ops.def and every cast on the same samples, as kernels do: with T a
// vector of SVOD_LANES lanes (1: a scalar), and prints a hash of the results of each.
// check_vectors.py builds this for several targets; with fused multiply-add all must
// print the same as the host's compiler does for scalars, which is what the evaluator is
// made of.
#include "compiler/ir/scalar_angle.h"
#include "compiler/ir/scalar_convert.h"
#include "compiler/ir/scalar_power.h"

using namespace scalar;

namespace {

#ifdef SVOD_BARE
// Without a C library, so that a target needs no more than the compiler to be tested.
#ifdef __riscv
long system_call(long number, long a, long b, long c) {
  register long a7 __asm__("a7") = number, a0 __asm__("a0") = a, a1 __asm__("a1") = b,
                   a2 __asm__("a2") = c;
  __asm__ volatile("ecall" : "+r"(a0) : "r"(a7), "r"(a1), "r"(a2) : "memory");
  return a0;
}
#else
long system_call(long number, long a, long b, long c) {
  register long x8 __asm__("x8") = number, x0 __asm__("x0") = a, x1 __asm__("x1") = b,
                   x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
}
#endif
void put(const char* text) {
  long size = 0;
  while (text[size]) size++;
  system_call(64, 1, long(text), size);
}
#else
void put(const char* text) { __builtin_printf("%s", text); }
#endif

void put_line(const char* function, const char* dtype, u64 hash) {
  char digits[18] = {};
  for (int i = 0; i < 16; i++)
    digits[i] = "0123456789abcdef"[(hash >> (60 - 4 * i)) & 15];
  digits[16] = '\n';
  put(function), put(" "), put(dtype), put(" "), put(digits);
}

constexpr int kCount = 4096;
alignas(128) u64 room_a[kCount], room_b[kCount], room_c[kCount], room_out[kCount];

u64 next_random() {
  static u64 state = 1;
  state = state * 6364136223846793005u + 1442695040888963407u;
  return state ^ (state >> 29);
}

// A quarter of the samples are corners, a quarter has random bits, the rest is of
// middling size.
template <class E> E sample() {
  u64 random = next_random();
  if constexpr (!Lane<E>::kFloat) {
    constexpr E kCorners[] = {E(0),
                              E(1),
                              E(2),
                              E(3),
                              E(-1),
                              E(-2),
                              E(7),
                              E(~(E(1) << (kWidth<E> - 1))),
                              E(E(1) << (kWidth<E> - 1))};
    return random % 4 == 0 ? kCorners[random / 4 % 9] : E(random >> 7);
  } else {
    using U = typename Lane<E>::Uint;
    constexpr E kCorners[] = {0,      1,       2,       0.5, 3,           2.5,
                              E(1e9), kInf<E>, kNan<E>, 88,  E(0x1p-140), 700};
    if (random % 4 == 0) {
      E corner = kCorners[random / 4 % 12];
      return random & 256 ? -corner : corner;
    }
    if (random % 4 == 1) return bits_<E>(U(random >> 3));
    E size = E(i32(random >> 32)) * E(0x1p-31);
    for (u64 i = (random >> 8) % 16; i > 0; i--) size = size * E(2);
    return size * E(0x1p-5);
  }
}
template <class E> void fill(u64* room) {
  E* at = reinterpret_cast<E*>(room);
  for (int i = 0; i < kCount; i++) at[i] = sample<E>();
}

// Which bits a NaN has is not said.
template <class E> u64 hash_results() {
  using U = typename Lane<E>::Uint;
  const E* at = reinterpret_cast<const E*>(room_out);
  u64 hash = 0xcbf29ce484222325u;
  for (int i = 0; i < kCount; i++) {
    E value = at[i] == at[i] ? at[i] : E(0);
    hash = (hash ^ u64(bits_<U>(value)) ^ (at[i] == at[i] ? 0 : 1)) * 0x100000001b3u;
  }
  return hash;
}

#if SVOD_LANES > 1
template <class E> using Wide = Vector<E, SVOD_LANES>;
#else
template <class E> using Wide = E;
#endif

#define RESULT_same T
#define RESULT_second T
#define RESULT_boolean Like<T, u8>
#define MAP(name, text, arity, result, cell)                                             \
  struct Cell##name {                                                                    \
    template <class T, class A>                                                          \
    static auto valid([[maybe_unused]] A a, [[maybe_unused]] T b, [[maybe_unused]] T c)  \
        -> decltype(cell);                                                               \
    template <class T, class A>                                                          \
    static SVOD_INLINE auto at([[maybe_unused]] A a, [[maybe_unused]] T b,               \
                               [[maybe_unused]] T c) {                                   \
      return RESULT_##result(cell);                                                      \
    }                                                                                    \
  };
#include "compiler/ir/ops.def"

template <class Cell, class E, class B>
void run_cell(const char* name, const char* dtype) {
  using T = Wide<E>;
  using A = Wide<B>;
  if constexpr (requires(A a, T b) { Cell::template valid<T, A>(a, b, b); }) {
    using R = decltype(Cell::template at<T, A>(A(), T(), T()));
    const A* a = reinterpret_cast<const A*>(room_a);
    const T* b = reinterpret_cast<const T*>(room_b);
    const T* c = reinterpret_cast<const T*>(room_c);
    R* out = reinterpret_cast<R*>(room_out);
    for (int i = 0; i < kCount / SVOD_LANES; i++)
      out[i] = Cell::template at<T, A>(a[i], b[i], c[i]);
    put_line(name, dtype, hash_results<Element<R>>());
  }
}

template <class To, class From> void run_cast(const char* name, const char* dtype) {
  using T = Wide<From>;
  using R = Wide<To>;
  const T* a = reinterpret_cast<const T*>(room_a);
  R* out = reinterpret_cast<R*>(room_out);
  for (int i = 0; i < kCount / SVOD_LANES; i++) out[i] = convert_<To>(a[i]);
  put_line(name, dtype, hash_results<To>());
}

template <class E> void run_all(const char* dtype) {
  fill<E>(room_a), fill<E>(room_b), fill<E>(room_c);
#define MAP(name, text, arity, result, cell)                                             \
  if constexpr (!kSame<Cell##name, CellSelect>) run_cell<Cell##name, E, E>(text, dtype);
#include "compiler/ir/ops.def"
  run_cast<i8, E>("to_i8", dtype), run_cast<u8, E>("to_u8", dtype);
  run_cast<i16, E>("to_i16", dtype), run_cast<u16, E>("to_u16", dtype);
  run_cast<i32, E>("to_i32", dtype), run_cast<u32, E>("to_u32", dtype);
  run_cast<i64, E>("to_i64", dtype), run_cast<u64, E>("to_u64", dtype);
  run_cast<float, E>("to_f32", dtype), run_cast<double, E>("to_f64", dtype);
  u8* flags = reinterpret_cast<u8*>(room_a);
  for (int i = 0; i < kCount; i++) flags[i] = u8(next_random() >> 20) & 1;
  run_cell<CellSelect, E, u8>("select", dtype);
}

template <class From, class R, class F> void run_one(const char* name, F&& f) {
  fill<From>(room_a);
  const Wide<From>* a = reinterpret_cast<const Wide<From>*>(room_a);
  Wide<R>* out = reinterpret_cast<Wide<R>*>(room_out);
  for (int i = 0; i < kCount / SVOD_LANES; i++) out[i] = f(a[i]);
  put_line(name, "", hash_results<R>());
}

void run() {
  run_all<i8>("i8"), run_all<i16>("i16"), run_all<i32>("i32"), run_all<i64>("i64");
  run_all<u8>("u8"), run_all<u16>("u16"), run_all<u32>("u32"), run_all<u64>("u64");
  run_all<float>("f32"), run_all<double>("f64");
  run_one<u16, float>("f16_to_float", [](auto x) { return f16_to_float(x); });
  run_one<u16, float>("bf16_to_float", [](auto x) { return bf16_to_float(x); });
  run_one<double, float>("odd_float", [](auto x) { return odd_float(x); });
  run_one<float, u8>("to_bool", [](auto x) { return to_bool_(x); });
  run_one<float, u16>("float_to_bf16", [](auto x) { return float_to_bf16(x); });
  run_one<float, u16>("float_to_f16", [](auto x) { return float_to_f16(x); });
}

} // namespace

#ifdef SVOD_BARE
extern "C" __attribute__((noreturn)) void _start() {
  run();
  system_call(93, 0, 0, 0);
  __builtin_trap();
}
#else
int main() { run(); }
#endif
