// From kernels to everything that is linked: the compiled kernels and stub, the image,
// the weights, the glue between them.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/toolchain/link.h"
#include "compiler/toolchain/spills.h"
#include "packager/artefact/image.h"
#include "packager/artefact/stub_jobs.h"
#include "packager/artefact/weights.h"
#include "packager/weight_place.h"

#include <functional>
#include <optional>

namespace svod::packager {

struct DeviceParts;

struct ObjectOptions {
  StubKind stub = StubKind::Program;
  std::string prefix = "infer";   // of a library
  std::vector<std::string> flags; // of kernels, after ours
  WeightPlace place = WeightPlace::Embed;
  bool self_check = false;  // of a library
  bool profile = false;     // of firmware: its run says which kernel has run
  bool leaves_room = false; // for embedded weights, which whoever links puts in
  Plans plans = {};         // of several sets of shapes, with what they share
  const SharedWeights* shared = nullptr;
  const DeviceParts* device = nullptr; // of a program for a GPU, too
  uint32_t parts = 0;                  // of a program: program_parts()
  const toolchain::ObjectCache* cache = nullptr;
  toolchain::OnJobDone on_done = {}; // of each kernel and each part of the stub
};

struct SizeFacts {
  uint64_t image = 0, code = 0, stub = 0, stack = 0;
  uint64_t stored = 0;  // weights in the form that they are made of; 0: as they are
  uint64_t scratch = 0; // that a thread needs to make weights of them
};

// Of each kernel that multiplies vectors in a loop, by its symbol.
using KernelSpills = std::vector<std::pair<std::string, toolchain::SpillFacts>>;

struct Objects {
  std::vector<std::vector<std::byte>> code; // kernels, stub, glue
  // Of firmware: what is there once in a program, by symbols that no library hides.
  std::vector<std::vector<std::byte>> shared;
  std::optional<toolchain::MemoryFile> weights; // object; none if there are no weights
  std::optional<toolchain::Room> room; // that it is; contents have no checksum yet
  std::optional<toolchain::MemoryFile>
      weight_file;                      // bytes, for weights beside the program
  std::vector<std::byte> first_weights; // how they begin
  std::vector<const toolchain::MemoryFile*> device; // of a program for a GPU
  toolchain::MemoryFile image{"image"};             // of firmware: the manifest alone
  SizeFacts sizes;
  std::vector<uint64_t> kernel_bytes = {}; // of each source, shared functions aside
  KernelSpills spills;
  std::vector<std::string> remedies; // of kernels that the compiler first failed on
  size_t compiled = 0, reused = 0;
};

// What the manifest says once sizes are known; asked again until it no longer changes.
using ManifestOf = std::function<std::string(const SizeFacts&)>;

// None when a compile failed; its diagnostics are in `error`. `contents` gets its weight
// checksum and manifest.
std::optional<Objects> build_objects(const Target& target,
                                     const codegen::Kernels& kernels,
                                     const ObjectOptions& options,
                                     ImageContents& contents, const ManifestOf& manifest,
                                     std::string& error);

} // namespace svod::packager
