// Trees as tables. A node's test becomes one or more parts, each "key > number ? second :
// first"; a test for some values is a small search among them, whose many ends lead to
// two places: all but one of the ends are parts that only forward.
#include "importer/trees/tree_ensemble.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <map>

namespace svod::importer {
namespace {

constexpr size_t kNone = ~size_t(0);

struct Part {
  enum class Kind : uint8_t { Test, Forward, Leaf } kind = Kind::Leaf;
  int64_t feature = 0;                  // Test
  uint64_t key = 0;                     // Test; of a Leaf its value
  bool nan_second = false;              // Test
  size_t first = kNone, second = kNone; // Test; Forward: first
};

// A number's place in the order of all numbers of its type; -0 is 0.
uint64_t key_of(double value, bool wide) {
  value += 0.0;
  if (wide) {
    auto bits = std::bit_cast<uint64_t>(value);
    return bits >> 63 != 0 ? ~bits : bits | uint64_t(1) << 63;
  }
  auto bits = std::bit_cast<uint32_t>(static_cast<float>(value));
  return bits >> 31 != 0 ? ~bits : bits | uint32_t(1) << 31;
}

class Layout {
public:
  Layout(NodeImport& node, const TreeEnsemble& ensemble, bool wide,
         const std::vector<uint64_t>& result)
      : node_(node), ensemble_(ensemble), wide_(wide), result_(result) {}
  TreeTables run();

private:
  struct Open { // a search among thresholds [low, high), for the part `at`
    size_t at, low, high;
  };

  void expand(size_t i);
  void expand_set(size_t i);
  std::vector<uint64_t> thresholds(const TreeNode& n) const;
  void number_tree(size_t root);
  void find_columns();

