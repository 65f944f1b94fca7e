// The selection of boxes against a plain one: of all that are left the best is taken, and
// every box is compared with it.
#include "importer/rules/vision/select_boxes.h"
#include "tests/support/import_model.h"
#include "tests/support/random_graph.h"

#include <cmath>
#include <limits>

using namespace svod;
using namespace svod::boxes;
using namespace svod::import_test;

namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Case {
  Sizes sizes;
  std::vector<float> boxes, scores;
  int64_t wanted;
  float limit, floor;
};

float share_of(const Box& a, const Box& b) {
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top),
              width = std::min(a.right, b.right) - std::max(a.left, b.left),
              common = std::max(height, 0.0f) * std::max(width, 0.0f),
              joint = a.area + b.area - common;
  return joint > 0 ? common / joint : 0;
}

std::vector<int64_t> plainly(const Case& c) {
  const auto count = static_cast<size_t>(c.sizes.count);
  std::vector<int64_t> rows;
  for (int64_t b = 0; b < c.sizes.batches; ++b)
    for (int64_t k = 0; k < c.sizes.classes; ++k) {
      const float* boxes = c.boxes.data() + 4 * b * c.sizes.count;
      const float* scores = c.scores.data() + (b * c.sizes.classes + k) * c.sizes.count;
      std::vector<bool> left(count);
      for (size_t i = 0; i < count; ++i) left[i] = scores[i] > c.floor;
      for (int64_t n = 0; n < std::min(c.wanted, c.sizes.most); ++n) {
        size_t best = count;
        for (size_t i = count; i-- > 0;)
          if (left[i] && (best == count || scores[i] >= scores[best])) best = i;
        if (best == count) break;
        rows.insert(rows.end(), {b, k, static_cast<int64_t>(best)});
        left[best] = false;
        const Box taken = box_at(boxes + 4 * best, c.sizes.center);
        for (size_t i = 0; i < count; ++i)
          if (share_of(taken, box_at(boxes + 4 * i, c.sizes.center)) > c.limit)
            left[i] = false;
      }
    }
  return rows;
}

std::vector<int64_t> selected(const Case& c, int64_t& found) {
  std::vector<int64_t> rows(static_cast<size_t>(3 * c.sizes.rows), -1);
  std::vector<uint64_t> work(static_cast<size_t>(work_bytes(c.sizes)) / 8 + 1);
  found = select_boxes(c.sizes, c.boxes.data(), c.scores.data(), c.wanted, c.limit,
                       c.floor, rows.data(), work.data());
  return rows;
}

Case random_case(uint64_t seed) {
  test::Random random(seed);
  Case c{{random.between(1, 2), random.between(1, 3), random.between(1, 300), 0, 0,
          random.between(0, 1) != 0},
         {},
         {},
         random.between(0, 60),
         static_cast<float>(random.between(0, 8)) / 10,
         seed % 5 == 0 ? -kInfinity : static_cast<float>(random.between(-1, 9)) / 10};
  c.sizes.most = std::min(c.sizes.count, random.between(1, 60));
  for (int64_t i = 0; i < 4 * c.sizes.batches * c.sizes.count; ++i)
    c.boxes.push_back(static_cast<float>(random.between(0, 40)) / 10);
  // Few different scores: equal ones are taken in the order of their boxes.
  for (int64_t i = 0; i < c.sizes.batches * c.sizes.classes * c.sizes.count; ++i)
    c.scores.push_back(static_cast<float>(random.between(-20, 20)) / 20);
  c.sizes.rows = c.sizes.batches * c.sizes.classes * c.sizes.most;
  return c;
}

} // namespace

TEST_CASE("boxes are selected as one by one", "[boxes]") {
  for (uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const Case c = random_case(seed);
    std::vector<int64_t> want = plainly(c);
    int64_t found = 0;
    const std::vector<int64_t> rows = selected(c, found);
    CHECK(3 * found == std::ssize(want));
    want.resize(rows.size());
    CHECK(rows == want);
  }
}

TEST_CASE("rows beyond the room are counted, not written", "[boxes]") {
  Case c{{1, 1, 100, 100, 7, false}, {}, {}, 100, 0.5f, -kInfinity};
  for (int i = 0; i < 100; ++i) {
    const auto at = static_cast<float>(2 * i);
    c.boxes.insert(c.boxes.end(), {at, 0, at + 1, 1});
    c.scores.push_back(static_cast<float>(i));
  }
  int64_t found = 0;
  const std::vector<int64_t> rows = selected(c, found);
  CHECK(found == 100);
  CHECK(rows.size() == 21);
  CHECK(rows.back() == 93);
}

TEST_CASE("no number as a score selects nothing, infinity comes first", "[boxes]") {
  Case c{{1, 1, 4, 4, 4, false}, {}, {}, 4, 0.5f, -kInfinity};
  for (int i = 0; i < 4; ++i) {
    const auto at = static_cast<float>(2 * i);
    c.boxes.insert(c.boxes.end(), {at, 0, at + 1, 1});
  }
  c.scores = {std::nanf(""), -kInfinity, 3, kInfinity};
  int64_t found = 0;
  CHECK(selected(c, found) == std::vector<int64_t>{0, 0, 3, 0, 0, 2, 0, 0, 0, 0, 0, 0});
  CHECK(found == 2);
}

TEST_CASE("a selection of thousands of boxes is one call", "[boxes][importer]") {
  const Imported result =
      import(model({{node("NonMaxSuppression", {"boxes", "scores", "most"}, {"y"})},
                    {value("boxes", {1, 5000, 4}, kF32),
                     value("scores", {1, 3, 5000}, kF32), value("most", {1}, kI64)},
                    {value("y", {"", 3}, kI64)},
                    {}},
                   21));
  INFO(result.text());
  REQUIRE(result.graph);
  int64_t calls = 0;
  for (NodeId id : result.graph->live_nodes())
    calls += (*result.graph)[id].op == Op::Call;
  CHECK(calls == 2); // rows and their number
}
