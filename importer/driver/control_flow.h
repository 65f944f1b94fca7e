// If, Loop and Scan.
#pragma once

#include "importer/driver/region_import.h"

namespace svod::importer {

// The attribute of this name and type, or null.
const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name,
                                     AttributeType type);

// The value of a known scalar condition or count.
std::optional<int64_t> known_scalar(const Graph& g, NodeId id);

// A loop that makes more nodes than this is a region, when it can be.
inline constexpr int64_t kUnrolledNodes = 2000;

// One list per result of a body, over its iterations.
using Columns = std::vector<std::vector<NodeId>>;

class ControlFlow : ImportPart {
public:
  ControlFlow(ImportState& state, BodyRunner& bodies, RegionImport& regions)
      : ImportPart(state), bodies_(bodies), regions_(regions) {}
  Results import_control_flow(const ModelNode& node, const std::vector<NodeId>& inputs,
                              const ModelPlace& place, const Scope& scope);

private:
  bool are_tensors(const ModelNode& node, const std::vector<NodeId>& inputs,
                   const ModelPlace& place);
  Results import_if(const ModelNode& node, const std::vector<NodeId>& inputs,
                    const ModelPlace& place, const Scope& scope);
  Results run_branch(const ModelAttribute& body, NodeId condition,
                     const ModelPlace& place, const Scope& scope, bool& misfits);
  Results only_branch(const ModelAttribute& misfit, const Results& results, NodeId chosen,
                      const ModelPlace& place);
  Results import_loop(const ModelNode& node, const std::vector<NodeId>& inputs,
                      const ModelPlace& place, const Scope& scope);
  Results import_scan(const ModelNode& node, const std::vector<NodeId>& inputs,
                      const ModelPlace& place, const Scope& scope);
  NodeId item_of(NodeId value, int64_t axis, int64_t at);
  Results import_scan_of_batch(const ModelNode& node, const ModelAttribute& body,
                               const Results& inputs, size_t carried,
                               const ModelPlace& place, const Scope& scope);
  Results run_scan(const ModelAttribute& body, const ScanPlan& plan, Results state,
                   const Results& scanned, const ModelPlace& place, const Scope& scope);
  // How far a loop can be written out.
  enum class Course : uint8_t { Whole, Failed, Unknown, Long };
  Results unroll_loop(const ModelAttribute& body, const Results& inputs, int64_t budget,
                      Course& course, const ModelPlace& place, const Scope& scope);
  Results loop_after_first(const ModelNode& node, const ModelAttribute& body,
                           const Results& inputs, const ModelPlace& place,
                           const Scope& scope);
  bool fit_region(const Results& inputs) const;
  NodeId stack_of(const Results& items, int64_t axis);

  BodyRunner& bodies_;
  RegionImport& regions_;
};

} // namespace svod::importer
