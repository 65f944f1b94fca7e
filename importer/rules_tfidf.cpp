// TfIdfVectorizer over numbers: how often each n-gram of a known pool occurs. Per length
// of n-gram and distance between its items, all windows of the input are compared with
// the whole pool.
#include "importer/bounded.h"
#include "importer/formula.h"
#include "importer/strings.h"

#include <algorithm>
#include <limits>
#include <map>

namespace svod {
namespace {

constexpr int64_t kMostDistances = 256; // one comparison each

// The n-grams of one length: `items` row by row, and where in the result each is counted.
struct Grams {
  int64_t length = 0;
  std::vector<int64_t> items, targets;
  int64_t count() const { return static_cast<int64_t>(targets.size()); }
};

// A pool of strings as numbers: the position of each among `words`.
std::vector<int64_t> number_words(const std::vector<std::string>& pool,
                                  std::vector<std::string>& words) {
  std::map<std::string, int64_t> places;
  std::vector<int64_t> numbers;
  for (const std::string& word : pool) {
    const auto [at, added] = places.emplace(word, words.size());
    if (added) words.push_back(word);
    numbers.push_back(at->second);
  }
  return numbers;
}

std::vector<Grams> read_pool(NodeImport& node, const std::vector<int64_t>& pool) {
  const std::vector<int64_t> starts = node.get_ints("ngram_counts");
  const std::vector<int64_t> targets = node.get_ints("ngram_indexes");
  const auto size = static_cast<int64_t>(pool.size());
  std::vector<Grams> grams;
  size_t next = 0;
  for (size_t n = 0; n < starts.size(); ++n) {
    const int64_t first = starts[n], last = n + 1 < starts.size() ? starts[n + 1] : size;
    const auto length = static_cast<int64_t>(n) + 1;
    require(node,
            0 <= first && first <= last && last <= size && (last - first) % length == 0,
            "ngram_counts does not fit the pool");
    Grams of_length{length, {pool.begin() + first, pool.begin() + last}, {}};
    for (int64_t i = 0; i < (last - first) / length; ++i, ++next) {
      require(node, next < targets.size(), "ngram_indexes is shorter than the pool");
      within_reach(node, targets[next], "an entry of ngram_indexes");
      of_length.targets.push_back(targets[next]);
    }
    grams.push_back(of_length);
  }
  require(node, next == targets.size() && next > 0,
          "ngram_indexes does not fit the pool");
  return grams;
}

// Occurrences of each gram in the rows of x, [rows, grams]; items stand `distance` apart.
Expr occurrences(NodeImport& node, Expr x, const Grams& grams, int64_t distance) {
  const int64_t rows = extent(x, 0), reach = (grams.length - 1) * distance + 1;
  if (extent(x, 1) < reach)
    return {&node.g, constant(node.g, DType::F32, {rows, grams.count()}, 0)};
  const Expr windows = with(x, window(node.g, x.id, 1, grams.length, 1, distance));
  Expr pool{&node.g, tensor_i64(node.g, {grams.count(), grams.length}, grams.items)};
  const Expr same =
      equal(unsqueeze(windows, 2), reshape(pool, {1, 1, grams.count(), grams.length}));
  const Expr whole = reduce(Op::ReduceMin, convert(same, DType::F32), {3});
  return reshape(sum(whole, {1}), {rows, grams.count()});
}

// Counts in pool order to the order of the result; what no gram counts is 0.
Expr in_result_order(NodeImport& node, Expr counts, const std::vector<int64_t>& targets) {
  const int64_t width = *std::max_element(targets.begin(), targets.end()) + 1;
  if (width > int64_t{1} << 24) node.unsupported("a result of this size");
  std::vector<int64_t> from(static_cast<size_t>(width), extent(counts, 1));
  for (size_t i = 0; i < targets.size(); ++i) {
    int64_t& source = from[static_cast<size_t>(targets[i])];
    if (source != extent(counts, 1)) node.unsupported("two n-grams counted as one");
    source = static_cast<int64_t>(i);
  }
  return take(pad(counts, {0, 0}, {0, 1}, 0), 1, from);
}

Expr weighted(NodeImport& node, Expr counts) {
  const std::string mode = node.get_string("mode");
  if (mode == "TF") return counts;
  if (mode != "IDF" && mode != "TFIDF")
    node.invalid("mode '" + mode + "' is not one of TF, IDF, TFIDF");
  if (mode == "IDF") counts = minimum(counts, 1);
  const std::vector<float> weights = node.get_floats("weights");
  if (weights.empty()) return counts;
  const auto size = static_cast<int64_t>(weights.size());
  require(node, size == extent(counts, 1), "there must be one weight per n-gram");
  return counts * Expr{&node.g, tensor_f32(node.g, {size}, weights)};
}

} // namespace

void import_tf_idf_vectorizer(NodeImport& node) {
  std::vector<int64_t> pool = node.get_ints("pool_int64s");
  Expr x = operand(node, 0);
  if (x.dtype() == DType::String) {
    std::vector<std::string> words;
    pool = number_words(node.get_strings("pool_strings"), words);
    x = find_strings(node, x, words);
  }
  x = convert(x, DType::I64);
  const bool one_row = x.rank() == 1;
  if (one_row) x = unsqueeze(x, 0);
  require(node, x.rank() == 2, "the input must be a vector or a matrix");
  const int64_t shortest = node.get_int("min_gram_length");
  const int64_t longest = node.get_int("max_gram_length");
  const int64_t skips =
      within_reach(node, node.get_int("max_skip_count"), "max_skip_count");
  std::vector<Expr> parts;
  std::vector<int64_t> targets;
  for (const Grams& grams : read_pool(node, pool)) {
    if (grams.count() == 0) continue;
    Expr counts{&node.g, constant(node.g, DType::F32, {extent(x, 0), grams.count()}, 0)};
    // Single items have no distance; beyond the input's length nothing can match.
    const int64_t most = grams.length == 1 ? 1 : std::min(skips + 1, extent(x, 1));
    if (most > kMostDistances) node.unsupported("skips of this length");
    if (shortest <= grams.length && grams.length <= longest)
      for (int64_t distance = 1; distance <= most; ++distance)
        counts = counts + occurrences(node, x, grams, distance);
    parts.push_back(counts);
    targets.insert(targets.end(), grams.targets.begin(), grams.targets.end());
  }
  const Expr counts = weighted(node, join(parts, 1));
  const Expr y = in_result_order(node, counts, targets);
  give(node, 0, one_row ? squeeze(y, 0) : y);
}

// Beyond what is meant stands an item that no n-gram has.
void bounded_tf_idf_vectorizer(NodeImport& node, Rule rule) {
  const Counts counts = node.counts(0);
  const Expr x = operand(node, 0);
  std::optional<Expr> stranger;
  if (x.dtype() == DType::String) {
    std::string text(1, '\1');
    for (const std::string& word : node.get_strings("pool_strings"))
      if (word.size() >= text.size()) text.resize(word.size() + 1, '\1');
    stranger = constant_strings(node, {text}, {});
  } else {
    int64_t largest = 0;
    for (int64_t item : node.get_ints("pool_int64s")) largest = std::max(largest, item);
    if (largest == std::numeric_limits<int64_t>::max() ||
        (x.dtype() == DType::I32 && largest >= std::numeric_limits<int32_t>::max()))
      refuse_bounded(node, 0, x.rank() - 1);
    stranger = Expr{&node.g, constant_int(node.g, x.dtype(), {}, largest + 1)};
  }
  const int64_t last = x.rank() - 1;
  node.replace_input(0, masked(x, counts, {last}, *stranger).id);
  rule(node);
  if (last == 1) node.set_counts(0, tidy({counts[0], kNoNode}));
}

} // namespace svod
