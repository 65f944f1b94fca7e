// Slice and Pad whose bounds depend on the model's inputs. Positions are checked when the
// program runs.
#pragma once

#include "importer/bounded/bounded.h"

namespace svod::importer {

// Inputs as of Slice 10: data, starts, ends, axes, steps. The model must declare the
// shape of the result, unsupported() otherwise.
void slice_at_run_time(NodeImport& node);
// Inputs as of Pad 18: data, pads, constant_value, axes; or amounts and value for them.
// The first has the shape that the model declares, the other one within bounds.
void pad_at_run_time(NodeImport& node, const std::string& mode);
void pad_within_bounds(NodeImport& node, const std::string& mode,
                       std::optional<Expr> amounts = {}, std::optional<Expr> fill = {});

// x with axis := at; positions that are known must lie within.
Expr take_at(NodeImport& node, Expr x, int64_t axis, Expr at);

} // namespace svod::importer
