// An If whose condition only a run knows, as a region. Its branches may give results of
// different extents, or of sizes that only the run knows: then the region's result is as
// large as either can get, and gives its sizes as well.
#include "importer/driver/region_import.h"
#include "importer/formula/complex.h"

#include <algorithm>

namespace svod::importer {

namespace {

// The extents that hold both, and whether a result needs its sizes; none where the two
// are of different types.
struct Joint {
  Shape bounds;
  std::vector<bool> sized; // per axis
};

std::optional<Joint> joint_of(const Node& a, const Node& b, const Counts& of_a,
                              const Counts& of_b) {
  if (a.dtype != b.dtype || a.shape.size() != b.shape.size()) return std::nullopt;
  Joint out;
  for (size_t axis = 0; axis < a.shape.size(); ++axis) {
    const auto counted = [&](const Counts& c) {
      return !c.empty() && c[axis] != kNoNode;
    };
    out.bounds.push_back(std::max(a.shape[axis], b.shape[axis]));
    out.sized.push_back(a.shape[axis] != b.shape[axis] || counted(of_a) || counted(of_b));
  }
  return out;
}

Expr padded_to(Expr x, const Shape& bounds) {
  Shape more = bounds;
  for (size_t axis = 0; axis < more.size(); ++axis) more[axis] -= x.shape()[axis];
  if (std::ranges::all_of(more, [](int64_t n) { return n == 0; })) return x;
  if (element_count(x.shape()) == 0) return with(x, constant(*x.g, x.dtype(), bounds, 0));
  return pad(x, Shape(more.size(), 0), more, 0);
}

} // namespace

// What a branch's graph gives, before it is closed; nothing where that has no place in a
// region.
std::optional<BranchResults> RegionImport::branch_results(const Results& results) const {
  BranchResults out;
  for (NodeId id : results) {
    const NodeId tensor = inside(import_.compounds, id);
    if (is_compound(tensor)) return std::nullopt;
    const Bounded* bounded = import_.frame.bounds.find(tensor);
    out.tensors.push_back(bounded ? bounded->tensor : tensor);
    out.complex.push_back(tensor != id);
    out.counts.push_back(bounded ? bounded->counts : Counts{});
    if (g()[out.tensors.back()].dtype == DType::String) return std::nullopt;
  }
  if (results.empty()) return std::nullopt;
  return out;
}

// Gives both bodies the same outputs: every result, followed by its sizes. `sized`: the
// axes that have one. False where the branches do not fit.
static bool add_joint_outputs(Graph (&bodies)[2], const BranchResults (&branches)[2],
                              std::vector<std::vector<bool>>& sized) {
  if (branches[0].complex != branches[1].complex) return false;
  std::vector<Joint> joints;
  for (size_t i = 0; i < branches[0].tensors.size(); ++i) {
    const auto joint =
        joint_of(bodies[0][branches[0].tensors[i]], bodies[1][branches[1].tensors[i]],
                 branches[0].counts[i], branches[1].counts[i]);
    if (!joint) return false;
    joints.push_back(*joint);
    sized.push_back(joint->sized);
  }
  for (size_t b = 0; b < 2; ++b)
    for (size_t i = 0; i < joints.size(); ++i) {
      const Expr x{&bodies[b], branches[b].tensors[i]};
      const Counts& counts = branches[b].counts[i];
      bodies[b].add_output("", padded_to(x, joints[i].bounds).id);
      for (size_t axis = 0; axis < joints[i].bounds.size(); ++axis) {
        if (!joints[i].sized[axis]) continue;
        const bool counted = !counts.empty() && counts[axis] != kNoNode;
        bodies[b].add_output(
            "", counted ? counts[axis]
                        : constant_int(bodies[b], DType::I64, {}, x.shape()[axis]));
      }
    }
  return true;
}

// The region's results as the model sees them.
Results RegionImport::joint_results(NodeId region,
                                    const std::vector<std::vector<bool>>& sized,
                                    const std::vector<bool>& complex) {
  Results made;
  int64_t number = 0;
  for (const std::vector<bool>& axes : sized) {
    const NodeId tensor = result(g(), region, number++);
    Counts counts(axes.size(), kNoNode);
    for (size_t axis = 0; axis < axes.size(); ++axis) {
      if (!axes[axis]) continue;
      counts[axis] = result(g(), region, number++);
      const auto bound = static_cast<double>(g()[tensor].shape[axis]);
      import_.frame.ranges.add(counts[axis], Trust::Integers, {ValueRange{0, bound}});
    }
    made.push_back(wrapped_if(import_.compounds, complex[made.size()],
                              import_.frame.bounds.add(g(), tensor, counts)));
  }
  return made;
}

// Empty, without a word, where the branches do not fit a region.
Results RegionImport::if_region(const ModelAttribute& yes, const ModelAttribute& no,
                                NodeId condition, const ModelPlace& place,
                                const Scope& scope) {
  const Checkpoint before = checkpoint();
  Graph bodies[2];
  BranchResults branches[2];
  std::vector<NodeId> inputs{reshape(g(), condition, {})};
  for (size_t b = 0; b < 2; ++b) {
    OpenBody open;
    if (!open_body(open, place)) {
      restore(before);
      return {};
    }
    // Both branches take all that either captures.
    for (size_t i = 1; i < inputs.size(); ++i)
      capture_into(import_.open_bodies.size() - 1, inputs[i]);
    const auto results =
        branch_results(bodies_.run_body(b == 0 ? yes : no, {}, place, scope));
    bodies[b] = close_body(open);
    inputs.resize(1);
    inputs.insert(inputs.end(), open.order.begin(), open.order.end());
    if (b == 1)
      for (size_t i = bodies[0].inputs().size() + 1; i < inputs.size(); ++i)
        bodies[0].add_input("", g()[inputs[i]].dtype, g()[inputs[i]].shape);
    if (!results) {
      if (!import_.stopped) restore(before);
      return {};
    }
    branches[b] = *results;
  }
  std::vector<std::vector<bool>> sized;
  if (!add_joint_outputs(bodies, branches, sized)) {
    restore(before);
    return {};
  }
  g().open_source(place_path(place));
  const uint32_t first =
      g().add_body(std::make_shared<const Graph>(std::move(bodies[0])));
  const uint32_t second =
      g().add_body(std::make_shared<const Graph>(std::move(bodies[1])));
  const NodeId region = branch(g(), first, second, std::move(inputs));
  Results made = joint_results(region, sized, branches[0].complex);
  g().close_source();
  return made;
}

} // namespace svod::importer
