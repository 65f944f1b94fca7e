// Tree ensembles: the three operators read into one form (tree_ensemble.h).
#include "importer/trees/tree_ensemble.h"

#include "importer/rules/ml/features.h"
#include "importer/rules/ml/post_transform.h"
#include "importer/text/strings.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace svod::importer {
namespace {

constexpr int64_t kMostTargets = 65536;

std::optional<TreeMode> mode_from(const std::string& text) {
  static const std::map<std::string, TreeMode> modes{
      {"LEAF", TreeMode::Leaf},          {"BRANCH_LEQ", TreeMode::LessEqual},
      {"BRANCH_LT", TreeMode::Less},     {"BRANCH_GTE", TreeMode::GreaterEqual},
      {"BRANCH_GT", TreeMode::Greater},  {"BRANCH_EQ", TreeMode::Equal},
      {"BRANCH_NEQ", TreeMode::NotEqual}};
  auto found = modes.find(text);
  return found == modes.end() ? std::nullopt : std::optional(found->second);
}

// An attribute as floats, or as a tensor under the name with "_as_tensor".
std::vector<double> values_of(NodeImport& node, const std::string& name,
                              bool* wide = nullptr) {
  std::string tensor_name = name + "_as_tensor";
  if (node.opset >= 3 && node.has(tensor_name)) {
    NodeId tensor = node.tensor(node.get_tensor(tensor_name));
    if (wide != nullptr) *wide |= node.g[tensor].dtype == DType::F64;
    std::optional<std::vector<double>> values = known_floats(node.g, tensor);
    require(node, values.has_value(), "an attribute has too many numbers");
    return *values;
  }
  std::vector<float> values = node.get_floats(name);
  return {values.begin(), values.end()};
}

using Key = std::pair<int64_t, int64_t>; // tree, node

// The nodes_* attributes that classifier and regressor share.
std::map<Key, int64_t> read_nodes(NodeImport& node, TreeEnsemble& ensemble) {
  std::vector<int64_t> trees = node.get_ints("nodes_treeids"),
                       ids = node.get_ints("nodes_nodeids"),
                       feature = node.get_ints("nodes_featureids"),
                       yes = node.get_ints("nodes_truenodeids"),
                       no = node.get_ints("nodes_falsenodeids"),
                       missing = node.get_ints("nodes_missing_value_tracks_true");
  std::vector<std::string> modes = node.get_strings("nodes_modes");
  std::vector<double> values = values_of(node, "nodes_values", &ensemble.wide);
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
    std::optional<TreeMode> mode = mode_from(modes[i]);
    if (!mode) node.invalid("nodes_modes has the unknown mode '" + modes[i] + "'");
    TreeNode n{*mode, 0, 0, 0, values[i], i < missing.size() && missing[i] != 0, {}, {}};
    if (*mode != TreeMode::Leaf) {
      auto to_yes = index.find({trees[i], yes[i]}), to_no = index.find({trees[i], no[i]});
      require(node, to_yes != index.end() && to_no != index.end() && feature[i] >= 0,
              "a node's child or feature does not exist");
      n.feature = feature[i];
      n.yes = to_yes->second;
      n.no = to_no->second;
    }
    ensemble.nodes.push_back(std::move(n));
  }
  return index;
}

void read_weights(NodeImport& node, TreeEnsemble& ensemble,
                  const std::map<Key, int64_t>& index, const std::string& prefix,
                  int64_t targets) {
  std::vector<int64_t> trees = node.get_ints(prefix + "_treeids"),
                       ids = node.get_ints(prefix + "_nodeids"),
                       target = node.get_ints(prefix + "_ids");
  std::vector<double> weights = values_of(node, prefix + "_weights", &ensemble.wide);
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

Aggregate aggregate_from(NodeImport& node, const std::string& name) {
  if (name == "SUM") return Aggregate::Sum;
  if (name == "AVERAGE") return Aggregate::Average;
  if (name == "MIN") return Aggregate::Min;
  if (name != "MAX")
    node.invalid("aggregate_function '" + name + "' is not in the specification");
  return Aggregate::Max;
}

Expr constants(Expr like_dtype, const std::vector<double>& values) {
  Graph& g = *like_dtype.g;
  std::vector<float> narrow(values.begin(), values.end());
  std::vector<Expr> parts;
  if (like_dtype.dtype() != DType::F64)
    return {&g, tensor_f32(g, {static_cast<int64_t>(values.size())}, narrow)};
  for (double v : values) parts.push_back({&g, constant(g, DType::F64, {1}, v)});
  return join(parts, 0);
}

Expr add_base_values(NodeImport& node, Expr scores, const std::vector<double>& base) {
  if (base.empty()) return scores;
  require(node,
          base.size() == 1 || static_cast<int64_t>(base.size()) == extent(scores, 1),
          "base_values do not fit the targets");
  return scores + constants(scores, base);
}

// The one class that every leaf scores for; -1 when there are several.
int64_t only_class(const std::vector<int64_t>& ids) {
  return std::ranges::count(ids, ids[0]) == std::ssize(ids) ? ids[0] : -1;
}

// Two classes and the scores s of one. The specification is silent; this is what
// converters rely on and ONNX Runtime does: weights that are all positive make a
// probability, so 1/2 parts the classes and the other has 1 - s; others a margin, which 0
// parts, and the other class has -s.
void give_two_classes(NodeImport& node, Expr s, int64_t scored, bool positive,
                      const std::vector<int64_t>& labels) {
  std::string transform = node.get_string("post_transform");
  Expr second = less(like(s, positive ? 0.5 : 0), s);
  Expr names{&node.g, tensor_i64(node.g, {2}, labels)};
  give_label(node, squeeze(select(second, cut(names, 0, 1, 1), cut(names, 0, 0, 1)), 1));
  if (!node.wants_output(1)) return;
  // Of the second class alone: the first one has no score, 0.
  Expr both = importer::join({like(s, 0), s}, 1);
  if (scored != 1) {
    if (transform == "PROBIT") node.unsupported("PROBIT of one score for two classes");
    bool logistic = transform == "LOGISTIC";
    Expr other = positive && !logistic ? 1.0 - s : -s;
    both = importer::join({other, s}, 1);
    if (!logistic) transform = "NONE";
  }
  give(node, 1, convert(post_transform(node, both, transform), DType::F32));
}

} // namespace

