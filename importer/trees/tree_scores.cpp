// Scores of a tree ensemble as graph nodes: keys of the features, one walk per row and
// tree, and the sum (least, most) of what the walks reach. Where every tree adds to one
// target, a leaf's number is its score and trees stand in lists by target; otherwise it
// is the number of a row of scores.
#include "importer/trees/tree_ensemble.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>

namespace svod::importer {
namespace {

// A block of trees stays in the first cache while rows pass; with few rows, walks of
// several lists of trees go on side by side.
constexpr int64_t kCachedNodes = 4096, kManyRows = 64, kLists = 8;
// With many rows so few nodes are written out, and vectors of rows compared with each.
constexpr int64_t kChosenNodes = 2048;

class Scores {
public:
  Scores(NodeImport& node, const TreeEnsemble& ensemble, Aggregate how)
      : node_(node), e_(ensemble), g_(node.g), how_(how) {}
  Expr run(Expr x);

private:
  bool one_target_each();
  std::vector<double> leaf_scores(const TreeNode& n) const;
  Expr keys(Expr x, int64_t axis) const;
  Expr numbers(const std::vector<double>& values, Shape shape) const;
  Expr reached(Expr keys, const std::vector<int64_t>& roots) const;
  Expr from_lists(Expr x);
  Expr from_walks(Expr keys, const std::vector<std::vector<int64_t>>& of) const;
  bool choices_pay(int64_t rows) const;
  Expr from_choices(Expr x, const std::vector<std::vector<int64_t>>& of) const;
  Expr chosen(Expr columns, int64_t node, int64_t target,
              std::map<int64_t, Expr>& done) const;
  Expr from_rows(Expr x);
  Op reduction() const {
    return how_ == Aggregate::Min   ? Op::ReduceMin
           : how_ == Aggregate::Max ? Op::ReduceMax
                                    : Op::ReduceSum;
  }
  bool is_sum() const { return how_ == Aggregate::Sum || how_ == Aggregate::Average; }
  // What changes no sum, no least, no most.
  double nothing() const {
    if (is_sum()) return 0;
    double inf = std::numeric_limits<double>::infinity();
    return how_ == Aggregate::Min ? inf : -inf;
  }
  double join(double a, double b) const {
    if (is_sum()) return a + b;
    return how_ == Aggregate::Min ? std::min(a, b) : std::max(a, b);
  }
  DType score_type() const { return wide_ ? DType::F64 : DType::F32; }
  DType key_type() const { return wide_ ? DType::U64 : DType::U32; }
  uint64_t score_bits(double score) const {
    if (wide_) return std::bit_cast<uint64_t>(score);
    return std::bit_cast<uint32_t>(static_cast<float>(score));
  }
  bool lay_out(bool wide);

