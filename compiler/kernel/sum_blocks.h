// How many numbers of a long sum are added one after the other: n of like size lose a
// share of sqrt(n / 2) roundings of their sum (Higham, Accuracy and Stability of
// Numerical Algorithms, 4.2). Sums of blocks are added in the same way.
#pragma once

#include <algorithm>
#include <cstdint>

namespace svod {

inline constexpr int64_t kSumBlock = 256;

// Of a sum whose roundings grow in what follows (Stage::amplified): every block costs
// the time of one more number.
constexpr int64_t short_sum_block(int64_t numbers) {
  constexpr int64_t kBlock = 64, kShort = 32;
  return numbers <= kShort ? kShort : std::min(kBlock, (numbers + 1) / 2);
}

} // namespace svod