void import_tree_ensemble_regressor(NodeImport& node) {
  TreeEnsemble ensemble;
  std::map<Key, int64_t> index = read_nodes(node, ensemble);
  int64_t targets = node.get_int("n_targets");
  require(node, targets > 0 && targets <= kMostTargets,
          "n_targets must be positive and not huge");
  read_weights(node, ensemble, index, "target", targets);
  Aggregate how = aggregate_from(node, node.get_string("aggregate_function"));
  Expr y = tree_scores(node, ensemble, feature_matrix(node), how);
  y = add_base_values(node, y, values_of(node, "base_values"));
  y = post_transform(node, y, node.get_string("post_transform"));
  give(node, 0, convert(y, DType::F32));
}

void import_tree_ensemble_classifier(NodeImport& node) {
  std::vector<int64_t> labels = class_labels(node, "classlabels_int64s");
  std::vector<int64_t> ids = node.get_ints("class_ids");
  require(node, !ids.empty(), "class_ids is missing");
  auto classes = static_cast<int64_t>(labels.size());
  if (classes < 2) node.unsupported("a classifier of one class");
  require(node, classes <= kMostTargets, "there are too many classes");
  TreeEnsemble ensemble;
  std::map<Key, int64_t> index = read_nodes(node, ensemble);
  read_weights(node, ensemble, index, "class", classes);
  std::vector<double> base = values_of(node, "base_values");
  int64_t scored = classes == 2 ? only_class(ids) : -1;
  if (scored >= 0) {
    bool positive = true;
    for (TreeNode& n : ensemble.nodes)
      for (auto& [target, weight] : n.weights) positive &= weight >= 0, target = 0;
    if (base.size() > 1 || (scored == 1 && !base.empty()))
      node.unsupported("base_values for two classes of which leaves score only one");
    ensemble.targets = 1;
    Expr s = tree_scores(node, ensemble, feature_matrix(node), Aggregate::Sum);
    return give_two_classes(node, add_base_values(node, s, base), scored, positive,
                            labels);
  }
  Expr scores = tree_scores(node, ensemble, feature_matrix(node), Aggregate::Sum);
  scores = add_base_values(node, scores, base);
  // A class that no leaf scores for, and no base value, wins over none that has a score.
  std::vector<double> handicap(labels.size(), base.empty() ? -HUGE_VAL : 0);
  for (int64_t id : ids) handicap[static_cast<size_t>(id)] = 0;
  Expr rivals = std::ranges::count(handicap, 0) == classes
                    ? scores
                    : scores + constants(scores, handicap);
  Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, rivals.id, 1, false)};
  Expr names{&node.g, tensor_i64(node.g, {classes}, labels)};
  give_label(node, take(names, 0, squeeze(best, 1)));
  if (!node.wants_output(1)) return;
  scores = post_transform(node, scores, node.get_string("post_transform"));
  give(node, 1, convert(scores, DType::F32));
}

namespace {

// Opset 5: nodes and leaves are numbered apart.
class EnsembleReader {
public:
  explicit EnsembleReader(NodeImport& node) : node_(node) {}
  TreeEnsemble run();

private:
  std::vector<int64_t> ints(const char* name, size_t count) const {
    std::vector<int64_t> values = node_.get_ints(name);
    require(node_, values.size() == count, "the nodes_ attributes differ in length");
    return values;
  }
  std::vector<double> tensor(const char* name) {
    NodeId tensor = node_.tensor(node_.get_tensor(name));
    out_.wide |= node_.g[tensor].dtype == DType::F64;
    std::optional<std::vector<double>> values = known_floats(node_.g, tensor);
    require(node_, values.has_value(), "an attribute has too many numbers");
    return *values;
  }
  void read_leaves();
  void read_members();

