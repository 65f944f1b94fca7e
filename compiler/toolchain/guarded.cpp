// LLVM ends the process in two ways: report_fatal_error, where a handler may leave the
// recovery context with its text, and a signal, where the context itself leaves.
#include "compiler/toolchain/guarded.h"

#include <llvm-c/Target.h>
#include <llvm/Support/CrashRecoveryContext.h>
#include <llvm/Support/ErrorHandling.h>

#include <memory>
#include <mutex>

namespace svod::toolchain {

static thread_local std::string fatal_text;

static void on_fatal_error(void*, const char* reason, bool) {
  llvm::CrashRecoveryContext* context = llvm::CrashRecoveryContext::GetCurrent();
  if (!context) return; // not one of our pieces: LLVM prints and aborts
  fatal_text = reason;
  context->HandleExit(1);
}

std::string run_guarded(const std::function<void()>& work) {
  static std::once_flag once;
  std::call_once(once, [] {
    llvm::CrashRecoveryContext::Enable();
    llvm::install_fatal_error_handler(on_fatal_error);
  });
  fatal_text.clear();
  auto context = std::make_unique<llvm::CrashRecoveryContext>();
  if (context->RunSafely([&] { work(); })) return "";
  if (fatal_text.empty()) fatal_text = "signal " + std::to_string(context->RetCode - 128);
  // Its destructor would run Clang's clean-ups on half-made objects; they are better
  // lost.
  [[maybe_unused]] llvm::CrashRecoveryContext* lost = context.release();
  return "LLVM gave up: " + fatal_text;
}

#define SVOD_LLVM_TARGET_OF_TEXT(name)                                                   \
  LLVMInitialize##name##TargetInfo();                                                    \
  LLVMInitialize##name##Target();                                                        \
  LLVMInitialize##name##TargetMC();                                                      \
  LLVMInitialize##name##AsmPrinter();
#define SVOD_LLVM_TARGET(name)                                                           \
  SVOD_LLVM_TARGET_OF_TEXT(name)                                                         \
  LLVMInitialize##name##AsmParser();

void initialize_llvm() {
  static std::once_flag once;
  std::call_once(once, [] {
#include "compiler/toolchain/llvm_targets.def"
    LLVMInitializeX86Disassembler(); // spills.cpp reads its code
  });
}

} // namespace svod::toolchain
