// SplitMix64, as published (Steele, Lea, Flood: Fast Splittable Pseudorandom Number
// Generators, OOPSLA 2014): what is drawn is the same on every machine.
#pragma once

#include <cstdint>

namespace svod {

// The next number of the state that is given.
inline uint64_t next_splitmix(uint64_t& state) {
  uint64_t z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
  return z ^ (z >> 31);
}

} // namespace svod
