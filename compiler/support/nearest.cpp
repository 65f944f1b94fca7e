#include "compiler/support/nearest.h"
#include "compiler/support/join.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace svod {

// Levenshtein's distance, one row of its table at a time.
static size_t edits_between(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, row[j + 1] + 1});
    }
  }
  return row.back();
}

std::string_view nearest(std::string_view word, std::span<const std::string_view> words) {
  return *std::ranges::min_element(
      words, {}, [&](std::string_view other) { return edits_between(word, other); });
}

std::string nearest_text(std::string_view word, std::span<const std::string_view> words) {
  return "; the nearest is '" + std::string(nearest(word, words)) + "'; there are " +
         join(words);
}

} // namespace svod
