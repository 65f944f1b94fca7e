// Slice and Pad whose bounds depend on the model's inputs; the model must declare the
// shape of the result, unsupported() otherwise. Positions are checked when the program
// runs.
#pragma once

#include "importer/movement.h"

namespace svod {

// Inputs as of Slice 10: data, starts, ends, axes, steps.
void slice_at_run_time(NodeImport& node);
// Inputs as of Pad 18: data, pads, constant_value, axes.
void pad_at_run_time(NodeImport& node, const std::string& mode);

} // namespace svod
