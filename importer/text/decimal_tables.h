// Powers of five and ten to 128 bits, for turning floats into digits and back. All exact
// where 128 bits hold them.
#pragma once

#include <cstdint>
#include <vector>

namespace svod::importer {

struct Wide { // high * 2^64 + low
  uint64_t high = 0, low = 0;
};

// How a binary exponent turns into a decimal one, for the shortest digits of a float
// whose quarters of units are counted: mantissa * 2^e2 with e2 two below the float's own.
struct ShortestRow {
  int64_t e10 = 0;     // the digits that remain count this power of ten
  Wide factor;         // of the mantissa
  uint64_t shift = 0;  // behind the product, less 64: 1 to 63
  uint64_t five = 0;   // numbers this divides scale without a rest; 0: none does
  uint64_t mask = 0;   // numbers without these bits do; all ones: none does
  bool halves = false; // all do, but bounds of odd quarters
};
ShortestRow shortest_row(int64_t e2);

// 10^t = value * 2^exponent with value in [2^127, 2^128), rounded down for t >= 0, else
// up.
struct PowerOfTen {
  Wide value;
  int64_t exponent = 0;
};
PowerOfTen power_of_ten(int64_t t);

} // namespace svod::importer
