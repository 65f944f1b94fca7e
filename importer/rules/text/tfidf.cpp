// TfIdfVectorizer over numbers: how often each n-gram of a known pool occurs. Per length
// of n-gram and distance between its items, the items of each window lead down a tree of
// the pool's n-grams: a node and the next item are one number, and that is looked up.
// Each window that comes to an end adds 1 there. (4000 items, 100 n-grams: 75 us by
// comparing all windows with all n-grams.)
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"
#include "importer/text/find_numbers.h"
#include "importer/text/strings.h"

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>

namespace svod::importer {
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

// The items of the pool, as numbers from 0.
class Items {
public:
  Items(Expr x, const std::vector<int64_t>& pool) : distinct_(pool), x_(x) {
    std::ranges::sort(distinct_);
    distinct_.erase(std::ranges::unique(distinct_).begin(), distinct_.end());
    std::vector<int64_t> numbers(distinct_.size());
    std::iota(numbers.begin(), numbers.end(), 0);
    x_ = follow(x, distinct_, numbers, count());
  }
  int64_t count() const { return std::ssize(distinct_); }
  int64_t number(int64_t item) const {
    return std::ranges::lower_bound(distinct_, item) - distinct_.begin();
  }
  // Of each item of the input, [rows, items]; count() where the pool has none like it.
  Expr numbers() const { return x_; }
  // What each key leads to, `none` where it is not among the keys.
  static Expr follow(Expr x, const std::vector<int64_t>& keys,
                     const std::vector<int64_t>& values, int64_t none) {
    const Found found = find_whole(x, keys, values, none);
    const Expr table = with(
        x, tensor_i64(*x.g, {static_cast<int64_t>(found.table.size())}, found.table));
    return look_up(convert(table, DType::I64), found.place);
  }

private:
  std::vector<int64_t> distinct_;
  Expr x_;
};

// The gram that begins at each place, [rows, places], grams.count() for none; its items
// stand `distance` apart.
Expr grams_at(NodeImport& node, const Items& items, const Grams& grams,
              int64_t distance) {
  const Expr x = items.numbers();
  const int64_t places = extent(x, 1) - (grams.length - 1) * distance,
                width = items.count() + 1;
  const Shape shape{extent(x, 0), std::max<int64_t>(places, 0)};
  Expr at = with(x, constant_int(node.g, DType::I32, shape, 0));
  if (places <= 0) return at;
  const bool narrow = grams.count() < std::numeric_limits<int32_t>::max() / width;
  const DType key = narrow ? DType::I32 : DType::I64;
  std::vector<int64_t> nodes(static_cast<size_t>(grams.count())); // that each is at
  for (int64_t i = 0; i < grams.length; ++i) {
    const bool last = i + 1 == grams.length;
    std::map<int64_t, int64_t> next; // by node and item
    for (int64_t gram = 0; gram < grams.count(); ++gram) {
      int64_t& here = nodes[static_cast<size_t>(gram)];
      const int64_t item = grams.items[static_cast<size_t>(gram * grams.length + i)];
      const auto [place, fresh] =
          next.emplace(here * width + items.number(item), last ? gram : std::ssize(next));
      require(node, fresh || !last, "an n-gram stands twice in the pool");
      here = place->second;
    }
    std::vector<int64_t> keys, values;
    for (const auto& [key, value] : next) {
      keys.push_back(key);
      values.push_back(value);
    }
    const int64_t none = last ? grams.count() : std::ssize(next);
    const Expr here = convert(at, key) * static_cast<double>(width),
               item = convert(cut(x, 1, i * distance, places), key);
    at = Items::follow(here + item, keys, values, none);
  }
  return at;
}

// How often each of `count` numbers stands in the rows of x; `count` itself is passed
// over.
Expr occurrences(Expr x, int64_t count) {
  Graph& g = *x.g;
  const Expr zero = with(x, constant(g, DType::F32, {extent(x, 0), count + 1}, 0)),
             one = with(x, constant(g, DType::F32, x.shape(), 1));
  if (extent(x, 1) == 0) return cut(zero, 1, 0, count);
  return cut(scatter(zero, x, one, 1, Combiner::Add), 1, 0, count);
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
  const Items items(x, pool);
  std::vector<Expr> parts;
  std::vector<int64_t> targets;
  for (const Grams& grams : read_pool(node, pool)) {
    if (grams.count() == 0) continue;
    std::vector<Expr> found;
    // Single items have no distance; beyond the input's length nothing can match.
    const int64_t most = grams.length == 1 ? 1 : std::min(skips + 1, extent(x, 1));
    if (most > kMostDistances) node.unsupported("skips of this length");
    if (shortest <= grams.length && grams.length <= longest)
      for (int64_t distance = 1; distance <= most; ++distance)
        found.push_back(grams_at(node, items, grams, distance));
    const Expr none = cut(items.numbers(), 1, 0, 0);
    parts.push_back(occurrences(found.empty() ? none : join(found, 1), grams.count()));
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

} // namespace svod::importer
