// The kernels of a package, loaded into this process to be called one by one.
#pragma once

#include "packager/artefact/objects.h"
#include "packager/verify/shared_code.h"

#include <memory>

namespace svod::packager {

class LoadedKernels {
public:
  // Compiles what the package compiles, and the parts of sequences as programs of their
  // own behind those of the plan. None when that failed; why is in `error`.
  static std::unique_ptr<LoadedKernels> load(const Target& target,
                                             const codegen::Kernels& kernels,
                                             const ObjectOptions& options,
                                             ImageContents contents, std::string& error);

  // The highest packed CPU level that runs here, which a package would choose; none: -1.
  int level() const { return level_; }
  const std::byte* weights() const { return weights_; }
  // The plan, with all programs.
  const plan::Plan& plan() const { return plan_; }
  // The program of a sequence's part.
  uint32_t part(uint32_t sequence, uint32_t part) const {
    return first_part_[sequence] + part;
  }
  // "k3", "k0, part 2".
  const std::string& name(uint32_t program) const { return names_[program]; }
  // The program of the plan that a program is, or is a part of.
  uint32_t whole(uint32_t program) const { return whole_[program]; }
  int32_t call(uint32_t program, void* const* buffers, void* scratch,
               uint32_t chunk) const {
    return launch_(static_cast<uint32_t>(level_), program, buffers, scratch, chunk);
  }

private:
  using Launch = int32_t(uint32_t level, uint32_t program, void* const* buffers,
                         void* scratch, uint32_t chunk);
  LoadedKernels(const plan::Plan& plan);
  bool link(const Target& target, const Objects& objects, std::string& error);

  plan::Plan plan_;
  std::vector<uint32_t> first_part_, whole_; // by program
  std::vector<std::string> names_;
  std::optional<SharedCode> code_;
  Launch* launch_ = nullptr;
  const std::byte* weights_ = nullptr;
  int level_ = -1;
};

} // namespace svod::packager
