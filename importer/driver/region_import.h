// Loops and branches as regions.
#pragma once

#include "compiler/ir/region.h"
#include "importer/driver/import_state.h"

namespace svod::importer {

// A Loop, a Scan or a rule's loop that is not unrolled. Sliced inputs are sliced along
// axis 0.
struct LoopCall {
  const ModelAttribute* body = nullptr;
  const RuleLoop* rule = nullptr; // instead of `body`
  bool is_scan = false;           // the body takes neither iteration nor condition
  NodeId count = kNoNode;         // i64[]
  NodeId start = kNoNode;         // bool[]
  bool conditional = false;       // the body's condition counts
  int64_t limit = 0;
  std::vector<NodeId> carried, sliced; // of complex values what is inside
  std::vector<bool> complex;           // which of both the body sees as complex
  std::vector<bool> made_complex;      // which results it gives so
  // Per carried value: every iteration only joins elements behind it, along this axis. It
  // is carried empty, and what is joined becomes a scan output. -1: not so.
  std::vector<int64_t> grows;
  int64_t grows_along(size_t k) const { return k < grows.size() ? grows[k] : -1; }
  std::vector<int64_t> reversed; // per sliced input, then per scan output
};

// The attributes of Scan, one entry per scan input or output.
struct ScanPlan {
  std::vector<int64_t> input_axes, input_directions, output_axes, output_directions;
  int64_t length = 0;
};

// What a branch gives, in its own graph: tensors, and their counts where they are
// bounded.
struct BranchResults {
  std::vector<NodeId> tensors;
  std::vector<Counts> counts;
  std::vector<bool> complex; // which are the inside of a complex value
};

// What growing_values.cpp knows of loops whose values grow.
// The axis along which every iteration of a Loop only puts elements behind carried value
// k, -1 otherwise.
int64_t growing_axis(const ModelGraph& body, size_t k, int64_t rank);
// Whether the item that a body gives for carried value k fits behind it.
bool grows_by(const LoopCall& call, const Graph& outer, size_t k, const Graph& body,
              NodeId item);
// A region's outputs, as numbers of what its body gives: carried values, then items,
// those of the values that grow last.
std::vector<size_t> output_order(const LoopCall& call, size_t count);

// A body may declare its counter or its condition as [1] where the operator has a scalar.
Shape declared_single(const ModelAttribute& body, size_t i);

class RegionImport : ImportPart {
public:
  RegionImport(ImportState& state, BodyRunner& bodies)
      : ImportPart(state), bodies_(bodies) {}
  // A value found in a scope with `level` open bodies around it, seen from the innermost.
  NodeId capture(NodeId id, size_t level, const ModelPlace& place);
  // Whether a loop around the node runs it again without importing it again.
  bool in_loop_region() const;
  RuleLoopResult rule_region(const RuleLoop& loop, const ModelPlace& place,
                             const Scope& scope);
  Results loop_region(const ModelNode& node, const ModelAttribute& body,
                      const Results& inputs, const ModelPlace& place, const Scope& scope);
  Results scan_region(const ModelAttribute& body, const ScanPlan& plan,
                      const Results& state, const Results& scanned,
                      const ModelPlace& place, const Scope& scope);
  Results if_region(const ModelAttribute& yes, const ModelAttribute& no, NodeId condition,
                    const ModelPlace& place, const Scope& scope);

private:
  bool open_body(OpenBody& body, const ModelPlace& place);
  Graph close_body(OpenBody& body);
  std::vector<bool> unwrap(Results& values) const;
  void wrap(Results& values, size_t first, const std::vector<bool>& complex);
  NodeId capture_into(size_t level, NodeId id);
  NodeId capture_bounded(const Bounded& bounded, size_t level);
  Results body_arguments(const LoopCall& call, const Graph& outer);
  bool check_carried(const LoopCall& call, const Graph& outer, const Results& results,
                     const ModelPlace& place);
  Results run_region(LoopCall& call, const ModelPlace& place, const Scope& scope);
  Results make_loop(const LoopCall& call, Graph body, const Results& captured,
                    const std::vector<size_t>& order, const ModelPlace& place);
  NodeId grown(const LoopCall& call, size_t k, NodeId items, NodeId done);
  LoopCall loop_call(const ModelAttribute& body, const Results& inputs);
  std::optional<int64_t> declared_length(const ModelNode& node, size_t first,
                                         const Scope& scope);
  std::optional<BranchResults> branch_results(const Results& results) const;
  Results joint_results(NodeId region, const std::vector<std::vector<bool>>& sized,
                        const std::vector<bool>& complex);

  BodyRunner& bodies_;
};

} // namespace svod::importer
