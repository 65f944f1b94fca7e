// Resampling with antialiasing, as Pillow's Image.resize has it for bytes: each axis by
// itself, across first; a position of the result is a weighted sum of those around its
// place in the picture, over a filter that is as wide as the picture is made smaller. The
// weights are whole numbers of 2^-22, and what lies between the axes is bytes, so that
// the same pixels come out, bit by bit.
#pragma once

#include "importer/images/recipe.h"

namespace svod::image {

inline constexpr int32_t kWeightBits = 22;

inline double filter_support(Filter filter) { return filter == Filter::Bicubic ? 2 : 1; }

inline double filter_value(Filter filter, double x) {
  if (x < 0) x = -x;
  if (filter == Filter::Bilinear) return x < 1 ? 1 - x : 0;
  constexpr double kSharp = -0.5; // of Keys' cubic convolution
  if (x < 1) return ((kSharp + 2) * x - (kSharp + 3)) * x * x + 1;
  if (x < 2) return (((x - 5) * x + 8) * x - 4) * kSharp;
  return 0;
}

// Where the sums of one axis begin, how long they are, and their weights.
struct Weights {
  int32_t* first;
  int32_t* count;
  int32_t* values; // `each` for a position
  size_t each;
};

inline int32_t whole_weight(double value) {
  const double scaled = value * (1 << kWeightBits);
  return static_cast<int32_t>(scaled < 0 ? scaled - 0.5 : scaled + 0.5);
}

// Of the result's positions [begin, end); false where there is no memory.
inline bool make_weights(Job& job, Filter filter, const Axis& axis, Weights& out) {
  const double scale =
      static_cast<double>(axis.size) / static_cast<double>(axis.resampled);
  const double wide = scale < 1 ? 1 : scale;
  const double support = filter_support(filter) * wide, narrowing = 1 / wide;
  const auto positions = static_cast<size_t>(axis.end() - axis.begin());
  out.each = 2 * static_cast<size_t>(support) + 3;
  out.first = job.take<int32_t>(positions);
  out.count = job.take<int32_t>(positions);
  out.values = job.take<int32_t>(positions * out.each);
  double* const exact = job.take<double>(out.each);
  if (out.first == nullptr || out.count == nullptr || out.values == nullptr ||
      exact == nullptr)
    return false;
  const auto size = static_cast<int32_t>(axis.size);
  for (size_t i = 0; i < positions; ++i) {
    const int64_t at = axis.begin() + axis.offset + static_cast<int64_t>(i);
    const double center = (static_cast<double>(at) + 0.5) * scale;
    const int32_t first = most(static_cast<int32_t>(center - support + 0.5), 0);
    const int32_t end = least(static_cast<int32_t>(center + support + 0.5), size);
    double sum = 0;
    for (int32_t k = 0; k < end - first; ++k) {
      exact[k] = filter_value(filter, (k + first - center + 0.5) * narrowing);
      sum += exact[k];
    }
    out.first[i] = first, out.count[i] = end - first;
    for (int32_t k = 0; k < end - first; ++k)
      out.values[i * out.each + static_cast<size_t>(k)] =
          whole_weight(sum != 0 ? exact[k] / sum : exact[k]);
  }
  return true;
}

inline uint8_t weighed_byte(int32_t sum) { return byte_of(sum >> kWeightBits); }
inline constexpr int32_t kHalfWeight = 1 << (kWeightBits - 1);

// One row across: `from` a row of the picture, `to` of the positions that have weights.
template <int32_t kChannels>
void resample_row(const uint8_t* from, const Weights& weights, size_t positions,
                  uint8_t* to) {
  for (size_t i = 0; i < positions; ++i) {
    int32_t sums[kChannels];
    for (int32_t& sum : sums) sum = kHalfWeight;
    const uint8_t* pixel = from + static_cast<size_t>(weights.first[i]) * kChannels;
    const int32_t* const values = weights.values + i * weights.each;
    for (int32_t k = 0; k < weights.count[i]; ++k, pixel += kChannels)
      for (int32_t c = 0; c < kChannels; ++c) sums[c] += pixel[c] * values[k];
    for (int32_t c = 0; c < kChannels; ++c) to[i * kChannels + c] = weighed_byte(sums[c]);
  }
}

// The result's row from rows that lie `bytes` apart.
inline void resample_down(const uint8_t* from, const int32_t* values, int32_t count,
                          size_t bytes, uint8_t* to) {
  for (size_t i = 0; i < bytes; ++i) {
    int32_t sum = kHalfWeight;
    for (int32_t k = 0; k < count; ++k)
      sum += from[static_cast<size_t>(k) * bytes + i] * values[k];
    to[i] = weighed_byte(sum);
  }
}

// A picture that is decoded, and the one that is made of it.
template <int32_t kChannels> struct Resampling {
  Job& job;
  Placed placed;
  Filter filter;
  uint8_t* out;

  size_t columns() const {
    return static_cast<size_t>(placed.across.end() - placed.across.begin());
  }
  size_t row_bytes() const { return columns() * kChannels; }
  const uint8_t* in_row(int64_t y) const {
    return job.pixels +
           static_cast<size_t>(y) * static_cast<size_t>(job.width) * kChannels;
  }
  uint8_t* out_row(int64_t y) const {
    return out + (static_cast<size_t>(y) * static_cast<size_t>(placed.across.wanted) +
                  static_cast<size_t>(placed.across.begin())) *
                     kChannels;
  }
  void copy(const uint8_t* from, uint8_t* to) const {
    for (size_t i = 0; i < row_bytes(); ++i) to[i] = from[i];
  }

  // What is taken of a row where its size stays.
  const uint8_t* kept(int64_t y) const {
    const Axis& across = placed.across;
    return in_row(y) + static_cast<size_t>(across.begin() + across.offset) * kChannels;
  }

  bool by_weights() const {
    const Axis &down = placed.down, &across = placed.across;
    const bool moves_across = across.resampled != across.size;
    Weights rows{}, positions{};
    if (moves_across && !make_weights(job, filter, across, positions)) return false;
    const auto make_row = [&](int64_t y, uint8_t* to) {
      if (moves_across)
        resample_row<kChannels>(in_row(y), positions, columns(), to);
      else
        copy(kept(y), to);
    };
    if (down.resampled == down.size) {
      for (int64_t y = down.begin(); y < down.end(); ++y)
        make_row(y + down.offset, out_row(y));
      return true;
    }
    if (!make_weights(job, filter, down, rows)) return false;
    const auto count = static_cast<size_t>(down.end() - down.begin());
    const int32_t first = rows.first[0];
    const int32_t end = rows.first[count - 1] + rows.count[count - 1];
    auto* const between = job.take_any(static_cast<size_t>(end - first) * row_bytes());
    if (between == nullptr) return false;
    for (int32_t y = first; y < end; ++y)
      make_row(y, between + static_cast<size_t>(y - first) * row_bytes());
    for (size_t i = 0; i < count; ++i)
      resample_down(between + static_cast<size_t>(rows.first[i] - first) * row_bytes(),
                    rows.values + i * rows.each, rows.count[i], row_bytes(),
                    out_row(down.begin() + static_cast<int64_t>(i)));
    return true;
  }

  // Places are sums of one step after the other, as Pillow has them, rounding included.
  template <class Put> static void each_nearest(const Axis& axis, const Put& put) {
    const double step =
        static_cast<double>(axis.size) / static_cast<double>(axis.resampled);
    double place = step * 0.5;
    for (int64_t i = 0; i < axis.end() + axis.offset; ++i, place += step) {
      const auto at = static_cast<int64_t>(place);
      if (i >= axis.begin() + axis.offset)
        put(i - axis.offset, at < axis.size ? at : axis.size - 1);
    }
  }

  bool by_nearest() const {
    auto* const columns_of = job.take<int32_t>(columns());
    if (columns_of == nullptr) return false;
    each_nearest(placed.across, [&](int64_t to, int64_t from) {
      columns_of[to - placed.across.begin()] = static_cast<int32_t>(from);
    });
    each_nearest(placed.down, [&](int64_t to, int64_t from) {
      uint8_t* const row = out_row(to);
      for (size_t x = 0; x < columns(); ++x)
        for (size_t c = 0; c < kChannels; ++c)
          row[x * kChannels + c] =
              in_row(from)[static_cast<size_t>(columns_of[x]) * kChannels + c];
    });
    return true;
  }

  bool run() const { return filter == Filter::Nearest ? by_nearest() : by_weights(); }
};

} // namespace svod::image
