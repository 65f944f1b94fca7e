// Decision trees of ai.onnx.ml in one form, whatever operator and opset they come from,
// and their scores as graph nodes.
#pragma once

#include "importer/formula/movement.h"

#include <utility>

namespace svod::importer {

enum class TreeMode : uint8_t {
  LessEqual,
  Less,
  GreaterEqual,
  Greater,
  Equal,
  NotEqual,
  Member,
  Leaf,
};

struct TreeNode {
  TreeMode mode = TreeMode::Leaf;
  int64_t feature = 0, yes = 0, no = 0; // children as indices into the ensemble
  double value = 0;                     // compared with
  bool missing_is_yes = false;          // NaN goes where the comparison holds
  std::vector<double> members;          // Member
  std::vector<std::pair<int64_t, double>> weights; // of a leaf: target, weight
};

struct TreeEnsemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 0;
  bool wide = false; // numbers are doubles
};

enum class Aggregate : uint8_t { Average, Sum, Min, Max };

// The leaves' weights over all trees, [rows, targets]; x is f32 or f64 [rows, features].
// invalid() when the trees have a cycle or ask for features that x has not.
Expr tree_scores(NodeImport& node, const TreeEnsemble& ensemble, Expr x, Aggregate how);

// The tables of Op::Descend. A tree is laid out level by level, so that the two nodes
// below one are neighbours. Every comparison becomes "key > number": keys are
// unsigned integers that order as the features do, and <= and < differ by one in them.
struct TreeTables {
  std::vector<uint64_t> value; // per node
  std::vector<int64_t> column, distance;
  std::vector<int64_t> root, steps; // per tree
  std::vector<int64_t> features;    // those that are compared, ascending
  // Keys: `features` with NaN above all numbers when `high`, then with NaN below all when
  // `low`, then one column below everything, which leaves compare with.
  bool high = false, low = false;
  int64_t columns() const {
    return static_cast<int64_t>(features.size()) * (high + low) + 1;
  }
};
// `result` per node of the ensemble: what a leaf's value is to be.
TreeTables lay_out_trees(NodeImport& node, const TreeEnsemble& ensemble, bool wide,
                         const std::vector<uint64_t>& result);

} // namespace svod::importer
