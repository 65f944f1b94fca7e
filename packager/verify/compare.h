// Whether what a kernel wrote is what the evaluator makes of the same inputs.
#pragma once

#include "compiler/ir/evaluate_calls.h"
#include "compiler/kernel/fused_graph.h"

namespace svod::packager {

// A number of any type.
double value_at(const Tensor& tensor, int64_t element);
// The value that lies in memory as the buffer's layout says.
Tensor value_in(const Buffer& buffer, const std::byte* memory);
// Where an element of that number lies, in elements from the beginning, and where it is.
int64_t offset_of(const Buffer& buffer, int64_t element);
Shape position_of(const Shape& shape, int64_t element);
// The first place of the border, likewise, that does not hold what the layout says. (What
// lanes beyond the last channel hold is nobody's business unless a kernel reads them.)
std::optional<int64_t> wrong_border(const Buffer& buffer, const std::byte* memory);

// The elements of `got` that differ from `expected` by more than roundings explain,
// ascending. A value whose neighbours decide it (a sum that cancels, a rounding to bytes,
// an index of the largest) may differ as far as the evaluator itself does when what it
// computes with is moved by a few units in the last place.
//
// `known` are the values that `root` was computed from.
std::vector<int64_t> wrong_elements(const Graph& g, NodeId root,
                                    const std::map<NodeId, Tensor>& known,
                                    const CallRunner& calls, const Tensor& expected,
                                    const Tensor& got);
// Without these: those that are not near each other.
std::vector<int64_t> distant_elements(const Tensor& expected, const Tensor& got);

// For people: "%12, f32[1,64,56,56] stored as [0 1/16 2 3]".
std::string buffer_text(const Buffer& buffer);
// "3 of 64 elements are wrong, the first at [0, 3]: got 1, expected 2".
std::string difference_text(const Tensor& expected, const Tensor& got,
                            const std::vector<int64_t>& wrong);

} // namespace svod::packager