  NodeImport& node_;
  const TreeEnsemble& e_;
  Graph& g_;
  Aggregate how_;
  bool wide_ = false;              // keys and scores have 64 bits
  bool lists_ = false;             // of trees by target
  std::vector<int64_t> target_of_; // of each tree, when lists_
  std::vector<double> rows_;       // of scores, otherwise
  TreeTables t_;
};

// Whether all leaves of a tree score for one target.
bool Scores::one_target_each() {
  target_of_.assign(e_.roots.size(), -1);
  std::vector<bool> seen(e_.nodes.size());
  for (size_t t = 0; t < e_.roots.size(); ++t) {
    std::vector<int64_t> open{e_.roots[t]};
    while (!open.empty()) {
      auto at = static_cast<size_t>(open.back());
      open.pop_back();
      const TreeNode& n = e_.nodes[at];
      if (seen[at] && n.mode != TreeMode::Leaf)
        node_.invalid("the trees have a cycle or share a node");
      seen[at] = true;
      if (n.mode != TreeMode::Leaf) open.insert(open.end(), {n.no, n.yes});
      for (auto [target, weight] : n.weights) {
        if (target_of_[t] >= 0 && target_of_[t] != target) return false;
        target_of_[t] = target;
      }
    }
    target_of_[t] = std::max<int64_t>(target_of_[t], 0);
  }
  std::vector<int64_t> count(static_cast<size_t>(e_.targets));
  for (int64_t target : target_of_) ++count[static_cast<size_t>(target)];
  int64_t longest = *std::max_element(count.begin(), count.end());
  return longest * e_.targets <= 2 * static_cast<int64_t>(target_of_.size());
}

std::vector<double> Scores::leaf_scores(const TreeNode& n) const {
  std::vector<double> scores(static_cast<size_t>(e_.targets), nothing());
  for (auto [target, weight] : n.weights) {
    double& score = scores[static_cast<size_t>(target)];
    score = join(score, weight);
  }
  return scores;
}

bool Scores::lay_out(bool wide) {
  wide_ = wide;
  rows_.clear();
  std::vector<uint64_t> result(e_.nodes.size());
  std::map<std::vector<double>, uint64_t> numbers;
  for (size_t i = 0; i < e_.nodes.size(); ++i) {
    const TreeNode& n = e_.nodes[i];
    if (n.mode != TreeMode::Leaf) continue;
    if (lists_) {
      double score = nothing();
      for (auto [target, weight] : n.weights) score = join(score, weight);
      result[i] = score_bits(score);
      continue;
    }
    std::vector<double> scores = leaf_scores(n);
    auto [at, fresh] = numbers.emplace(scores, numbers.size());
    if (fresh) rows_.insert(rows_.end(), scores.begin(), scores.end());
    result[i] = at->second;
  }
  t_ = lay_out_trees(node_, e_, wide, result);
  if (wide) return true;
  int64_t furthest = 0;
  for (int64_t d : t_.distance) furthest = std::max(furthest, d);
  return furthest < 65536 && t_.columns() <= 65536;
}

// Integers in the order of the features along `axis` of x; see TreeTables.
Expr Scores::keys(Expr x, int64_t axis) const {
  const std::vector<int64_t>& f = t_.features;
  const auto width = static_cast<int64_t>(f.size());
  require(node_, f.empty() || f.back() < extent(x, axis),
          "a tree asks for a feature beyond the input");
  if (width < extent(x, axis)) x = take(x, axis, f);
  auto whole = [&](uint64_t bits) {
    return Expr{&g_, constant_bits(g_, key_type(), x.shape(), bits)};
  };
  uint64_t highest = wide_ ? ~uint64_t(0) : ~uint32_t(0), sign = highest ^ highest >> 1;
  // -0 is 0; a negative number's bits order the other way round, below all others.
  Expr bits{&g_, bitcast(g_, select(equal(x, 0), like(x, 0), x).id, key_type())};
  Expr key = apply(Op::Xor, bits, select(less(x, 0), whole(highest), whole(sign)));
  Expr nan = apply(Op::IsNan, x);
  std::vector<Expr> parts;
  if (t_.high) parts.push_back(select(nan, whole(highest), key));
  if (t_.low) parts.push_back(select(nan, whole(0), key));
  Shape below = x.shape();
  below[static_cast<size_t>(axis)] = 1;
  parts.push_back({&g_, constant_bits(g_, key_type(), std::move(below), 0)});
  return importer::join(parts, axis);
}

Expr Scores::numbers(const std::vector<double>& values, Shape shape) const {
  std::vector<std::byte> bytes(values.size() * (wide_ ? 8 : 4));
  for (size_t i = 0; i < values.size(); ++i) {
    uint64_t bits = score_bits(values[i]);
    std::memcpy(bytes.data() + i * (wide_ ? 8 : 4), &bits, wide_ ? 8 : 4);
  }
  return {&g_, weight(g_, score_type(), std::move(shape), g_.add_blob(std::move(bytes)))};
}

// The value that each row reaches from each root; -1 stands for a tree of nothing.
Expr Scores::reached(Expr keys, const std::vector<int64_t>& trees) const {
  int64_t column = t_.columns() - 1, steps = 0;
  auto count = static_cast<int64_t>(t_.value.size());
  std::vector<std::byte> bytes;
  size_t size = wide_ ? 8 : 4;
  auto put = [&](uint64_t value, int64_t low, int64_t high) {
    uint64_t link = uint64_t(high) << 4 * size | uint64_t(low);
    for (uint64_t word : {value, link}) {
      bytes.resize(bytes.size() + size);
      std::memcpy(bytes.data() + bytes.size() - size, &word, size);
    }
  };
  for (size_t i = 0; i < t_.value.size(); ++i)
    put(t_.value[i], t_.column[i], t_.distance[i]);
  put(score_bits(nothing()), column, 0);
  // Whoever stands before the last node has one behind it.
  put(~uint64_t(0), column, 0);
  NodeId table = weight(g_, key_type(), {count + 2, 2}, g_.add_blob(std::move(bytes)));
  std::vector<int64_t> roots;
  for (int64_t tree : trees) {
    roots.push_back(tree < 0 ? count : t_.root[static_cast<size_t>(tree)]);
    if (tree >= 0) steps = std::max(steps, t_.steps[static_cast<size_t>(tree)]);
  }
  NodeId starts = tensor_i64(g_, {static_cast<int64_t>(roots.size())}, roots);
  return {&g_, descend(g_, keys.id, table, starts, steps)};
}

// Trees by target, those of one leaf apart: their scores need no walk.
Expr Scores::from_lists(Expr x) {
  auto targets = static_cast<size_t>(e_.targets);
  std::vector<std::vector<int64_t>> lists(targets);
  std::vector<double> still(targets, nothing());
  bool any = false;
  for (size_t t = 0; t < target_of_.size(); ++t) {
    auto target = static_cast<size_t>(target_of_[t]);
    if (t_.steps[t] == 0) {
      const TreeNode& leaf = e_.nodes[static_cast<size_t>(e_.roots[t])];
      for (auto [unused, weight] : leaf.weights)
        still[target] = join(still[target], weight);
      continue;
    }
    lists[target].push_back(static_cast<int64_t>(t));
    any = true;
  }
  const int64_t rows = extent(x, 0);
  Expr y = broadcast(numbers(still, {1, e_.targets}), {rows, e_.targets});
  if (!any) return y;
  const Expr more =
      choices_pay(rows) ? from_choices(x, lists) : from_walks(keys(x, 1), lists);
  if (how_ == Aggregate::Min) return minimum(more, y);
  return is_sum() ? more + y : maximum(more, y);
}

Expr Scores::from_walks(Expr keys, const std::vector<std::vector<int64_t>>& of) const {
  int64_t longest = 0, rows = extent(keys, 0), blocks = 1;
  for (const auto& list : of)
    longest = std::max(longest, static_cast<int64_t>(list.size()));
  if (rows >= kManyRows)
    blocks = static_cast<int64_t>(t_.value.size()) / kCachedNodes + 1;
  else if (rows < kLists && longest >= 4 * kLists)
    blocks = kLists;
  int64_t length = (longest + blocks - 1) / blocks;
  blocks = (longest + length - 1) / length;
  std::vector<int64_t> trees;
  for (const auto& list : of) {
    trees.insert(trees.end(), list.begin(), list.end());
    trees.insert(trees.end(), static_cast<size_t>(blocks * length) - list.size(), -1);
  }
  Expr bits = reshape(reached(keys, trees), {rows, e_.targets, blocks, length});
  Expr y = reduce(reduction(), {&g_, bitcast(g_, bits.id, score_type())}, {3});
  return reshape(reduce(reduction(), y, {2}), {rows, e_.targets});
}

// All nodes cost less than one path where trees are shallow: a node 0.05 ns, of which
// half is the choice, which each target has for itself, against 0.6 ns a step; and all
// trees walk as many steps as the deepest.
bool Scores::choices_pay(int64_t rows) const {
  constexpr int64_t kNodesOfAStep = 10;
  const auto trees = static_cast<int64_t>(t_.root.size());
  const auto leaves = std::ranges::count(t_.distance, 0);
  const int64_t nodes = std::ssize(t_.value), inner = nodes - leaves,
                choices = lists_ ? 1 : e_.targets;
  const int64_t steps = *std::ranges::max_element(t_.steps);
  return rows >= kManyRows && nodes <= kChosenNodes / choices &&
         inner * (1 + choices) <= 2 * kNodesOfAStep * steps * trees;
}

// The score for a target of what is below a node, [rows]: the nodes as comparisons, each
// of which chooses between what lies below it. Several nodes may lead to one, after a
// search in a set.
Expr Scores::chosen(Expr columns, int64_t node, int64_t target,
                    std::map<int64_t, Expr>& done) const {
  if (const auto known = done.find(node); known != done.end()) return known->second;
  const auto at = static_cast<size_t>(node);
  const Shape rows{extent(columns, 1)};
  const int64_t below = node + t_.distance[at];
  uint64_t bits = t_.value[at]; // of a leaf
  if (below == node && !lists_)
    bits = score_bits(
        rows_[bits * static_cast<uint64_t>(e_.targets) + static_cast<uint64_t>(target)]);
  Expr y{&g_, constant_bits(g_, score_type(), rows, bits)};
  if (below > node) {
    y = chosen(columns, below, target, done);
    if (t_.column[at] != t_.columns() - 1) { // that one's key is above no number
      const Expr value{&g_, constant_bits(g_, key_type(), rows, t_.value[at])};
      const Expr key = squeeze(cut(columns, 0, t_.column[at], 1), 0);
      y = select(less(value, key), chosen(columns, below + 1, target, done), y);
    }
  }
  done.emplace(node, y);
  return y;
}

// `of`: the trees of each target. The keys of a feature are neighbours, as vectors of
// rows need them.
Expr Scores::from_choices(Expr x, const std::vector<std::vector<int64_t>>& of) const {
  const Expr columns = keys(permute(x, {1, 0}), 0);
  std::vector<Expr> targets;
  for (const std::vector<int64_t>& list : of) {
    std::map<int64_t, Expr> done;
    Expr y{&g_, constant_bits(g_, score_type(), {extent(x, 0)}, score_bits(nothing()))};
    bool first = true;
    for (int64_t tree : list) {
      const Expr score = chosen(columns, t_.root[static_cast<size_t>(tree)],
                                static_cast<int64_t>(targets.size()), done);
      y = first                    ? score
          : is_sum()               ? y + score
          : how_ == Aggregate::Min ? minimum(y, score)
                                   : maximum(y, score);
      first = false;
    }
    targets.push_back(unsqueeze(y, 1));
  }
  return importer::join(targets, 1);
}

Expr Scores::from_rows(Expr x) {
  auto trees = static_cast<int64_t>(e_.roots.size());
  std::vector<int64_t> all;
  for (int64_t t = 0; t < trees; ++t) all.push_back(t);
  if (choices_pay(extent(x, 0)))
    return from_choices(x, {static_cast<size_t>(e_.targets), all});
  const Expr keys = this->keys(x, 1);
  int64_t rows = extent(keys, 0), lists = static_cast<int64_t>(rows_.size()) / e_.targets;
  Expr number{&g_, bitcast(g_, reached(keys, all).id, wide_ ? DType::I64 : DType::I32)};
  Expr at = reshape(number, {rows * trees});
  Expr chosen = take(numbers(rows_, {lists, e_.targets}), 0, at);
  Expr y = reduce(reduction(), reshape(chosen, {rows, trees, e_.targets}), {1});
  return reshape(y, {rows, e_.targets});
}

Expr Scores::run(Expr x) {
  lists_ = one_target_each();
  if (!lay_out(e_.wide || x.dtype() == DType::F64)) lay_out(true);
  if (wide_) x = convert(x, DType::F64);
  Expr y = lists_ ? from_lists(x) : from_rows(x);
  // A target that no leaf has scored for is 0.
  if (!is_sum()) y = select(equal(absolute(y), like(y, HUGE_VAL)), like(y, 0), y);
  if (how_ == Aggregate::Average) y = y / static_cast<double>(e_.roots.size());
  return y;
}

} // namespace

Expr tree_scores(NodeImport& node, const TreeEnsemble& ensemble, Expr x, Aggregate how) {
  return Scores(node, ensemble, how).run(x);
}

} // namespace svod::importer
