// What compilers call on 32-bit Arm for 64-bit division and for conversions between
// 64-bit integers and floats, by the names and rules of Arm's run-time ABI. Firmware
// takes these from the compiler's own library; a Linux executable without one has them
// here.
#include "runtime_stub/types.h"

#if defined(__arm__) && defined(__linux__)

// Floats travel in integer registers, whatever the rest of the program does.
#define SVOD_AEABI(type, name)                                                           \
  extern "C" __attribute__((pcs("aapcs"))) type __aeabi_##name

extern "C" __attribute__((visibility("hidden"))) uint64_t
svod_divide(uint64_t a, uint64_t b, uint64_t* remainder);
extern "C" __attribute__((visibility("hidden"))) int64_t
svod_divide_signed(int64_t a, int64_t b, int64_t* remainder);

// Bit by bit from the highest that the quotient can have. A divisor of zero gives zero.
uint64_t svod_divide(uint64_t a, uint64_t b, uint64_t* remainder) {
  uint64_t quotient = 0;
  if (b != 0 && a >= b) {
    int shift = __builtin_clzll(b) - __builtin_clzll(a);
    for (; shift >= 0; shift--) {
      if (a >> shift < b) continue;
      a -= b << shift;
      quotient |= uint64_t{1} << shift;
    }
  }
  *remainder = a;
  return quotient;
}

int64_t svod_divide_signed(int64_t a, int64_t b, int64_t* remainder) {
  auto magnitude = [](int64_t x) {
    return x < 0 ? 0 - static_cast<uint64_t>(x) : static_cast<uint64_t>(x);
  };
  uint64_t rest;
  uint64_t quotient = svod_divide(magnitude(a), magnitude(b), &rest);
  *remainder = static_cast<int64_t>(a < 0 ? 0 - rest : rest);
  return static_cast<int64_t>((a < 0) != (b < 0) ? 0 - quotient : quotient);
}

// Both results at once: the quotient in r0 and r1, the remainder in r2 and r3.
__asm__(R"(
  .text
  .arm
  .p2align 2
  .globl __aeabi_uldivmod
  .hidden __aeabi_uldivmod
  .type __aeabi_uldivmod, %function
__aeabi_uldivmod:
  push {r6, lr}
  sub sp, sp, #16
  add r6, sp, #8
  str r6, [sp]
  bl svod_divide
  ldr r2, [sp, #8]
  ldr r3, [sp, #12]
  add sp, sp, #16
  pop {r6, pc}
  .size __aeabi_uldivmod, . - __aeabi_uldivmod

  .globl __aeabi_ldivmod
  .hidden __aeabi_ldivmod
  .type __aeabi_ldivmod, %function
__aeabi_ldivmod:
  push {r6, lr}
  sub sp, sp, #16
  add r6, sp, #8
  str r6, [sp]
  bl svod_divide_signed
  ldr r2, [sp, #8]
  ldr r3, [sp, #12]
  add sp, sp, #16
  pop {r6, pc}
  .size __aeabi_ldivmod, . - __aeabi_ldivmod
)");

namespace {

double high_and_low(double high, uint64_t low) {
  return high * 0x1p32 + static_cast<double>(static_cast<uint32_t>(low));
}

// A double holds 53 bits. What is below them is kept as one bit that is set when any was,
// so that the second rounding, to float, sees on which side of the middle it is.
uint64_t sticky(uint64_t x) {
  return x >> 53 == 0 ? x : (x & ~uint64_t{2047}) | uint64_t{(x & 2047) != 0} << 11;
}

} // namespace

SVOD_AEABI(double, ul2d)(uint64_t x) {
  return high_and_low(static_cast<double>(static_cast<uint32_t>(x >> 32)), x);
}

SVOD_AEABI(double, l2d)(int64_t x) {
  return high_and_low(static_cast<double>(static_cast<int32_t>(x >> 32)),
                      static_cast<uint64_t>(x));
}

SVOD_AEABI(float, ul2f)(uint64_t x) {
  return static_cast<float>(__aeabi_ul2d(sticky(x)));
}

SVOD_AEABI(float, l2f)(int64_t x) {
  if (x >= 0) return __aeabi_ul2f(static_cast<uint64_t>(x));
  return -__aeabi_ul2f(0 - static_cast<uint64_t>(x));
}

SVOD_AEABI(uint64_t, d2ulz)(double x) {
  auto high = static_cast<uint32_t>(x * 0x1p-32);
  auto low = static_cast<uint32_t>(x - static_cast<double>(high) * 0x1p32);
  return uint64_t{high} << 32 | low;
}

SVOD_AEABI(int64_t, d2lz)(double x) {
  if (x >= 0) return static_cast<int64_t>(__aeabi_d2ulz(x));
  return static_cast<int64_t>(0 - __aeabi_d2ulz(-x));
}

SVOD_AEABI(uint64_t, f2ulz)(float x) { return __aeabi_d2ulz(static_cast<double>(x)); }

SVOD_AEABI(int64_t, f2lz)(float x) { return __aeabi_d2lz(static_cast<double>(x)); }

#endif
