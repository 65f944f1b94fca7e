// The inverse wavelets of JPEG 2000 (ITU-T T.800, annex F): low and high halves of rows,
// then of columns, are interleaved and lifted. What lies beyond the ends mirrors what
// lies inside.
#pragma once

#include "importer/images/jp2_tile.h"

namespace svod::image {

// Coefficients of low frequency are at the places whose coordinate is even.
template <class T> class Jp2Line {
public:
  Jp2Line(T* line, int32_t size, bool starts_odd)
      : line_(line), size_(size), first_(starts_odd ? 1 : 0) {}

  // F.3.8.1: whole numbers.
  void undo_whole() {
    if (size_ == 1 && first_ == 1) line_[0] /= 2;
    if (size_ == 1) return;
    for (int32_t i = first_; i < size_; i += 2)
      line_[i] -= (before(i) + behind(i) + 2) >> 2;
    for (int32_t i = 1 - first_; i < size_; i += 2)
      line_[i] += (before(i) + behind(i)) >> 1;
  }

  // F.3.8.2. The gain of 2 that high halves have is in the factor here, not in the step.
  void undo_real() {
    if (size_ == 1) return;
    for (int32_t i = first_; i < size_; i += 2) line_[i] *= 1.230174105f;
    for (int32_t i = 1 - first_; i < size_; i += 2) line_[i] *= 1.625732422f;
    lift(first_, -0.443506852f);
    lift(1 - first_, -0.882911075f);
    lift(first_, 0.052980118f);
    lift(1 - first_, 1.586134342f);
  }

private:
  T before(int32_t i) const { return line_[i == 0 ? 1 : i - 1]; }
  T behind(int32_t i) const { return line_[i == size_ - 1 ? size_ - 2 : i + 1]; }
  void lift(int32_t from, T factor) {
    for (int32_t i = from; i < size_; i += 2)
      line_[i] += (before(i) + behind(i)) * factor;
  }

  T* line_;
  int32_t size_, first_;
};

inline void undo_jp2_line(Jp2Line<int32_t> line) { line.undo_whole(); }
inline void undo_jp2_line(Jp2Line<float> line) { line.undo_real(); }

// `count` elements `step` apart, the first `low` of them the low half.
template <class T>
void undo_jp2_row(T* from, int32_t step, int32_t count, int32_t low, bool starts_odd,
                  T* line) {
  const auto at = [&](int32_t i) -> T& { return from[static_cast<ptrdiff_t>(i) * step]; };
  for (int32_t i = 0; i < low; ++i) line[2 * i + (starts_odd ? 1 : 0)] = at(i);
  for (int32_t i = low; i < count; ++i)
    line[2 * (i - low) + (starts_odd ? 0 : 1)] = at(i);
  undo_jp2_line(Jp2Line<T>(line, count, starts_odd));
  for (int32_t i = 0; i < count; ++i) at(i) = line[i];
}

// F.3.2: from the lowest resolution up. `line` is memory for a row or a column.
template <class T>
void undo_jp2_wavelet(const Jp2TileComponent& component, T* all, T* line) {
  const int32_t stride = component.area.width();
  for (int32_t r = 1; r <= component.coding->levels; ++r) {
    const Jp2Area& area = component.resolutions[r].area;
    const Jp2Area& lower = component.resolutions[r - 1].area;
    const int32_t width = area.width(), height = area.height();
    if (area.is_empty()) continue;
    for (int32_t y = 0; y < height; ++y)
      undo_jp2_row(all + static_cast<ptrdiff_t>(y) * stride, 1, width, lower.width(),
                   area.x0 % 2 != 0, line);
    for (int32_t x = 0; x < width; ++x)
      undo_jp2_row(all + x, stride, height, lower.height(), area.y0 % 2 != 0, line);
  }
}

} // namespace svod::image
