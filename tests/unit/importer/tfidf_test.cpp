// Counts of n-grams against counting by hand.
#include "tests/support/run_rule.h"

#include <limits>

using namespace svod;
using namespace svod::rule_test;

namespace {

using Ints = std::vector<int64_t>;

constexpr int64_t kFar = std::numeric_limits<int64_t>::min() / 3;

Operator counter(const Ints& pool, int64_t skips) {
  ModelAttribute mode = attribute("mode", "TF");
  return {"TfIdfVectorizer",
          9,
          {mode, attribute("min_gram_length", int64_t{1}),
           attribute("max_gram_length", int64_t{3}), attribute("max_skip_count", skips),
           attribute("ngram_counts", Ints{0, 3, 9}),
           attribute("ngram_indexes", Ints{0, 1, 2, 3, 4, 5, 6, 7}),
           attribute("pool_int64s", pool)}};
}

// How often the gram's items stand in the row, equally far apart.
float count_of(const Ints& row, const Ints& gram, int64_t skips) {
  float found = 0;
  const auto length = std::ssize(gram);
  for (int64_t distance = 1; distance <= (length == 1 ? 1 : skips + 1); ++distance)
    for (int64_t at = 0; at + (length - 1) * distance < std::ssize(row); ++at) {
      bool same = true;
      for (int64_t i = 0; i < length; ++i)
        same &= row[size_t(at + i * distance)] == gram[size_t(i)];
      found += same ? 1.0f : 0.0f;
    }
  return found;
}

} // namespace

TEST_CASE("n-grams are counted, items close together and far apart",
          "[importer][rules]") {
  for (int64_t far : {int64_t{7}, kFar})
    for (int64_t skips : {0, 1, 3}) {
      const Ints row{1, 2, far, 1, 2, 2, far, 3, 1, far, 1, 2, far};
      const std::vector<Ints> grams{{1},      {far},    {5},         {1, 2},
                                    {2, far}, {far, 1}, {1, 2, far}, {2, far, 1}};
      Ints pool;
      std::vector<float> want;
      for (const Ints& gram : grams) {
        pool.insert(pool.end(), gram.begin(), gram.end());
        want.push_back(count_of(row, gram, skips));
      }
      Operator op = counter(pool, skips);
      op.run({i64({std::ssize(row)}, row)});
      INFO(op.failure);
      REQUIRE(op.results.size() == 1);
      check_close(values<float>(op.results[0]), want);
    }
}

TEST_CASE("an n-gram may stand in the pool once", "[importer][rules]") {
  Operator op = counter({1, 2, 3, 1, 2, 2, 3, 1, 2, 1, 2, 3, 3, 2, 1}, 0);
  op.run({i64({3}, {1, 2, 3})});
  CHECK(op.failure.find("twice in the pool") != std::string::npos);
}