  NodeImport& node_;
  const TreeEnsemble& ensemble_;
  bool wide_;
  const std::vector<uint64_t>& result_;
  std::vector<Part> parts_;              // those of the ensemble's nodes first
  std::vector<size_t> order_;            // the part at each place of the tables
  std::vector<size_t> place_;            // and the last place of each part
  std::map<size_t, size_t> next_;        // place of a part's first child
  std::map<size_t, size_t> forwards_to_; // forwards to a part that have no place yet
  TreeTables out_;
};

// Where a value starts, and where it ends, to belong to the set: an even number of them.
std::vector<uint64_t> Layout::thresholds(const TreeNode& n) const {
  std::vector<uint64_t> keys;
  std::vector<double> members = n.members;
  if (n.mode != TreeMode::Member) members = {n.value};
  for (double m : members)
    if (!std::isnan(m)) keys.push_back(key_of(m, wide_));
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<uint64_t> out;
  for (uint64_t key : keys) {
    if (!out.empty() && out.back() == key - 1)
      out.back() = key;
    else
      out.insert(out.end(), {key - 1, key});
  }
  return out;
}

// A binary search: after an odd number of thresholds lies the set.
void Layout::expand_set(size_t i) {
  const TreeNode& n = ensemble_.nodes[i];
  std::vector<uint64_t> bounds = thresholds(n);
  bool other = n.mode == TreeMode::NotEqual;
  size_t inside = static_cast<size_t>(other ? n.no : n.yes);
  size_t outside = static_cast<size_t>(other ? n.yes : n.no);
  // NaN is outside, by the way, unless it is said to go in.
  bool test_nan = n.missing_is_yes && !other;
  size_t at = i;
  std::vector<size_t> ends[2]; // outside, inside; in the order of levels
  auto add = [&](Part part) {
    parts_.push_back(part);
    return parts_.size() - 1;
  };
  if (test_nan) {
    size_t end = add({Part::Kind::Forward, 0, 0, false, inside, kNone});
    at = add({});
    parts_[i] = {Part::Kind::Test,
                 n.feature,
                 key_of(std::numeric_limits<double>::infinity(), wide_),
                 true,
                 at,
                 end};
  }
  std::vector<Open> level{{at, 0, bounds.size()}};
  for (size_t k = 0; k < level.size(); ++k) {
    Open open = level[k];
    if (open.low == open.high) {
      ends[open.low % 2].push_back(open.at);
      continue;
    }
    size_t middle = (open.low + open.high) / 2, first = add({}), second = add({});
    parts_[open.at] = {Part::Kind::Test, n.feature, bounds[middle], true, first, second};
    level.push_back({first, open.low, middle});
    level.push_back({second, middle + 1, open.high});
  }
  for (int in : {0, 1})
    for (size_t end : ends[in])
      parts_[end] = {Part::Kind::Forward, 0, 0, false, in != 0 ? inside : outside, kNone};
}

void Layout::expand(size_t i) {
  const TreeNode& n = ensemble_.nodes[i];
  auto yes = static_cast<size_t>(n.yes), no = static_cast<size_t>(n.no);
  uint64_t key = std::isnan(n.value) ? 0 : key_of(n.value, wide_);
  // Nothing is beyond NaN, or below, or equal: the comparison fails for every number.
  bool never = std::isnan(n.value);
  switch (n.mode) {
  case TreeMode::Leaf:
    parts_[i] = {Part::Kind::Leaf, 0, result_[i], false, kNone, kNone};
    return;
  case TreeMode::LessEqual:
  case TreeMode::Less:
    if (n.mode == TreeMode::Less && !never) --key;
    parts_[i] = {Part::Kind::Test, n.feature, key, !n.missing_is_yes, yes, no};
    return;
  case TreeMode::GreaterEqual:
  case TreeMode::Greater:
    if (never) {
      parts_[i] = {Part::Kind::Test, n.feature, key, !n.missing_is_yes, yes, no};
      return;
    }
    if (n.mode == TreeMode::GreaterEqual) --key;
    parts_[i] = {Part::Kind::Test, n.feature, key, n.missing_is_yes, no, yes};
    return;
  default:
    expand_set(i);
  }
}

// Level by level; what several forwards lead to follows the last of them, so that every
// distance goes ahead.
void Layout::number_tree(size_t root) {
  size_t start = order_.size();
  order_.push_back(root);
  std::vector<int64_t> level(1);
  int64_t steps = 0;
  for (size_t at = start; at < order_.size(); ++at) {
    size_t number = order_[at];
    const Part& part = parts_[number];
    bool forwards = part.kind == Part::Kind::Forward;
    if (part.kind == Part::Kind::Test && place_[number] != kNone)
      node_.invalid("the trees have a cycle or share a node");
    place_[number] = at;
    steps = std::max(steps, level[at - start]);
    if (part.kind == Part::Kind::Leaf) continue;
    if (forwards && --forwards_to_[part.first] > 0) continue;
    next_[at] = order_.size();
    order_.push_back(part.first);
    if (!forwards) order_.push_back(part.second);
    level.resize(order_.size() - start, level[at - start] + 1);
  }
  for (size_t at = start; at < order_.size(); ++at) {
    const Part& part = parts_[order_[at]];
    size_t next = at;
    if (part.kind == Part::Kind::Forward) next = place_[part.first];
    if (part.kind == Part::Kind::Test) next = next_.at(at);
    out_.value.push_back(part.key);
    out_.distance.push_back(static_cast<int64_t>(next - at));
    out_.column.push_back(0);
  }
  out_.root.push_back(static_cast<int64_t>(start));
  out_.steps.push_back(steps);
}

void Layout::find_columns() {
  for (size_t part : order_) {
    const Part& p = parts_[part];
    if (p.kind != Part::Kind::Test) continue;
    (p.nan_second ? out_.high : out_.low) = true;
    out_.features.push_back(p.feature);
  }
  std::vector<int64_t>& f = out_.features;
  std::sort(f.begin(), f.end());
  f.erase(std::unique(f.begin(), f.end()), f.end());
  for (size_t at = 0; at < order_.size(); ++at) {
    const Part& p = parts_[order_[at]];
    int64_t column = out_.columns() - 1;
    if (p.kind == Part::Kind::Test) {
      column = std::lower_bound(f.begin(), f.end(), p.feature) - f.begin();
      if (!p.nan_second && out_.high) column += static_cast<int64_t>(f.size());
    }
    out_.column[at] = column;
  }
}

TreeTables Layout::run() {
  parts_.resize(ensemble_.nodes.size());
  for (size_t i = 0; i < ensemble_.nodes.size(); ++i) expand(i);
  for (const Part& part : parts_)
    if (part.kind == Part::Kind::Forward) ++forwards_to_[part.first];
  place_.assign(parts_.size(), kNone);
  for (int64_t root : ensemble_.roots) number_tree(static_cast<size_t>(root));
  find_columns();
  return std::move(out_);
}

} // namespace

TreeTables lay_out_trees(NodeImport& node, const TreeEnsemble& ensemble, bool wide,
                         const std::vector<uint64_t>& result) {
  return Layout(node, ensemble, wide, result).run();
}

} // namespace svod::importer
