// Layers of networks along bounded axes, as a detector has them behind its selection and
// speech behind the length that the network finds. Normalisations and global poolings
// take what is meant; recurrent layers end every sequence where what is meant ends, which
// is what sequence_lens says; attention sees the keys that are meant.
#include "importer/bounded/bounded.h"

#include <algorithm>

namespace svod::importer {

// Every channel has parameters of its own; the rule takes its means of what is meant.
void bounded_by_channel(NodeImport& node, Rule rule) {
  const bool batch_norm = node.model_node.op_type == "BatchNormalization";
  const bool whole = // a parameter for every element, or means over the batch
      batch_norm && ((node.has("spatial") && !node.get_int("spatial")) ||
                     (node.has("training_mode") && node.get_int("training_mode")));
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis)
      if (count_along(node, i, axis) != kNoNode && (i > 0 || axis == 1 || whole))
        refuse_bounded(node, i, axis);
  rule(node);
  node.set_counts(0, node.counts(0));
}

void bounded_global_pool(NodeImport& node, Rule rule) {
  rule(node);
  Counts counts = node.counts(0);
  std::fill(counts.begin() + 2, counts.end(), kNoNode);
  node.set_counts(0, counts);
}

// Height and width grow or shrink by the block.
void bounded_blocks(NodeImport& node, Rule rule) {
  if (count_along(node, 0, 1) != kNoNode) refuse_bounded(node, 0, 1);
  rule(node); // which checks block and rank
  const auto block = static_cast<double>(node.get_int("blocksize"));
  const bool grows = node.model_node.op_type == "DepthToSpace";
  Counts counts = node.counts(0);
  for (size_t axis = 2; axis < counts.size(); ++axis) {
    if (counts[axis] == kNoNode) continue;
    const Expr size{&node.g, counts[axis]};
    const Expr blocks = size / block;
    counts[axis] =
        grows ? (size * block).id : checked(blocks, equal(blocks * block, size)).id;
  }
  node.set_counts(0, counts);
}

// One result per point of the grid, of images of known size.
void bounded_grid_sample(NodeImport& node, Rule rule) {
  for (int64_t axis = 1; axis < node.rank(0); ++axis)
    if (count_along(node, 0, axis) != kNoNode) refuse_bounded(node, 0, axis);
  require(node, node.rank(0) == node.rank(1) && node.rank(0) >= 3,
          "images and grid must have equal ranks");
  const NodeId images = agreed_count(node, {{0, 0}, {1, 0}}, false);
  const int64_t last = node.rank(1) - 1;
  if (count_along(node, 1, last) != kNoNode) refuse_bounded(node, 1, last);
  const Counts grid = node.counts(1);
  rule(node);
  Counts counts{images, kNoNode};
  for (int64_t axis = 1; axis < last; ++axis)
    counts.push_back(grid.empty() ? kNoNode : grid[static_cast<size_t>(axis)]);
  node.set_counts(0, tidy(counts));
}

namespace {

// sequence_lens of which none is longer than what is meant.
void end_sequences(NodeImport& node, Expr steps, int64_t batch) {
  Expr lengths = broadcast(steps, {batch});
  if (node.has_input(4)) {
    const Expr given = convert(operand(node, 4), DType::I64);
    require(node, given.shape() == Shape{batch}, "sequence_lens has a wrong shape");
    lengths = minimum(given, lengths);
  }
  const Counts counts = node.counts(4);
  node.replace_input(4, convert(lengths, DType::I32).id);
  if (!counts.empty()) node.input_counts[4] = counts;
}

} // namespace

void bounded_recurrent(NodeImport& node, Rule rule) {
  require(node, node.rank(0) == 3, "X, W and R need rank 3");
  const bool batch_major = node.has("layout") && node.get_int("layout") != 0;
  const int64_t time = batch_major ? 1 : 0, batch = 1 - time,
                of_state = batch_major ? 0 : 1;
  agree_on_groups(node,
                  {{{0, batch}, {4, 0}, {5, of_state}, {6, of_state}}, {{0, time}}});
  const NodeId sequence_count = count_along(node, 0, batch);
  const NodeId steps = count_along(node, 0, time);
  if (steps != kNoNode)
    end_sequences(node, {&node.g, steps}, node.shape(0)[static_cast<size_t>(batch)]);
  rule(node);
  Counts all{steps, kNoNode, sequence_count, kNoNode},
      last{kNoNode, sequence_count, kNoNode};
  if (batch_major) {
    all = {sequence_count, steps, kNoNode, kNoNode};
    last = {sequence_count, kNoNode, kNoNode};
  }
  for (size_t out = 0; out < node.results().size(); ++out)
    if (node.results()[out] != kNoNode) node.set_counts(out, tidy(out == 0 ? all : last));
}

// Sequences stand along the last axis but one, as queries and keys do in a mask. The rule
// hides the keys that are not meant; their values become 0, which no weight makes a NaN.
void bounded_standard_attention(NodeImport& node, Rule rule) {
  for (size_t i = 0; i < node.input_count(); ++i)
    for (int64_t axis = 0; node.has_input(i) && axis < node.rank(i); ++axis) {
      const bool sequence = i < 3 && axis == node.rank(i) - 2;
      const bool any = (i < 3 && axis == 0) || i == 3 || sequence;
      const bool cached = node.has_input(4) || node.has_input(6);
      if (count_along(node, i, axis) != kNoNode && (!any || cached))
        refuse_bounded(node, i, axis);
    }
  const auto agreed = [&](std::vector<InputAxis> axes, int64_t of_mask) {
    if (node.has_input(3) && node.rank(3) >= of_mask)
      axes.push_back({3, node.rank(3) - of_mask});
    return agreed_count(node, axes, true);
  };
  const auto along_sequence = [&](size_t i) { return InputAxis{i, node.rank(i) - 2}; };
  const NodeId batch = agreed({{0, 0}, {1, 0}, {2, 0}}, 4);
  const NodeId queries = agreed({along_sequence(0)}, 2);
  const NodeId keys = agreed({along_sequence(1), along_sequence(2)}, 1);
  const Counts of_values = node.counts(2);
  const Expr none = number(node.g, node.dtype(2), 0);
  node.replace_input(
      2, masked(operand(node, 2), of_values, {along_sequence(2).axis}, none).id);
  rule(node);
  Counts first{batch, kNoNode, queries, kNoNode};
  if (node.rank(0) == 3) first.erase(first.begin() + 1);
  const Counts all[] = {first,
                        {batch, kNoNode, keys, kNoNode},
                        {batch, kNoNode, keys, kNoNode},
                        {batch, kNoNode, queries, keys}};
  for (size_t out = 0; out < node.results().size(); ++out)
    if (node.results()[out] != kNoNode) node.set_counts(out, tidy(all[out]));
}

} // namespace svod::importer
