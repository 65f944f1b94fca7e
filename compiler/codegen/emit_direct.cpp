// Kernels that are called by their names, as the run of firmware does: with pointers by
// themselves, which mostly are registers, where others look for theirs in an array. So
// there is no function around the one that computes, which takes 30 bytes on a Cortex-M4,
// and as much again where it is called.
//
// Each is an inline function that is there all the same: a linker keeps one of equal ones
// (compiler/toolchain/link_once.h).
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/kernels.h"
#include "runtime_stub/status.h"

#include <algorithm>

namespace svod::codegen {

bool can_fail(const ScheduledKernel& kernel) {
  const auto checks = [](const Expr& e) {
    return e.kind == Expr::Kind::Checked || e.kind == Expr::Kind::Descend;
  };
  return kernel.call() != nullptr || std::ranges::any_of(kernel.exprs, checks) ||
         std::ranges::any_of(kernel.parts(), can_fail);
}

bool takes_scratch(const ScheduledKernel& kernel) {
  return kernel.scratch_bytes > 0 || std::ranges::any_of(kernel.parts(), takes_scratch);
}

bool takes_chunk(const ScheduledKernel& kernel) { return !kernel.loops.chunks.empty(); }

std::string direct_entry(const ScheduledKernel& kernel) {
  return "extern \"C\" inline __attribute__((used, visibility(\"hidden\"))) " +
         std::string(can_fail(kernel) ? "__INT32_TYPE__" : "void") + "\nsvod_kernel";
}

std::string direct_parameters(const ScheduledKernel& kernel) {
  std::string out;
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    const Argument& argument = kernel.arguments[i];
    // A sequence's parts say themselves what they write, and one may read what another
    // has written.
    const bool alone = kernel.sequence() == nullptr && kernel.call() == nullptr;
    out += std::string(out.empty() ? "" : ", ") +
           (alone && !argument.written ? "const " : "") + "void* " +
           (alone && !argument.shares ? "__restrict q" : "q") + std::to_string(i);
  }
  if (takes_scratch(kernel)) out += ", [[maybe_unused]] void* scratch";
  if (takes_chunk(kernel)) out += ", [[maybe_unused]] __UINT32_TYPE__ chunk";
  return out;
}

std::string KernelEmitter::direct_function(const std::string& head) {
  emit_body();
  std::string out = own_functions() + head + "(" + direct_parameters(k_) +
                    (marks_ ? marked_parameters() : "") + ") {\n";
  for (size_t i = 0; i < k_.arguments.size(); ++i) {
    const std::string type = pointer_type(k_.arguments[i]), n = std::to_string(i);
    out += "  [[maybe_unused]] " + type + " const a" + n + " = static_cast<" + type +
           ">(q" + n + ");\n";
  }
  const bool fails = can_fail(k_);
  if (fails) out += "  i32 bad = 0;\n";
  out += out_;
  if (fails) out += "  return bad ? " + std::to_string(SVOD_INDEX) + " : 0;\n";
  out += "}\n";
  return marks_ ? marked_function(out) : out;
}

std::string direct_text(const ScheduledKernel& kernel, const LevelSchedule& how) {
  KernelEmitter emitter(kernel, how);
  if (how.small) emitter.mark_numbers();
  const std::string function = emitter.direct_function(direct_entry(kernel));
  std::map<std::string, std::string> called;
  emitter.add_called(called);
  std::string out;
  for (const auto& [name, definition] : called) out += definition;
  return out + function + "} // namespace kernel\n";
}

} // namespace svod::codegen
