#include "compiler/rewrite/fixed_multiplier.h"

#include <algorithm>
#include <climits>
#include <cmath>

namespace svod::rewrite {

namespace {

constexpr double kTwo32 = 0x1p32;
// Sums and products stay below, so that no addition leaves 32 bits.
constexpr int64_t kMost = int64_t{1} << 30;

// The least argument of each value above the first one's.
struct Threshold {
  int value;
  int64_t least;
};

std::vector<Threshold> thresholds_of(const Staircase& s) {
  std::vector<Threshold> out;
  const int low = s.at(s.first), high = s.at(s.last);
  int64_t below = s.first; // at(below) < value
  for (int value = low + 1; value <= high; ++value) {
    // About where the line says, else by bisection.
    int64_t a = below, b = s.last;
    const double near = std::floor((value - 0.5 - s.offset) / s.slope);
    if (near - 2 > double(a) && near + 3 < double(b)) {
      const auto guess = static_cast<int64_t>(near);
      if (s.at(guess - 2) < value && s.at(guess + 3) >= value)
        a = guess - 2, b = guess + 3;
    }
    while (b - a > 1) {
      const int64_t middle = a + (b - a) / 2;
      (s.at(middle) < value ? a : b) = middle;
    }
    out.push_back({value, b});
    below = b - 1;
  }
  return out;
}

// Where a number has to lie for all thresholds: above low, at most high. Empty where no
// number meets them all; its middle then misses the fewest by the least.
struct Interval {
  double low = -HUGE_VAL, high = HUGE_VAL;
  void cut(double above, double most) {
    low = std::max(low, above), high = std::min(high, most);
  }
  double middle() const {
    if (low == -HUGE_VAL) return high;
    return high == HUGE_VAL ? low + 1 : (low + high) / 2;
  }
};

// Bits of the largest slope's factor decide the shift that all channels share.
double steepest(std::span<const Staircase> channels) {
  double most = 0;
  for (const Staircase& s : channels) most = std::max(most, s.slope);
  return most;
}

int64_t largest_argument(std::span<const Staircase> channels) {
  int64_t most = 1;
  for (const Staircase& s : channels)
    most = std::max({most, std::abs(s.first), std::abs(s.last)});
  return most;
}

// Thresholds at which the numbers step one argument or more aside; -1: by more than one
// value.
int64_t missed_by(const FixedMultiplier& fixed, const FixedNumbers& numbers,
                  const Staircase& s, const std::vector<Threshold>& thresholds, int low,
                  int high) {
  int64_t missed = 0;
  auto value = [&](int64_t x) {
    return std::clamp(apply(fixed, numbers, static_cast<int32_t>(x)), low, high);
  };
  for (const Threshold& t : thresholds) {
    const int at = value(t.least), below = value(t.least - 1);
    if (at != s.at(t.least) || below != s.at(t.least - 1)) ++missed;
    if (std::abs(at - s.at(t.least)) > 1 || std::abs(below - s.at(t.least - 1)) > 1)
      return -1;
  }
  for (int64_t x : {s.first, s.last})
    if (std::abs(value(x) - s.at(x)) > 1) return -1;
  return missed;
}

using Fit = std::optional<FixedNumbers> (*)(const Staircase&,
                                            const std::vector<Threshold>&, int right,
                                            int64_t most);

// beside >= value * 2^right - least * factor for every threshold, and less than that with
// the argument before it.
std::optional<FixedNumbers> fit_narrow(const Staircase& s,
                                       const std::vector<Threshold>& thresholds,
                                       int right, int64_t most) {
  FixedNumbers out;
  out.factor = static_cast<int32_t>(std::lround(std::ldexp(s.slope, right)));
  const double unit = std::ldexp(1.0, right), factor = out.factor;
  Interval in;
  for (const Threshold& t : thresholds)
    in.cut(t.value * unit - double(t.least) * factor - 1,
           t.value * unit - double(t.least - 1) * factor - 1);
  const double beside =
      thresholds.empty() ? (s.at(s.first) + 0.5) * unit : std::ceil(in.middle());
  if (std::abs(beside) + double(most) * factor >= 2.0 * double(kMost))
    return std::nullopt;
  out.beside = static_cast<int32_t>(beside);
  return out;
}

// A value begins where high((x + before) * factor) + beside reaches value * 2^right,
// which is at x = value * 2^(right + 32) / factor + o with o = -beside * 2^32 / factor -
// before. Steps of `beside` are a few arguments long and no whole number of them, so that
// the two together come as near to any o as is wanted.
std::optional<FixedNumbers> fit_wide(const Staircase& s,
                                     const std::vector<Threshold>& thresholds, int right,
                                     int64_t most) {
  FixedNumbers out;
  out.factor = static_cast<int32_t>(std::llround(std::ldexp(s.slope, right + 32)));
  if (out.factor <= 0) return std::nullopt;
  const double step = kTwo32 / out.factor, of_value = std::ldexp(step, right);
  Interval in;
  for (const Threshold& t : thresholds)
    in.cut(double(t.least - 1) - t.value * of_value,
           double(t.least) - t.value * of_value);
  const double wanted =
      thresholds.empty() ? -(s.at(s.first) + 0.5) * of_value : in.middle();
  const double enough = std::max(0.0, (in.high - in.low) / 4);
  const double first =
      std::clamp(std::floor(-wanted / step), -double(kMost) / 2, double(kMost) / 2);
  constexpr int kTries = 4096;
  double best = HUGE_VAL;
  for (int i = 0; i < kTries && best > enough; ++i) {
    const double beside = first + i, before = std::round(-wanted - beside * step);
    const double error = std::abs(-beside * step - before - wanted);
    if (error >= best || std::abs(before) + double(most) >= double(kMost)) continue;
    best = error;
    out.before = static_cast<int32_t>(before), out.beside = static_cast<int32_t>(beside);
  }
  return best == HUGE_VAL ? std::nullopt : std::optional(out);
}

std::optional<FixedMultiplier> fit_all(std::span<const Staircase> channels,
                                       std::span<const std::vector<Threshold>> thresholds,
                                       bool wide, int right, int low, int high) {
  if (right < 0 || right > 31) return std::nullopt;
  const int64_t most = largest_argument(channels);
  FixedMultiplier out{wide, right, {}, 0};
  const Fit fit = wide ? fit_wide : fit_narrow;
  for (size_t i = 0; i < channels.size(); ++i) {
    const std::optional<FixedNumbers> numbers =
        fit(channels[i], thresholds[i], right, most);
    const int64_t missed =
        numbers ? missed_by(out, *numbers, channels[i], thresholds[i], low, high) : -1;
    if (missed < 0) return std::nullopt;
    out.channels.push_back(*numbers);
    out.missed += missed;
  }
  return out;
}

} // namespace

int32_t apply(const FixedMultiplier& fixed, const FixedNumbers& numbers, int32_t x) {
  const int64_t product = int64_t{numbers.factor} * (int64_t{x} + numbers.before);
  const int64_t kept = fixed.wide ? product >> 32 : product;
  return static_cast<int32_t>((kept + numbers.beside) >> fixed.right);
}

std::optional<FixedMultiplier> fit_multiplier(std::span<const Staircase> channels,
                                              int low, int high) {
  const double slope = steepest(channels);
  const int64_t most = largest_argument(channels);
  if (!(slope > 0) || !std::isfinite(slope) || most >= kMost) return std::nullopt;
  std::vector<std::vector<Threshold>> thresholds;
  for (const Staircase& s : channels) thresholds.push_back(thresholds_of(s));
  // As many bits as 32 allow: of the products, or of the factor.
  const int narrow = static_cast<int>(
      std::floor(std::log2(double(kMost) / (slope * double(most) + 256))));
  const int wide = std::min(31, static_cast<int>(std::floor(-1.001 - std::log2(slope))));
  std::optional<FixedMultiplier> best =
      fit_all(channels, thresholds, false, narrow, low, high);
  if (best && best->missed == 0) return best;
  if (auto other = fit_all(channels, thresholds, true, wide, low, high);
      other && (!best || other->missed < best->missed))
    return other;
  return best;
}

std::optional<FixedSum> fit_sum(const TwoBytes& f) {
  double most = std::abs(f.offset) + 256;
  for (size_t i = 0; i < 2; ++i)
    most += std::abs(f.slopes[i]) * double(std::max(std::abs(f.first[i]), f.last[i]));
  if (!std::isfinite(most)) return std::nullopt;
  FixedSum out;
  out.right = static_cast<int>(std::floor(std::log2(double(kMost) / most)));
  if (out.right < 1 || out.right > 31) return std::nullopt;
  for (size_t i = 0; i < 2; ++i)
    out.factors[i] =
        static_cast<int32_t>(std::lround(std::ldexp(f.slopes[i], out.right)));
  auto each_pair = [&](auto&& see) {
    for (int64_t a = f.first[0]; a <= f.last[0]; ++a)
      for (int64_t b = f.first[1]; b <= f.last[1]; ++b)
        see(f.at(a, b), a * out.factors[0] + b * out.factors[1]);
  };
  out.low = INT_MAX, out.high = INT_MIN;
  each_pair([&](int value, int64_t) {
    out.low = std::min(out.low, value), out.high = std::max(out.high, value);
  });
  const double unit = std::ldexp(1.0, out.right);
  Interval in;
  each_pair([&](int value, int64_t sum) {
    if (value > out.low) in.cut(value * unit - double(sum) - 1, HUGE_VAL);
    if (value < out.high) in.cut(-HUGE_VAL, (value + 1) * unit - double(sum) - 1);
  });
  const double beside = std::ceil(in.middle());
  if (!(std::abs(beside) < double(kMost))) return std::nullopt;
  out.beside = static_cast<int32_t>(beside);
  bool near = true;
  each_pair([&](int value, int64_t sum) {
    const auto fixed = static_cast<int>(
        std::clamp<int64_t>((sum + out.beside) >> out.right, out.low, out.high));
    out.missed += fixed != value;
    near = near && std::abs(fixed - value) <= 1;
  });
  return near ? std::optional(out) : std::nullopt;
}

} // namespace svod::rewrite
