// Dimensions whose size a run decides (--dim). An input that has one is made as large as
// it can get and becomes a bounded tensor (docs/decisions/bounded-tensors.md), whose
// counts are inputs of the program: the extents of the input in a run, one list for each
// such input, behind the inputs of the model. Axes of one name are one size; the run
// stops where the inputs do not agree on it, or where it is outside its range.
#include "importer/bounded/bounded.h"
#include "importer/driver/ports.h"
#include "importer/formula/complex.h"

namespace svod::importer {

namespace {

// One dimension: its size within its range, whatever the extents are, and whether they
// are what they must be.
struct OpenSize {
  Expr size, holds;
};

Expr extent_of(Graph& g, NodeId extents, size_t axis) {
  return reshape(cut({&g, extents}, 0, static_cast<int64_t>(axis), 1), {});
}

// Beyond its range it would lead outside of memory before the run has stopped.
OpenSize sized(Expr extent, const SizeRange& range) {
  const auto least = static_cast<double>(range.least);
  const auto most = static_cast<double>(range.most);
  return {minimum(maximum(extent, least), most),
          both(less_equal(like(extent, least), extent),
               less_equal(extent, like(extent, most)))};
}

} // namespace

void PortImport::open_sizes(const InputShapes& shapes, Scope& scope) {
  std::map<std::string, OpenSize> sizes;
  ModelInterface& interface = import_.interface;
  for (const ModelPort& port : interface.inputs) {
    const auto open = shapes.open.find(port.name);
    if (open == shapes.open.end() || scope.values.at(port.name) == kPoisoned) continue;
    const NodeId input = scope.values.at(port.name);
    if (!port.is_tensor() || is_complex(import_.compounds, input) ||
        g()[input].op != Op::Input) {
      import_.diags.error(Exit::Unsupported,
                          "--dim: input " + quoted(port.name) +
                              " is no tensor of numbers, or has one value only; "
                              "its sizes are fixed by --shape");
      continue;
    }
    const auto rank = static_cast<int64_t>(open->second.size());
    const size_t number = g().inputs().size();
    const NodeId extents = g().add_input(port.name + ".shape", DType::I64, {rank});
    interface.open_inputs[port.first] = {number, open->second};
    for (size_t axis = 0; axis < open->second.size(); ++axis) {
      const std::string& name = open->second[axis];
      if (name.empty()) continue;
      g().open_source("--dim " + name);
      const Expr extent = extent_of(g(), extents, axis);
      const SizeRange& range = import_.options.sizes.at(name);
      interface.sizes[name] = range;
      const auto [at, first] = sizes.emplace(name, sized(extent, range));
      if (!first)
        at->second.holds = both(at->second.holds, equal(at->second.size, extent));
      g().close_source();
    }
  }
  std::map<std::string, NodeId> counts;
  for (const auto& [name, open] : sizes) {
    g().open_source("--dim " + name);
    counts[name] = checked(open.size, open.holds).id;
    g().close_source();
  }
  for (const auto& [input, open] : interface.open_inputs) {
    Counts own;
    for (const std::string& name : open.dimensions)
      own.push_back(name.empty() ? kNoNode : counts.at(name));
    const GraphInput& named = g().inputs()[input];
    scope.values[shapes.open.find(named.name)->first] =
        import_.frame.bounds.add(g(), named.node, own);
  }
}

} // namespace svod::importer
