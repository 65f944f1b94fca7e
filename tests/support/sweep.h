// A test with the tag [sweep] draws many cases of one kind. ctest runs it twice: among
// the quick tests with the cases that tell most, which stand first, and among the long
// ones with all (SVOD_SWEEP=1, which tests/CMakeLists.txt sets).
#pragma once

#include "tests/support/seeds.h"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <vector>

namespace svod::test {

// How many of `all` cases: `quick` of them, or all in a whole sweep.
uint64_t swept(uint64_t all, uint64_t quick);

// The first of a list or of seeds.
template <class T> std::vector<T> swept(std::span<const T> all, size_t quick) {
  const std::span<const T> some = all.first(swept(all.size(), quick));
  return {some.begin(), some.end()};
}
template <class T> std::vector<T> swept(std::initializer_list<T> all, size_t quick) {
  return swept(std::span<const T>(all.begin(), all.size()), quick);
}
template <class T, size_t n> std::vector<T> swept(const T (&all)[n], size_t quick) {
  return swept(std::span<const T>(all), quick);
}
Seeds swept(Seeds all, uint64_t quick);

} // namespace svod::test
