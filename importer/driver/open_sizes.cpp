// Dimensions whose size a run decides (--dim). An input that has one is made as large as
// it can get and becomes a bounded tensor (docs/decisions/bounded-tensors.md), whose
// counts are inputs of the program: the extents of the input in a run, one list for each
// such input, behind the inputs of the model. A state that grows has none: it is known
// how many rows it holds (growing_states.cpp). Axes of one name are one size; the run
// stops where the inputs do not agree on it, or where it is outside its range. A
// dimension that is an expression of others ("past + 1") is computed from them, so that
// the graph knows it to be what the model makes of them.
#include "importer/bounded/bounded.h"
#include "importer/driver/ports.h"
#include "importer/formula/complex.h"
#include "importer/inputs/dimension_expression.h"

namespace svod::importer {

// DimensionExpression looks for it where Expr is.
static Expr quotient(Expr a, Expr b) { return a / b; }

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

// What an expression of sizes is, `of(name)` being one of them.
template <class Of> Expr derived(Graph& g, const std::string& text, const Of& of) {
  return DimensionExpression::parse(text)->evaluate<Expr>(
      of, [&](int64_t n) { return Expr{&g, constant_int(g, DType::I64, {}, n)}; });
}

} // namespace

void PortImport::add_input_extents(const InputShapes& shapes, const Scope& scope) {
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
    interface.open_inputs[port.first] = {g().inputs().size(), open->second, {}, {}};
    g().set_input_extents(port.first, g().inputs().size());
    g().add_input(port.name + ".shape", DType::I64, {rank});
  }
}

void PortImport::open_sizes(const InputShapes& shapes, Scope& scope) {
  std::map<std::string, OpenSize> sizes;
  std::vector<std::pair<std::string, Expr>> derived_extents;
  ModelInterface& interface = import_.interface;
  for (const auto& [name, rows] : rows_) {
    g().open_source("--dim " + name);
    const SizeRange& range = import_.options.sizes.at(name);
    const Expr held{&g(), reshape(g(), g().inputs()[rows.counter].node, {})};
    sizes.emplace(name, sized(held, range));
    interface.sizes[name] = {0, 0}; // random data begin with no rows
    g().close_source();
  }
  for (const auto& [input, open] : interface.open_inputs) {
    for (size_t axis = 0; axis < open.dimensions.size(); ++axis) {
      const std::string& name = open.dimensions[axis];
      if (name.empty()) continue;
      g().open_source("--dim " + name);
      const Expr extent = extent_of(g(), g().inputs()[open.extents].node, axis);
      const auto stated = import_.options.sizes.find(name);
      if (stated == import_.options.sizes.end()) {
        derived_extents.emplace_back(name, extent);
        g().close_source();
        continue;
      }
      const SizeRange& range = stated->second;
      interface.sizes.emplace(name, range);
      const auto [at, first] = sizes.emplace(name, sized(extent, range));
      if (!first)
        at->second.holds = both(at->second.holds, equal(at->second.size, extent));
      g().close_source();
    }
  }
  const auto known = [&](const std::string& name) {
    const int64_t size = shapes.dimensions.at(name);
    interface.sizes[name] = {size, size};
    return Expr{&g(), constant_int(g(), DType::I64, {}, size)};
  };
  // That an input has the size which follows from others is a condition of these.
  for (const auto& [name, extent] : derived_extents) {
    OpenSize* of_it = nullptr;
    const Expr size = derived(g(), name, [&](const std::string& of) {
      const auto at = sizes.find(of);
      if (at == sizes.end()) return known(of);
      of_it = &at->second;
      return at->second.size;
    });
    if (of_it == nullptr) {
      import_.diags.error(Exit::Unsupported,
                          "--dim: no input has a dimension that " + quoted(name) +
                              " is an expression of; give it a range of its own");
      return;
    }
    of_it->holds = both(of_it->holds, equal(size, extent));
  }
  std::map<std::string, NodeId> counts;
  for (const auto& [name, open] : sizes) {
    g().open_source("--dim " + name);
    counts[name] = checked(open.size, open.holds).id;
    g().close_source();
  }
  for (const auto& [name, extent] : derived_extents) {
    if (counts.contains(name)) continue;
    g().open_source("--dim " + name);
    counts[name] = derived(g(), name, [&](const std::string& of) {
                     const auto at = counts.find(of);
                     return at == counts.end() ? known(of) : Expr{&g(), at->second};
                   }).id;
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
  for (const auto& [name, growing] : growing_) {
    if (growing.all == kNoNode || growing.all == kPoisoned) continue;
    const Expr all{&g(), growing.all};
    const int64_t most = shapes.inputs.at(name)[static_cast<size_t>(growing.axis)];
    const Expr rows = cut(all, growing.axis, 0, most);
    Counts own(static_cast<size_t>(all.rank()), kNoNode);
    own[static_cast<size_t>(growing.axis)] = counts.at(growing.dimension);
    import_.frame.bounds.leave_room(rows.id, {all.id, growing.axis, growing.room - most});
    scope.values[shapes.open.find(name)->first] =
        import_.frame.bounds.add(g(), rows.id, own);
  }
  count_along_inputs();
}

} // namespace svod::importer
