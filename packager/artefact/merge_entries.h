// Several plans of one model in one package. Equal kernels are one program, equal weights
// lie once, and each plan becomes an entry of the image.
#pragma once

#include "compiler/codegen/kernels.h"
#include "packager/artefact/image.h"
#include "packager/artefact/weights.h"

namespace svod::packager {

// One plan, with the one entry that it becomes.
struct EntryPart {
  const codegen::Kernels* kernels = nullptr;
  const ImageContents* contents = nullptr;
};

struct MergedEntries {
  SharedWeights weights;                       // the first plan's, then those of parts
  std::vector<std::vector<uint32_t>> programs; // by part: numbers of its programs
};

// Why the entries cannot be chosen by their inputs, or nothing: all have the same inputs
// and outputs, and no two the same shapes.
std::string entries_fault(const std::vector<const ImageEntry*>& entries);

// Adds the parts to the first plan, whose programs and weights stay as they are.
MergedEntries merge_entries(codegen::Kernels& kernels, ImageContents& contents,
                            const std::vector<EntryPart>& parts);

} // namespace svod::packager
