// What a node may have, before its rule runs and after.
#pragma once

#include "importer/driver/import_state.h"

namespace svod::importer {

class NodeCheck : ImportPart {
public:
  explicit NodeCheck(ImportState& state) : ImportPart(state) {}
  // False when a fault was reported, here and below.
  bool check_signature(const ModelNode& node, const std::vector<NodeId>& inputs,
                       int64_t opset, const ModelPlace& place);
  bool check_attributes(const ModelNode& node,
                        std::span<const NodeImport::AttributeRow> rows,
                        const ModelPlace& place);
  bool check_results(const NodeImport& rule, NodeId first_new, size_t first_blob,
                     const ModelPlace& place);
  // Says what the inputs are, behind a fault.
  void note_inputs(const ModelNode& node, const std::vector<NodeId>& inputs,
                   const ModelPlace& place);

private:
  bool check_result_types(const NodeImport& rule, const ModelPlace& place);

  int64_t folded_bytes_ = 0; // of values computed when packing
};

} // namespace svod::importer
