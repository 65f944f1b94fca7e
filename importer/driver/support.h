// What is reported before the first node is imported.
#pragma once

#include "importer/driver/import_state.h"

namespace svod::importer {

// The operators that this folder handles itself, since they see the names around them:
// If, Loop, Scan, Gradient.
bool is_control_flow(std::string_view domain, std::string_view name);

// Gradient of ai.onnx.preview.training.
bool is_gradient(std::string_view domain, std::string_view name);

class SupportCheck : ImportPart {
public:
  explicit SupportCheck(ImportState& state) : ImportPart(state) {}
  // False when the model is over a limit with its functions inlined, or one calls itself.
  bool check_size();
  // Reports every operator that nobody imports.
  void check_support(const std::vector<ModelNode>& nodes, const Needed& needed,
                     const CallFrame& frame, const std::string& path);

private:
  void check_support(const ModelNode& node, const CallFrame& frame,
                     const ModelPlace& place);
  int64_t expanded_nodes(const std::vector<ModelNode>& nodes, int64_t depth);
  int64_t expanded_nodes(const ModelFunction& function, int64_t depth);

  std::map<const ModelFunction*, int64_t>
      expanded_; // nodes after inlining; -1: being counted
  std::unordered_set<const ModelFunction*> checked_functions_;
};

} // namespace svod::importer
