// Functions of kernels that are one but for marked numbers: which there are, and kernels
// that call one of them with theirs. Whether that is worth it is for others to say.
#pragma once

#include "compiler/codegen/kernels.h"

#include <vector>

namespace svod::codegen {

// The function of a kernel, or of a sequence's part.
struct MergeMember {
  size_t source = 0;            // of Kernels::sources
  size_t function = 0;          // of the source's, by their order
  std::vector<int64_t> numbers; // that it calls the merged one with
};

struct MergeGroup {
  std::vector<MergeMember> members; // two at least, by source and function
  // For each marked number of the text: which of a member's numbers it is; kNone: it is
  // the same for all.
  static constexpr size_t kNone = ~size_t{0};
  std::vector<size_t> columns;
  NumberPassing passing = NumberPassing::None;
};

// Those that differ in some number, by the first member. `parts`: with those of
// sequences.
std::vector<MergeGroup> merge_groups(const Kernels& kernels, bool parts);

// Kernels with the functions of these groups merged.
void merge_functions(Kernels& kernels, const std::vector<MergeGroup>& groups);

} // namespace svod::codegen
