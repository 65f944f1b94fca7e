// Tree ensembles. All trees of all rows walk down at once: the state is one node index
// per row and tree, a step gathers the node's feature, threshold and children, and leaves
// point at themselves. After as many steps as the deepest tree has levels, the leaves'
// weights are gathered and summed.
#include "importer/post_transform.h"

#include <algorithm>
#include <map>

namespace svod {
namespace {

enum class Mode { Leaf, LessEqual, Less, GreaterEqual, Greater, Equal, NotEqual };

struct TreeNode {
  Mode mode = Mode::Leaf;
  int64_t feature = 0, yes = 0, no = 0; // children as indices into the ensemble
  double value = 0;
  bool missing_is_yes = false;
  std::vector<std::pair<int64_t, double>> weights; // of a leaf: target, weight
};

struct Ensemble {
  std::vector<TreeNode> nodes;
  std::vector<int64_t> roots;
  int64_t targets = 0;
};

std::optional<Mode> mode_from(const std::string& text) {
  static const std::map<std::string, Mode> modes{
      {"LEAF", Mode::Leaf},           {"BRANCH_LEQ", Mode::LessEqual},
      {"BRANCH_LT", Mode::Less},      {"BRANCH_GTE", Mode::GreaterEqual},
      {"BRANCH_GT", Mode::Greater},   {"BRANCH_EQ", Mode::Equal},
      {"BRANCH_NEQ", Mode::NotEqual},
  };
  auto found = modes.find(text);
  return found == modes.end() ? std::nullopt : std::optional(found->second);
}

// An attribute as floats, or as a tensor under the name with "_as_tensor".
std::vector<double> values_of(NodeImport& node, const std::string& name) {
  std::string tensor_name = name + "_as_tensor";
  if (node.has(tensor_name))
    return *known_floats(node.g, node.tensor(node.get_tensor(tensor_name)));
  std::vector<float> values = node.get_floats(name);
  return {values.begin(), values.end()};
}

using Key = std::pair<int64_t, int64_t>; // tree, node

// The nodes_* attributes, shared by classifier and regressor up to opset 4 of the domain.
std::map<Key, int64_t> read_nodes(NodeImport& node, Ensemble& ensemble) {
  std::vector<int64_t> trees = node.get_ints("nodes_treeids"),
                       ids = node.get_ints("nodes_nodeids"),
                       feature = node.get_ints("nodes_featureids"),
                       yes = node.get_ints("nodes_truenodeids"),
                       no = node.get_ints("nodes_falsenodeids"),
                       missing = node.get_ints("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = node.get_strings("nodes_modes");
  std::vector<double> values = values_of(node, "nodes_values");
  size_t count = trees.size();
  for (size_t size :
       {ids.size(), feature.size(), yes.size(), no.size(), modes.size(), values.size()})
    require(node, size == count && count > 0, "the nodes_ attributes differ in length");
  std::map<Key, int64_t> index;
  for (size_t i = 0; i < count; ++i) {
    require(node, index.emplace(Key{trees[i], ids[i]}, static_cast<int64_t>(i)).second,
            "a node of a tree is listed twice");
    if (i == 0 || trees[i] != trees[i - 1])
      ensemble.roots.push_back(static_cast<int64_t>(i));
  }
  for (size_t i = 0; i < count; ++i) {
    std::optional<Mode> mode = mode_from(modes[i]);
    if (!mode) node.invalid("nodes_modes has the unknown mode '" + modes[i] + "'");
    auto self = static_cast<int64_t>(i);
    TreeNode tree_node{*mode, 0, self, self, 0, i < missing.size() && missing[i] != 0,
                       {}};
    if (*mode != Mode::Leaf) {
      auto to_yes = index.find({trees[i], yes[i]}), to_no = index.find({trees[i], no[i]});
      require(node, to_yes != index.end() && to_no != index.end() && feature[i] >= 0,
              "a node's child or feature does not exist");
      tree_node.feature = feature[i];
      tree_node.value = values[i];
      tree_node.yes = to_yes->second;
      tree_node.no = to_no->second;
    }
    ensemble.nodes.push_back(tree_node);
  }
  return index;
}

void read_weights(NodeImport& node, Ensemble& ensemble,
                  const std::map<Key, int64_t>& index, const std::string& prefix,
                  int64_t targets) {
  std::vector<int64_t> trees = node.get_ints(prefix + "_treeids"),
                       ids = node.get_ints(prefix + "_nodeids"),
                       target = node.get_ints(prefix + "_ids");
  std::vector<double> weights = values_of(node, prefix + "_weights");
  require(node,
          trees.size() == ids.size() && ids.size() == target.size() &&
              target.size() == weights.size(),
          "the attributes of the leaves differ in length");
  ensemble.targets = targets;
  for (size_t i = 0; i < trees.size(); ++i) {
    auto at = index.find({trees[i], ids[i]});
    require(node, at != index.end() && target[i] >= 0 && target[i] < targets,
            "a leaf's weight belongs to no node or target");
    ensemble.nodes[static_cast<size_t>(at->second)].weights.push_back(
        {target[i], weights[i]});
  }
}

// Levels below the roots; invalid() for a cycle.
int64_t depth_of(NodeImport& node, const Ensemble& ensemble) {
  std::vector<int64_t> level = ensemble.roots;
  int64_t depth = 0;
  while (true) {
    std::vector<int64_t> next;
    for (int64_t at : level) {
      const TreeNode& n = ensemble.nodes[static_cast<size_t>(at)];
      if (n.mode != Mode::Leaf) next.insert(next.end(), {n.yes, n.no});
    }
    if (next.empty()) return depth;
    if (next.size() > 2 * ensemble.nodes.size() || ++depth > 1000)
      node.invalid("the trees have a cycle");
    level = std::move(next);
  }
}

template <class F> std::vector<int64_t> each_node(const Ensemble& ensemble, F&& f) {
  std::vector<int64_t> values;
  for (const TreeNode& n : ensemble.nodes) values.push_back(static_cast<int64_t>(f(n)));
  return values;
}

Expr table(NodeImport& node, const std::vector<int64_t>& values) {
  return {&node.g, tensor_i64(node.g, {static_cast<int64_t>(values.size())}, values)};
}

Expr compare(Mode mode, Expr x, Expr value) {
  switch (mode) {
  case Mode::Less:
    return less(x, value);
  case Mode::GreaterEqual:
    return less_equal(value, x);
  case Mode::Greater:
    return less(value, x);
  case Mode::Equal:
    return equal(x, value);
  case Mode::NotEqual:
    return apply(Op::Not, equal(x, value));
  default:
    return less_equal(x, value);
  }
}

// Node index of the leaf of every row and tree, [rows * trees].
Expr leaves(NodeImport& node, const Ensemble& ensemble, Expr x) {
  int64_t rows = extent(x, 0), trees = static_cast<int64_t>(ensemble.roots.size());
  int64_t widest = 0;
  std::vector<Mode> modes;
  bool missing = false;
  std::vector<float> thresholds;
  for (const TreeNode& n : ensemble.nodes) {
    widest = std::max(widest, n.feature);
    missing = missing || (n.missing_is_yes && n.mode != Mode::Leaf);
    if (n.mode != Mode::Leaf &&
        std::find(modes.begin(), modes.end(), n.mode) == modes.end())
      modes.push_back(n.mode);
    thresholds.push_back(static_cast<float>(n.value));
  }
  require(node, widest < extent(x, 1), "a tree asks for a feature beyond the input");
  Expr feature = table(node, each_node(ensemble, [](auto& n) { return n.feature; }));
  Expr yes = table(node, each_node(ensemble, [](auto& n) { return n.yes; }));
  Expr no = table(node, each_node(ensemble, [](auto& n) { return n.no; }));
  Expr mode = table(node, each_node(ensemble, [](auto& n) { return n.mode; }));
  Expr track = table(node, each_node(ensemble, [](auto& n) { return n.missing_is_yes; }));
  Shape all{static_cast<int64_t>(thresholds.size())};
  Expr threshold = convert({&node.g, tensor_f32(node.g, all, thresholds)}, x.dtype());
  Expr at = reshape(broadcast(unsqueeze(table(node, ensemble.roots), 0), {rows, trees}),
                    {rows * trees});
  for (int64_t level = depth_of(node, ensemble); level > 0; --level) {
    Expr column = reshape(take(feature, 0, at), {rows, trees});
    Expr value = reshape(gather(x, column, 1), {rows * trees});
    Expr limit = take(threshold, 0, at);
    Expr goes = compare(modes[0], value, limit);
    for (size_t m = 1; m < modes.size(); ++m)
      goes = select(equal(take(mode, 0, at), static_cast<double>(modes[m])),
                    compare(modes[m], value, limit), goes);
    if (missing)
      goes = select(apply(Op::IsNan, value), equal(take(track, 0, at), 1), goes);
    at = select(goes, take(yes, 0, at), take(no, 0, at));
  }
  return at;
}

// The leaves' weights over all trees, [rows, targets].
Expr aggregate(NodeImport& node, const Ensemble& ensemble, Expr x,
               const std::string& how) {
  bool least = how == "MIN", most = how == "MAX";
  if (!least && !most && how != "SUM" && how != "AVERAGE")
    node.invalid("aggregate_function '" + how + "' is not in the specification");
  auto width = static_cast<size_t>(ensemble.targets);
  if ((least || most) && width > 1) node.unsupported("MIN or MAX over several targets");
  std::vector<float> weights(ensemble.nodes.size() * width, 0);
  for (size_t i = 0; i < ensemble.nodes.size(); ++i)
    for (auto [target, weight] : ensemble.nodes[i].weights)
      weights[i * width + static_cast<size_t>(target)] += static_cast<float>(weight);
  Expr at = leaves(node, ensemble, x);
  int64_t rows = extent(x, 0), trees = static_cast<int64_t>(ensemble.roots.size());
  Shape shape{static_cast<int64_t>(ensemble.nodes.size()), ensemble.targets};
  Expr table_of_weights{&node.g, tensor_f32(node.g, shape, weights)};
  Expr chosen = reshape(take(table_of_weights, 0, at), {rows, trees, ensemble.targets});
  Op op = least ? Op::ReduceMin : most ? Op::ReduceMax : Op::ReduceSum;
  Expr y = squeeze(reduce(op, chosen, {1}), 1);
  return how == "AVERAGE" ? y / static_cast<double>(trees) : y;
}

Expr add_base_values(NodeImport& node, Expr scores) {
  std::vector<double> base = values_of(node, "base_values");
  if (base.empty()) return scores;
  require(node,
          base.size() == 1 || static_cast<int64_t>(base.size()) == extent(scores, 1),
          "base_values do not fit the targets");
  std::vector<float> values(base.begin(), base.end());
  Shape shape{static_cast<int64_t>(values.size())};
  return scores + Expr{&node.g, tensor_f32(node.g, shape, values)};
}

Expr rows_of_features(NodeImport& node) {
  Expr x = operand(node, 0);
  if (x.dtype() != DType::F64) x = convert(x, DType::F32);
  if (x.rank() == 1) x = unsqueeze(x, 0);
  require(node, x.rank() == 2, "the input must be a matrix");
  return x;
}

} // namespace

void import_tree_ensemble_regressor(NodeImport& node) {
  Ensemble ensemble;
  std::map<Key, int64_t> index = read_nodes(node, ensemble);
  int64_t targets = node.get_int("n_targets");
  require(node, targets > 0 && targets <= 65536,
          "n_targets must be positive and not huge");
  read_weights(node, ensemble, index, "target", targets);
  Expr y = aggregate(node, ensemble, rows_of_features(node),
                     node.get_string("aggregate_function"));
  y = post_transform(node, add_base_values(node, y), node.get_string("post_transform"));
  give(node, 0, y);
}

// Scores of several classes; two classes with one weight per leaf are refused, since
// there the specification leaves open how one score becomes two.
void import_tree_ensemble_classifier(NodeImport& node) {
  std::vector<int64_t> labels = node.get_ints("classlabels_int64s");
  if (labels.empty()) node.unsupported("class labels that are strings");
  std::vector<int64_t> ids = node.get_ints("class_ids");
  require(node, !ids.empty(), "class_ids is missing");
  auto classes = static_cast<int64_t>(labels.size());
  if (classes < 2 || *std::min_element(ids.begin(), ids.end()) ==
                         *std::max_element(ids.begin(), ids.end()))
    node.unsupported("two classes with the weights of only one");
  Ensemble ensemble;
  std::map<Key, int64_t> index = read_nodes(node, ensemble);
  read_weights(node, ensemble, index, "class", classes);
  Expr scores = aggregate(node, ensemble, rows_of_features(node), "SUM");
  scores = add_base_values(node, scores);
  Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, scores.id, 1, false)};
  give(node, 0, take(table(node, labels), 0, squeeze(best, 1)));
  if (node.wants_output(1))
    give(node, 1, post_transform(node, scores, node.get_string("post_transform")));
}

} // namespace svod
