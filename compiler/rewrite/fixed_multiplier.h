// Step functions of integers in 32-bit arithmetic. A quantisation takes an integer x to
// the byte round(slope * x + offset), clamped, by way of floats; with two numbers per
// channel a multiplication, an addition and a shift do the same:
//
//   narrow   (x * factor + beside) >> right
//   wide     (high(  (x + before) * factor) + beside) >> right
//
// where high() is the upper half of the product's 64 bits. The least x of every byte (its
// threshold) is known exactly, so the numbers are chosen such that all of them are met,
// and where none do, such that the byte is never more than one step away. Fixed-point
// multipliers are those of Jacob et al., "Quantization and Training of Neural Networks
// for Efficient Integer-Arithmetic-Only Inference" (2018), section 2.2; the thresholds
// take the place of its rounding.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace svod::rewrite {

// at(x) never falls, and is about slope * x + offset between its least and its greatest
// value.
struct Staircase {
  std::function<int(int64_t)> at;
  int64_t first = 0, last = 0; // the arguments that can occur
  double slope = 0, offset = 0;
};

// The numbers of one channel.
struct FixedNumbers {
  int32_t before = 0; // wide: added to the argument
  int32_t factor = 0;
  int32_t beside = 0; // added to the product
  bool operator==(const FixedNumbers&) const = default;
};

struct FixedMultiplier {
  bool wide = false;
  int right = 0;                      // bits that are dropped at the end
  std::vector<FixedNumbers> channels; // of each staircase
  int64_t missed = 0;                 // thresholds that are met one step aside
};

// One multiplier for all channels, its values clamped to [low, high]; nothing where 32
// bits are not enough or a value would be more than one step away.
std::optional<FixedMultiplier> fit_multiplier(std::span<const Staircase> channels,
                                              int low, int high);

// What the numbers make of x, before it is clamped.
int32_t apply(const FixedMultiplier& fixed, const FixedNumbers& numbers, int32_t x);

// A byte that follows from two others, about slopes[0] * a + slopes[1] * b + offset:
//
//   (a * factors[0] + b * factors[1] + beside) >> right, clamped to [low, high].
struct TwoBytes {
  std::function<int(int64_t, int64_t)> at;
  std::array<int64_t, 2> first = {}, last = {};
  std::array<double, 2> slopes = {};
  double offset = 0;
};

struct FixedSum {
  std::array<int32_t, 2> factors = {};
  int32_t beside = 0;
  int right = 0, low = 0, high = 0;
  int64_t missed = 0; // pairs whose value is one step aside
};

std::optional<FixedSum> fit_sum(const TwoBytes& f);

} // namespace svod::rewrite
