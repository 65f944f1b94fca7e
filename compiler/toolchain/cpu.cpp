// A subtarget is made for the CPU and asked; nothing is compiled.
#include "compiler/toolchain/cpu.h"

#include "compiler/toolchain/guarded.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

namespace svod::toolchain {

static std::unique_ptr<llvm::MCSubtargetInfo> subtarget(const Target& target,
                                                        const std::string& cpu) {
  initialize_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(target.triple, error);
  if (!found) return nullptr;
  // An unknown CPU is not asked for: LLVM would complain on stderr.
  std::unique_ptr<llvm::MCSubtargetInfo> any(
      found->createMCSubtargetInfo(target.triple, "", ""));
  if (!any || !any->isCPUStringValid(cpu)) return nullptr;
  return std::unique_ptr<llvm::MCSubtargetInfo>(
      found->createMCSubtargetInfo(target.triple, cpu, ""));
}

bool is_known_cpu(const Target& target, const std::string& cpu) {
  return subtarget(target, cpu) != nullptr;
}

bool cpu_has(const Target& target, const std::string& cpu, const std::string& feature) {
  std::unique_ptr<llvm::MCSubtargetInfo> info = subtarget(target, cpu);
  return info && info->checkFeatures("+" + feature);
}

} // namespace svod::toolchain
