// What compilers call on 32-bit x86 to divide 64-bit integers. A package has no
// compiler's library beneath it, so these are here, hidden from the program around a
// static library.
#include "runtime_stub/types.h"

#if defined(__i386__)

#define SVOD_BUILTIN(type, name)                                                         \
  extern "C" __attribute__((visibility("hidden"))) type name

SVOD_BUILTIN(uint64_t, __udivdi3)(uint64_t a, uint64_t b);
SVOD_BUILTIN(uint64_t, __umoddi3)(uint64_t a, uint64_t b);
SVOD_BUILTIN(int64_t, __divdi3)(int64_t a, int64_t b);
SVOD_BUILTIN(int64_t, __moddi3)(int64_t a, int64_t b);

namespace {

uint64_t magnitude(int64_t x) {
  return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
}

int64_t with_sign(bool negative, uint64_t x) {
  return static_cast<int64_t>(negative ? 0 - x : x);
}

} // namespace

// Bit by bit from the highest that the quotient can have. A divisor of zero gives zero.
uint64_t __udivdi3(uint64_t a, uint64_t b) {
  uint64_t quotient = 0;
  if (b == 0 || a < b) return 0;
  for (int shift = __builtin_clzll(b) - __builtin_clzll(a); shift >= 0; shift--) {
    if (a >> shift < b) continue;
    a -= b << shift;
    quotient |= uint64_t{1} << shift;
  }
  return quotient;
}

uint64_t __umoddi3(uint64_t a, uint64_t b) { return a - __udivdi3(a, b) * b; }

int64_t __divdi3(int64_t a, int64_t b) {
  return with_sign((a < 0) != (b < 0), __udivdi3(magnitude(a), magnitude(b)));
}

int64_t __moddi3(int64_t a, int64_t b) {
  return with_sign(a < 0, __umoddi3(magnitude(a), magnitude(b)));
}

#endif
