// A subtarget is made for the CPU and asked; nothing is compiled.
#include "compiler/toolchain/cpu.h"

#include "compiler/toolchain/guarded.h"

#include <llvm/ADT/SmallVector.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/TargetParser/ARMTargetParser.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/X86TargetParser.h>

#include <algorithm>

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

// The floating-point unit that the target's flags name stays when a CPU is named, so the
// CPU must have it: a Cortex-M4 does not execute what an FPv5 unit does.
static bool has_unit(const std::string& cpu, llvm::StringRef unit) {
  std::vector<llvm::StringRef> asked, own;
  llvm::ARM::getFPUFeatures(llvm::ARM::parseFPU(unit), asked);
  llvm::ARM::getFPUFeatures(llvm::ARM::getDefaultFPU(cpu, llvm::ARM::parseCPUArch(cpu)),
                            own);
  return std::ranges::all_of(asked, [&](llvm::StringRef feature) {
    return feature.starts_with("-") || std::ranges::count(own, feature) != 0;
  });
}

// What the flags of the target ask of floats. On RISC-V the convention of calls says it.
static std::vector<std::string> lacking_floats(const Target& target,
                                               const std::string& cpu,
                                               const llvm::MCSubtargetInfo& own) {
  std::vector<std::string> out;
  for (const std::string& flag : target.levels.front().flags) {
    llvm::StringRef word(flag);
    if (word.consume_front("-mfpu=") && !has_unit(cpu, word)) out.push_back(word.str());
    if (!word.consume_front("-mabi=") || (word.back() != 'd' && word.back() != 'f'))
      continue;
    const std::string registers = word.take_back(1).str();
    if (!own.checkFeatures("+" + registers)) out.push_back(registers);
  }
  return out;
}

std::string lacks_of(const Target& target, const std::string& cpu) {
  const Subtarget used = subtarget(target.triple, "");
  const Subtarget own = subtarget(bare_triple(target.triple), cpu);
  if (!used || !own) return cpu;
  std::vector<std::string> lacks;
  for (const llvm::SubtargetFeatureKV& feature : used->getAllProcessorFeatures()) {
    // The name of a version is no instruction, for a newer core has another one, and
    // aligned access is a promise of the code. Where the triple states no version, its
    // own features are mostly advice for tuning.
    const llvm::StringRef name(feature.Key);
    const bool counts = states_version(target.triple)
                            ? !name.starts_with("armv") && name != "strict-align"
                            : name == "64bit" || name == "32bit";
    if (counts && used->hasFeature(feature.Value) && !own->hasFeature(feature.Value))
      lacks.push_back(name.str());
  }
  for (std::string& floats : lacking_floats(target, cpu, *own))
    lacks.push_back(std::move(floats));
  return llvm::join(lacks, ", ");
}

// Whether the CPU has all instructions that the level's flags let the compiler use.
// LLVM's list of a version of x86 has instructions alone; that of a subtarget, advice for
// tuning too, which a CPU need not share.
static bool executes(const Level& level, const llvm::MCSubtargetInfo& own) {
  const auto has = [&](llvm::StringRef feature) {
    return own.checkFeatures("+" + feature.str());
  };
  return std::ranges::all_of(level.flags, [&](const std::string& flag) {
    llvm::StringRef word(flag);
    if (word.starts_with("-mavx") || word.starts_with("-mamx"))
      return has(word.drop_front(2));
    if (!word.consume_front("-march=")) return true;
    llvm::SmallVector<llvm::StringRef> used;
    llvm::X86::getFeaturesForCPU(word, used);
    return std::ranges::all_of(used, has);
  });
}

size_t strongest_level(const Target& target, const std::string& cpu) {
  const Subtarget own = subtarget(target.triple, cpu);
  if (!own || !target.is_x86()) return 0;
  size_t level = target.levels.size() - 1;
  while (level > 0 && !executes(target.levels[level], *own)) --level;
  return level;
}

std::string host_cpu() { return llvm::sys::getHostCPUName().str(); }

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
