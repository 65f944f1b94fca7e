// For the cores of Armv7-A, LLVM 19 orders a block's instructions before it gives them
// registers, by times alone: of a tile's products it puts all multiplications first, and
// half of what they make waits on the stack (45 instructions in a loop of 26). The text
// of a kernel is in an order that fits the registers. Where a core asks for the machine
// scheduler, LLVM keeps that order for it; so functions ask, and the scheduler, which
// would put one result's multiplications among another's, is left out.
//
// On aarch64 functions ask already, and the scheduler orders well but for tiles that
// multiply bytes by SMULL: it puts the products of all positions first, too.
//
// Kernels of a keyword network, thousand instructions in QEMU: int8 3714 to 2937, float
// 2568 to 1864; of aarch64 without SDOT, int8 1660 to 1421. Of the cores with eight
// registers (Armv6-M and Armv8-M's baseline), which multiply weights of a word one by
// one: int8 42717 to 37771; there code for size reads no words, and is shorter in LLVM's
// order.
#include "compiler/toolchain/keep_order.h"

#include <llvm/IR/IntrinsicsAArch64.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/Passes/PassBuilder.h>

#include <algorithm>

namespace svod::toolchain {

namespace {

struct WithoutScheduler : llvm::OptPassGate {
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Machine Instruction Scheduler";
  }
  bool isEnabled() const override { return true; }
};

// Whether it has products of eight bytes.
bool multiplies_bytes(const llvm::Module& module) {
  return std::ranges::any_of(module, [](const llvm::Function& function) {
    return function.getIntrinsicID() == llvm::Intrinsic::aarch64_neon_smull;
  });
}

struct KeepOrder : llvm::PassInfoMixin<KeepOrder> {
  static llvm::PreservedAnalyses run(llvm::Module& module, llvm::ModuleAnalysisManager&) {
    const bool arm64 = module.getTargetTriple().starts_with("aarch64");
    if (arm64 && !multiplies_bytes(module)) return llvm::PreservedAnalyses::all();
    static WithoutScheduler gate; // has no state
    module.getContext().setOptPassGate(gate);
    if (arm64) return llvm::PreservedAnalyses::all(); // asks already
    for (llvm::Function& function : module) {
      if (function.isDeclaration()) continue;
      const std::string features =
          function.getFnAttribute("target-features").getValueAsString().str();
      function.addFnAttr("target-features", features + ",+use-misched");
    }
    return llvm::PreservedAnalyses::none();
  }
};

} // namespace

bool keeps_order(std::string_view triple, bool small) {
  const bool few_registers =
      triple.starts_with("thumbv6m") || triple.starts_with("thumbv8m.base");
  return triple.starts_with("armv7") || triple.starts_with("aarch64") ||
         (few_registers && !small);
}

void keep_order(llvm::PassBuilder& builder) {
  builder.registerOptimizerLastEPCallback(
      [](llvm::ModulePassManager& passes, llvm::OptimizationLevel) {
        passes.addPass(KeepOrder());
      });
}

} // namespace svod::toolchain
