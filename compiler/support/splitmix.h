// SplitMix64, as published (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014): what is drawn is the same on every machine.
#pragma once

#include <cstdint>

namespace svod {

inline constexpr uint64_t kSplitmixStep = 0x9e3779b97f4a7c15ull;

// A number of whose bits each depends on all of z.
inline uint64_t mix_splitmix(uint64_t z) {
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

// The next number of the state that is given.
inline uint64_t next_splitmix(uint64_t& state) {
  return mix_splitmix(state += kSplitmixStep);
}

} // namespace svod