  NodeImport& node_;
  TreeEnsemble out_;
  size_t inner_ = 0; // nodes that are no leaves; leaves follow them
};

void EnsembleReader::read_leaves() {
  std::vector<int64_t> target = node_.get_ints("leaf_targetids");
  std::vector<double> weights = tensor("leaf_weights");
  require(node_, target.size() == weights.size() && !target.empty(),
          "leaf_targetids and leaf_weights differ in length");
  for (size_t i = 0; i < target.size(); ++i) {
    require(node_, target[i] >= 0 && target[i] < out_.targets,
            "a leaf's weight belongs to no target");
    TreeNode leaf;
    leaf.weights = {{target[i], weights[i]}};
    out_.nodes.push_back(std::move(leaf));
  }
}

// One list of numbers for each BRANCH_MEMBER in turn, ended by NaN.
void EnsembleReader::read_members() {
  std::vector<double> values;
  if (node_.has("membership_values")) values = tensor("membership_values");
  size_t at = 0;
  for (TreeNode& n : out_.nodes) {
    if (n.mode != TreeMode::Member) continue;
    while (at < values.size() && !std::isnan(values[at]))
      n.members.push_back(values[at++]);
    require(node_, at++ < values.size(),
            "membership_values has no list for a BRANCH_MEMBER");
  }
  require(node_, at == values.size(),
          "membership_values has more lists than there are BRANCH_MEMBER");
}

TreeEnsemble EnsembleReader::run() {
  out_.targets = node_.get_int("n_targets");
  require(node_, out_.targets > 0 && out_.targets <= kMostTargets,
          "n_targets must be positive and not huge");
  std::vector<int64_t> feature = node_.get_ints("nodes_featureids");
  inner_ = feature.size();
  std::vector<int64_t> yes = ints("nodes_truenodeids", inner_),
                       no = ints("nodes_falsenodeids", inner_),
                       yes_leaf = ints("nodes_trueleafs", inner_),
                       no_leaf = ints("nodes_falseleafs", inner_),
                       missing = node_.get_ints("nodes_missing_value_tracks_true");
  std::vector<double> splits = tensor("nodes_splits"), modes = tensor("nodes_modes");
  require(node_,
          splits.size() == inner_ && modes.size() == inner_ &&
              (missing.empty() || missing.size() == inner_),
          "the nodes_ attributes differ in length");
  size_t leaves = node_.get_ints("leaf_targetids").size();
  auto child = [&](int64_t at, bool leaf) {
    require(node_, at >= 0 && static_cast<size_t>(at) < (leaf ? leaves : inner_),
            "a node's child does not exist");
    return at + (leaf ? static_cast<int64_t>(inner_) : 0);
  };
  for (size_t i = 0; i < inner_; ++i) {
    require(node_, modes[i] >= 0 && modes[i] <= 6, "nodes_modes has an unknown mode");
    require(node_, feature[i] >= 0, "a node's feature does not exist");
    out_.nodes.push_back({static_cast<TreeMode>(modes[i]),
                          feature[i],
                          child(yes[i], yes_leaf[i] != 0),
                          child(no[i], no_leaf[i] != 0),
                          splits[i],
                          !missing.empty() && missing[i] != 0,
                          {},
                          {}});
  }
  read_leaves();
  read_members();
  out_.roots = node_.get_ints("tree_roots");
  require(node_, !out_.roots.empty(), "tree_roots is missing");
  for (int64_t root : out_.roots) child(root, false);
  return std::move(out_);
}

} // namespace

void import_tree_ensemble(NodeImport& node) {
  static constexpr Aggregate kAggregates[] = {Aggregate::Average, Aggregate::Sum,
                                              Aggregate::Min, Aggregate::Max};
  static constexpr const char* kTransforms[] = {"NONE", "SOFTMAX", "LOGISTIC",
                                                "SOFTMAX_ZERO", "PROBIT"};
  int64_t how = node.get_int("aggregate_function"),
          transform = node.get_int("post_transform");
  require(node, how >= 0 && how < 4, "aggregate_function is not in the specification");
  require(node, transform >= 0 && transform < 5,
          "post_transform is not in the specification");
  TreeEnsemble ensemble = EnsembleReader(node).run();
  DType dtype = node.dtype(0);
  Expr y = tree_scores(node, ensemble, feature_matrix(node), kAggregates[how]);
  give(node, 0, convert(post_transform(node, y, kTransforms[transform]), dtype));
}

} // namespace svod::importer
