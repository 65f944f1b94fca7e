// A subtarget is made for the CPU and asked; nothing is compiled.
#include "compiler/toolchain/cpu.h"

#include "compiler/toolchain/guarded.h"

#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>

namespace svod::toolchain {

using Subtarget = std::unique_ptr<llvm::MCSubtargetInfo>;

static Subtarget subtarget(const std::string& triple, const std::string& cpu) {
  initialize_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) return nullptr;
  // An unknown CPU is not asked for: LLVM would complain on stderr.
  Subtarget any(found->createMCSubtargetInfo(triple, "", ""));
  if (!any || (!cpu.empty() && !any->isCPUStringValid(cpu))) return nullptr;
  return Subtarget(found->createMCSubtargetInfo(triple, cpu, ""));
}

bool is_known_cpu(const Target& target, const std::string& cpu) {
  return subtarget(target.triple, cpu) != nullptr;
}

// The triple of an Arm target states a version of the architecture, and LLVM gives its
// features to any CPU: so the CPU is asked under a triple that states none.
static bool states_version(const std::string& triple) {
  return triple.starts_with("thumb") || triple.starts_with("arm");
}

static std::string bare_triple(const std::string& triple) {
  if (!states_version(triple)) return triple;
  return (triple.starts_with("thumb") ? "thumb" : "arm") +
         triple.substr(triple.find('-'));
}

std::string lacks_of(const Target& target, const std::string& cpu) {
  const Subtarget used = subtarget(target.triple, "");
  const Subtarget own = subtarget(bare_triple(target.triple), cpu);
  if (!used || !own) return cpu;
  std::string lacks;
  for (const llvm::SubtargetFeatureKV& feature : used->getAllProcessorFeatures()) {
    // The name of a version is no instruction, for a newer core has another one, and
    // aligned access is a promise of the code. Where the triple states no version, its
    // own features are mostly advice for tuning.
    const llvm::StringRef name(feature.Key);
    const bool counts = states_version(target.triple)
                            ? !name.starts_with("armv") && name != "strict-align"
                            : name == "64bit" || name == "32bit";
    if (!counts || !used->hasFeature(feature.Value) || own->hasFeature(feature.Value))
      continue;
    lacks += (lacks.empty() ? "" : ", ") + name.str();
  }
  return lacks;
}

std::vector<std::string> known_cpus(const Target& target) {
  std::vector<std::string> out;
  if (const Subtarget any = subtarget(target.triple, ""))
    for (const llvm::SubtargetSubTypeKV& cpu : any->getAllProcessorDescriptions())
      out.emplace_back(cpu.Key);
  return out;
}

bool cpu_has(const Target& target, const std::string& cpu, const std::string& feature) {
  const Subtarget info = subtarget(target.triple, cpu);
  return info && info->checkFeatures("+" + feature);
}

} // namespace svod::toolchain
