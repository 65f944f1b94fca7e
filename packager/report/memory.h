// Where the bytes of a run lie, for --json.
#pragma once

#include "compiler/plan/memory_use.h"
#include "packager/report/json.h"

namespace svod::packager {

// The key `memory`: {moments[{does, launch, live, nodes[]}], slots[{slot, offset, bytes,
// first, last, nodes[]}], peak[]}. Moments are the steps of a run, those of a sequence
// one by one; `launch` counts as `predicted[].kernels` do and is not there for copies and
// borders of regions. A slot lives from its first moment to its last; its nodes are those
// of the step that writes it. `peak`: slots alive where the lower bound comes from.
void write_memory(JsonWriter& json, const plan::Plan& plan, const plan::MemoryUse& use);

// The key `weights`: [{nodes[], dtype, shape[], offset, bytes}], in the order of their
// section, as they are packed. The nodes are those that the values come from, or else
// those of the step that reads them first.
void write_weight_list(JsonWriter& json, const plan::Plan& plan,
                       const plan::MemoryUse& use);

// A list of ONNX nodes by their numbers in the plan's graph.
void write_nodes(JsonWriter& json, const std::vector<int32_t>& sources,
                 const plan::Plan& plan);

} // namespace svod::packager
