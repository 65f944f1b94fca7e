// States that grow from run to run (--state with --dim), as a decoder's caches do whose
// past is open. How many rows such a state holds is a state, too, one number for all that
// grow along a dimension, so the run knows the size of its past and nobody gives it.
//
// The tensor of the state has the most rows that it may hold before a run and room for
// those that the run adds. It has that shape in all sets of shapes of a package, so that
// they share its memory; a set for less reads its beginning. Where the model puts rows
// behind the ones it was given (written_behind), these are written into the room and
// nothing moves. A state that the model makes otherwise has two places that take turns.
#include "importer/driver/ports.h"

#include "importer/formula/expression.h"
#include "importer/inputs/dimension_expression.h"

#include <algorithm>

namespace svod::importer {

namespace {

// The tensor that x is the beginning of, where that has the shape; else kNoNode.
NodeId beginning_of(const Graph& g, NodeId x, const Shape& shape) {
  const Node& node = g[x];
  if (node.shape == shape) return x;
  if (node.op != Op::Slice || g[node.inputs[0]].shape != shape) return kNoNode;
  for (size_t i = 0; i < shape.size(); ++i)
    if (node.payload[i] != 0 || node.payload[shape.size() + i] != 1) return kNoNode;
  return node.inputs[0];
}

// Whether the dimension has as many positions more than `rows`, whatever these are, as
// `bound` is more than their most. What else it is made of is fixed.
bool counts_rows(const std::string& dimension, const std::string& rows, int64_t most,
                 int64_t bound, const std::map<std::string, SizeRange>& sizes) {
  if (dimension == rows) return bound == most;
  const auto expression = DimensionExpression::parse(dimension);
  if (!expression) return false;
  for (int64_t held = 0; held <= most; ++held) {
    const auto size = range_of(*expression, [&](const std::string& name) {
      const auto known = sizes.find(name);
      if (name == rows) return std::optional(SizeRange{held, held});
      if (known == sizes.end() || known->second.least != known->second.most)
        return std::optional<SizeRange>();
      return std::optional(known->second);
    });
    if (!size || size->least != held + bound - most) return false;
  }
  return true;
}

} // namespace

bool PortImport::find_growing(const InputShapes& shapes) {
  bool good = true;
  const auto fail = [&](const std::string& why) {
    import_.diags.error(Exit::Usage, "--state: " + why);
    good = false;
  };
  for (const auto& [input, output] : states_) {
    const auto open = shapes.open.find(input);
    if (open == shapes.open.end()) continue;
    const std::vector<std::string>& names = open->second;
    const auto axis = std::ranges::find_if_not(names, &std::string::empty);
    const auto size = import_.options.sizes.find(*axis);
    if (std::ranges::count(names, "") + 1 != std::ssize(names) ||
        size == import_.options.sizes.end()) {
      fail("input " + quoted(input) +
           " has several sizes that a run decides, or one that follows from others; a "
           "state grows along one dimension of --dim, and --shape fixes the others");
      continue;
    }
    if (size->second.least != 0) {
      fail("input " + quoted(input) + " begins with no rows, so the range of " +
           quoted(*axis) + " begins with 0 (--dim " + escaped(*axis) + "=0.." +
           std::to_string(size->second.most) + ")");
      continue;
    }
    growing_[input] = {axis - names.begin(), *axis,
                       std::max(size->second.whole, size->second.most) +
                           import_.options.added_rows};
    growing_outputs_[output] = input;
  }
  return good;
}

void PortImport::add_counters() {
  ModelInterface& interface = import_.interface;
  for (const ModelPort& port : interface.inputs) {
    const auto growing = growing_.find(port.name);
    if (growing == growing_.end()) continue;
    const std::string& name = growing->second.dimension;
    const auto [rows, is_new] = rows_.try_emplace(name, Rows{g().inputs().size()});
    if (is_new) {
      g().add_input(name + ".rows", DType::I64, {1});
      interface.counters[rows->second.counter] = import_.options.sizes.at(name).most;
    }
    interface.growing_states[port.first] = {growing->second.axis, rows->second.counter};
  }
}

// What a program need not be told of the sizes of its other inputs.
void PortImport::count_along_inputs() {
  ModelInterface& interface = import_.interface;
  for (auto& [input, open] : interface.open_inputs) {
    const Shape& shape = g()[g().inputs()[input].node].shape;
    for (const auto& [name, rows] : rows_)
      for (size_t axis = 0; axis < shape.size(); ++axis) {
        const std::string& dimension = open.dimensions[axis];
        if (dimension.empty() || (open.counter && *open.counter != rows.counter) ||
            !counts_rows(dimension, name, interface.counters.at(rows.counter),
                         shape[axis], interface.sizes))
          continue;
        open.counter = rows.counter;
        open.counted.push_back(axis);
      }
  }
}

// What an output leaves to the next run: a tensor of its state's shape.
NodeId PortImport::rows_of_state(const std::string& output, NodeId id) {
  const std::string& input = growing_outputs_.at(output);
  const Growing& growing = growing_.at(input);
  const Bounded* bounded = import_.frame.bounds.find(id);
  const NodeId tensor = bounded ? bounded->tensor : id;
  if (growing.all == kNoNode || growing.all == kPoisoned) return tensor;
  const Shape& shape = g()[growing.all].shape;
  const auto axis = static_cast<size_t>(growing.axis);
  const auto fail = [&](const std::string& why) {
    import_.diags.error(Exit::Usage, "--state: " + why);
    return tensor;
  };
  if (!bounded || bounded->counts.size() != shape.size() ||
      bounded->counts[axis] == kNoNode ||
      std::ranges::count(bounded->counts, kNoNode) + 1 != std::ssize(shape))
    return fail("a run decides the size of input " + quoted(input) + " along axis " +
                std::to_string(axis) + ", and that of output " + quoted(output) +
                " is fixed, or it has others; fix both (--shape)");
  // All of one dimension hold as many, or the run stops.
  NodeId& after = rows_.at(growing.dimension).after;
  const Expr own{&g(), bounded->counts[axis]};
  if (after == kNoNode) after = own.id;
  if (after != own.id) {
    g().open_source("--dim " + growing.dimension);
    after = checked({&g(), after}, equal(Expr{&g(), after}, own)).id;
    g().close_source();
  }
  if (const NodeId all = beginning_of(g(), tensor, shape); all != kNoNode) return all;
  const Expr x{&g(), tensor};
  const int64_t extent = x.shape()[axis];
  if (extent > growing.room) return cut(x, growing.axis, 0, growing.room).id;
  Shape low(shape.size(), 0), high = low;
  high[axis] = growing.room - extent;
  return pad(x, low, high, 0).id;
}

void PortImport::add_counted_rows() {
  for (const auto& [name, rows] : rows_) {
    if (rows.after == kNoNode) continue; // an output failed
    const auto output = static_cast<uint32_t>(g().outputs().size());
    g().add_output(name + ".rows.next", reshape(g(), rows.after, {1}));
    g().add_state({static_cast<uint32_t>(rows.counter), output});
  }
}

} // namespace svod::importer
