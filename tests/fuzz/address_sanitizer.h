// AddressSanitizer's own interface, where a build has it; else its words mean nothing.
#pragma once

#ifdef __has_feature
#if __has_feature(address_sanitizer)
#define SVOD_ADDRESS_SANITIZER
#endif
#endif
#ifdef __SANITIZE_ADDRESS__
#define SVOD_ADDRESS_SANITIZER
#endif

#ifdef SVOD_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(from, bytes) (void)(from), (void)(bytes)
#define ASAN_UNPOISON_MEMORY_REGION(from, bytes) (void)(from), (void)(bytes)
#endif
