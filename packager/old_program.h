// A packed program as swap-weights reads it.
#pragma once

#include "packager/artefact/objects.h"
#include "packager/packed_with.h"
#include "packager/program_file.h"

#include <memory>

namespace svod::packager {

struct OldProgram {
  std::string path;
  std::unique_ptr<FileView> file;   // that holds the bytes
  std::span<const std::byte> bytes; // all of it
  uint64_t image_at = 0;            // in the file
  std::span<const std::byte> image;
  SvodHeader header{};
  PackedWith packed;
  SizeFacts sizes; // as its manifest says
};

// Why it is none whose weights could be swapped is written to `fault`.
std::optional<OldProgram> read_old_program(const std::string& path, std::string& fault);
// Of bytes that outlive it.
std::optional<OldProgram> old_program_of(std::span<const std::byte> bytes,
                                         std::string& fault);

// What of the plan in the program is not that in `image`, a whole image of the new model;
// empty: they are one plan, with other weights.
std::string plan_difference(const OldProgram& old, std::span<const std::byte> image,
                            const PackedWith& packed);

} // namespace svod::packager
