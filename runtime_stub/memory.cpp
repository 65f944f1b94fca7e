// The four memory functions that compilers call on their own, so that a package needs no
// C library. Sixteen bytes at a time through an unaligned vector type, the rest byte by
// byte; kernels do their large copies themselves. no_builtin keeps the compiler from
// turning the loops back into calls of the very functions they define.
#include "runtime_stub/platform.h"

// In firmware they are there once, however many models a program holds; the packager
// gives them names of our own there, since a program may have these.
#ifdef SVOD_SHARED
#define SVOD_LINKED __attribute__((weak))
#else
#define SVOD_LINKED
#endif

#define SVOD_MEMORY(name) extern "C" SVOD_LINKED __attribute__((no_builtin(#name)))

namespace {

typedef uint8_t Vector __attribute__((vector_size(16), aligned(1), may_alias));

} // namespace

SVOD_MEMORY(memcpy) void* memcpy(void* to, const void* from, size_t bytes) {
  uint8_t* out = static_cast<uint8_t*>(to);
  const uint8_t* in = static_cast<const uint8_t*>(from);
  for (; bytes >= 16; bytes -= 16, out += 16, in += 16) {
    *reinterpret_cast<Vector*>(out) = *reinterpret_cast<const Vector*>(in);
  }
  for (size_t i = 0; i < bytes; i++) out[i] = in[i];
  return to;
}

SVOD_MEMORY(memmove) void* memmove(void* to, const void* from, size_t bytes) {
  uint8_t* out = static_cast<uint8_t*>(to);
  const uint8_t* in = static_cast<const uint8_t*>(from);
  if (reinterpret_cast<uintptr_t>(out) - reinterpret_cast<uintptr_t>(in) >= bytes) {
    for (size_t i = 0; i < bytes; i++) out[i] = in[i];
  } else {
    while (bytes-- > 0) out[bytes] = in[bytes];
  }
  return to;
}

SVOD_MEMORY(memset) void* memset(void* to, int value, size_t bytes) {
  uint8_t* out = static_cast<uint8_t*>(to);
  uint8_t byte = static_cast<uint8_t>(value);
  Vector bytes16 = {byte, byte, byte, byte, byte, byte, byte, byte,
                    byte, byte, byte, byte, byte, byte, byte, byte};
  for (; bytes >= 16; bytes -= 16, out += 16) *reinterpret_cast<Vector*>(out) = bytes16;
  for (size_t i = 0; i < bytes; i++) out[i] = byte;
  return to;
}

SVOD_MEMORY(memcmp) int memcmp(const void* a, const void* b, size_t bytes) {
  const uint8_t* x = static_cast<const uint8_t*>(a);
  const uint8_t* y = static_cast<const uint8_t*>(b);
  for (size_t i = 0; i < bytes; i++) {
    if (x[i] != y[i]) return x[i] - y[i];
  }
  return 0;
}

#if defined(__arm__)
// The names of the same functions in the ABI of 32-bit ARM; 4 and 8 promise an alignment.
// __aeabi_memset has its arguments in another order.
#define SVOD_ALIAS(name, target)                                                         \
  extern "C" SVOD_LINKED void* name(void*, const void*, size_t)                          \
      __attribute__((alias(target)))

SVOD_ALIAS(__aeabi_memcpy, "memcpy");
SVOD_ALIAS(__aeabi_memcpy4, "memcpy");
SVOD_ALIAS(__aeabi_memcpy8, "memcpy");
SVOD_ALIAS(__aeabi_memmove, "memmove");
SVOD_ALIAS(__aeabi_memmove4, "memmove");
SVOD_ALIAS(__aeabi_memmove8, "memmove");

SVOD_MEMORY(memset) void __aeabi_memset(void* to, size_t bytes, int value) {
  uint8_t* out = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < bytes; i++) out[i] = static_cast<uint8_t>(value);
}

SVOD_MEMORY(memset) void __aeabi_memclr(void* to, size_t bytes) {
  uint8_t* out = static_cast<uint8_t*>(to);
  for (size_t i = 0; i < bytes; i++) out[i] = 0;
}

SVOD_ALIAS(__aeabi_memset4, "__aeabi_memset");
SVOD_ALIAS(__aeabi_memset8, "__aeabi_memset");
SVOD_ALIAS(__aeabi_memclr4, "__aeabi_memclr");
SVOD_ALIAS(__aeabi_memclr8, "__aeabi_memclr");
#endif
