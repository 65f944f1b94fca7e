// NonMaxSuppression of one class after the other: the best box that is left is taken
// unless it overlaps one that was taken before. Compiled into packed programs as a call
// (importer/rules/vision/nms.cpp), so there is no library beneath it, and into tests.
//
// Scores become integers in their order, since the greatest of integers is found a vector
// at a time. Those above the floor are kept side by side in blocks, with the greatest of
// each block: the best one is found among these, and to strike it out one block is read
// again. A box is compared with the taken ones only, again a vector at a time. (4 classes
// of 1000 boxes, 50 of each taken: 145 us by striking boxes out of all, 50 times.)
#pragma once

#include <stddef.h>
#include <stdint.h>

namespace svod::boxes {

// What is known when packing.
struct Sizes {
  int64_t batches, classes, count; // count: boxes
  int64_t most;                    // are taken of a class
  int64_t rows;                    // that the result has room for
  bool center;                     // x, y, width, height, and not two corners
};

inline constexpr int64_t kBlock = 64; // scores
inline constexpr int32_t kGone = INT32_MIN;

constexpr int64_t rounded_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// The memory that select_boxes() works in.
constexpr int64_t work_bytes(const Sizes& sizes) {
  const int64_t kept = rounded_up(sizes.count, kBlock);
  return 4 * (2 * kept + kept / kBlock + 5 * sizes.most);
}

// -inf has a place above kGone; both zeros have one. NaN comes after all numbers.
inline int32_t rank_of(float score) {
  const float number = score + 0.0f;
  int32_t bits = 0;
  __builtin_memcpy(&bits, &number, sizeof bits);
  return bits < 0 ? bits ^ INT32_MAX : bits;
}

// NaN where one of them is.
inline float least(float a, float b) { return a < b || a != a ? a : b; }
inline float most(float a, float b) { return a > b || a != a ? a : b; }

struct Box {
  float top, left, bottom, right, area;
};

inline Box box_at(const float* at, bool center) {
  const float a = at[0], b = at[1], c = at[2], d = at[3];
  Box box{least(a, c), least(b, d), most(a, c), most(b, d), 0};
  if (center) box = {b - d / 2, a - c / 2, b + d / 2, a + c / 2, 0};
  box.area = (box.bottom - box.top) * (box.right - box.left);
  return box;
}

// The scores of one class that are left.
struct Left {
  int32_t *rank, *box, *best; // best: of each block of ranks
  int64_t blocks;

  static int32_t best_of(const int32_t* ranks, int64_t count) {
    int32_t out = kGone;
    for (int64_t i = 0; i < count; ++i) out = ranks[i] > out ? ranks[i] : out;
    return out;
  }
  static int64_t find(const int32_t* ranks, int64_t count, int32_t wanted) {
    auto at = static_cast<int32_t>(count);
    for (auto i = static_cast<int32_t>(count); i-- > 0;) at = ranks[i] == wanted ? i : at;
    return at;
  }
  void fill(const float* scores, int64_t count, float floor) {
    int64_t kept = 0;
    for (int64_t i = 0; i < count; ++i) {
      rank[kept] = rank_of(scores[i]);
      box[kept] = static_cast<int32_t>(i);
      kept += floor < scores[i];
    }
    blocks = (kept + kBlock - 1) / kBlock;
    for (; kept < blocks * kBlock; ++kept) rank[kept] = kGone;
    for (int64_t b = 0; b < blocks; ++b) best[b] = best_of(rank + b * kBlock, kBlock);
  }
  // The first of the best ones, which goes; -1 when there is none.
  int64_t take() {
    const int32_t top = best_of(best, blocks);
    if (top == kGone) return -1;
    const int64_t block = find(best, blocks, top);
    int32_t* const ranks = rank + block * kBlock;
    const int64_t at = find(ranks, kBlock, top);
    ranks[at] = kGone;
    best[block] = best_of(ranks, kBlock);
    return box[block * kBlock + at];
  }
};

// The boxes of one class that are taken.
struct Taken {
  float *top, *left, *bottom, *right, *area;
  int64_t count;

  void add(const Box& box) {
    top[count] = box.top, left[count] = box.left;
    bottom[count] = box.bottom, right[count] = box.right, area[count] = box.area;
    ++count;
  }
  // Whether the share that the box and a taken one have in common is above the limit.
  bool overlap(const Box& box, float limit) const {
    int32_t any = 0;
    for (int64_t i = 0; i < count; ++i) {
      const float height = least(bottom[i], box.bottom) - most(top[i], box.top);
      const float width = least(right[i], box.right) - most(left[i], box.left);
      const float common = most(height, 0) * most(width, 0);
      const float joint = area[i] + box.area - common;
      any |= static_cast<int32_t>((joint > 0 ? common / joint : 0) > limit);
    }
    return any != 0;
  }
};

// boxes [batches, count, 4], scores [batches, classes, count]. At most `wanted` boxes of
// a class are taken. Writes rows of batch, class and box, zeros beyond the last one, and
// returns how many there are, of which no more than sizes.rows are written.
inline int64_t select_boxes(const Sizes& sizes, const float* boxes, const float* scores,
                            int64_t wanted, float limit, float floor, int64_t* rows,
                            void* work) {
  const int64_t kept = rounded_up(sizes.count, kBlock);
  if (wanted > sizes.most) wanted = sizes.most;
  auto* const ranks = static_cast<int32_t*>(work);
  Left left{ranks, ranks + kept, ranks + 2 * kept, 0};
  auto* const sides = reinterpret_cast<float*>(left.best + kept / kBlock);
  const int64_t n = sizes.most;
  Taken taken{sides, sides + n, sides + 2 * n, sides + 3 * n, sides + 4 * n, 0};
  int64_t found = 0;
  for (int64_t batch = 0; batch < sizes.batches; ++batch)
    for (int64_t category = 0; category < sizes.classes; ++category) {
      left.fill(scores + (batch * sizes.classes + category) * sizes.count, sizes.count,
                floor);
      taken.count = 0;
      while (taken.count < wanted) {
        const int64_t at = left.take();
        if (at < 0) break;
        const Box box = box_at(boxes + (batch * sizes.count + at) * 4, sizes.center);
        if (taken.overlap(box, limit)) continue;
        taken.add(box);
        if (found < sizes.rows) {
          rows[3 * found] = batch;
          rows[3 * found + 1] = category;
          rows[3 * found + 2] = at;
        }
        ++found;
      }
    }
  for (int64_t i = 3 * found; i < 3 * sizes.rows; ++i) rows[i] = 0;
  return found;
}

} // namespace svod::boxes
