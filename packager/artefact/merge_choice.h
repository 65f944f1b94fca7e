// Which functions of kernels are merged: those groups that take fewer bytes as one
// function and the numbers that it is called with than one by one, by their objects.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/artefact/objects.h"

#include <string>
#include <vector>

namespace svod::packager {

struct MergedGroup {
  std::vector<std::string> kernels; // one for each function, by their symbols
  size_t numbers = 0;               // that differ
  uint64_t before = 0, after = 0;   // bytes of code, and of numbers
};

// Merges what is worth it in kernels that are called by name. `parts`: functions of
// sequences, too.
std::vector<MergedGroup> merge_kernels(const Target& target, codegen::Kernels& kernels,
                                       const ObjectOptions& options, bool parts);

// For people.
std::string merged_line(const MergedGroup& group);

} // namespace svod::packager
