// Kernel text for every program and CPU level: the prelude's parts that the kernel needs,
// then the kernel. Nothing of the model is in it; equal kernels have equal text.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/kernels.h"

#include <algorithm>

namespace svod {

extern const char kText_scalar_functions[];
extern const char kText_scalar_convert[];
extern const char kText_scalar_math[];
extern const char kText_kernel_prelude[];

// Functions of scalar_functions.h; a cell that calls another one needs scalar_math.h.
static bool is_core_function(std::string_view name) {
  static constexpr std::string_view core[] = {
      "abs_", "sign_", "floor_", "ceil_", "round_", "trunc_", "div_",
      "mod_", "fmod_", "min_",   "max_",  "shl_",   "shr_"};
  return std::find(std::begin(core), std::end(core), name) != std::end(core);
}

static bool needs_math(Op op) {
  std::string_view cell = info(op).cell;
  size_t call = cell.find("_(");
  if (call == std::string_view::npos) return false;
  size_t start = call;
  auto is_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  while (start > 0 && is_name(cell[start - 1])) --start;
  return !is_core_function(cell.substr(start, call + 1 - start));
}

static std::string prelude_for(const Kernel& k, int lanes) {
  bool math = false;
  for (const Expr& e : k.exprs) math |= e.kind == Expr::Kind::Map && needs_math(e.op);
  std::string out = kText_scalar_functions;
  out += kText_scalar_convert;
  if (math) out += kText_scalar_math;
  out += "enum { kLanes = " + std::to_string(lanes) + " };\n";
  out += kText_kernel_prelude;
  out += "namespace kernel {\n";
  return out;
}

// The headers include one another for readers; in front of a kernel they are all there.
static std::string without_includes(std::string text) {
  for (size_t at = 0; (at = text.find("#include", at)) != std::string::npos;)
    text.erase(at, text.find('\n', at) + 1 - at);
  return text;
}

Kernels emit(Schedule schedule, const Target& target) {
  Kernels out;
  for (uint32_t program = 0; program < schedule.programs.size(); ++program) {
    const Kernel& k = schedule.programs[program];
    for (const Level& level : target.levels) {
      KernelSource source;
      source.program = program;
      source.level = level.suffix;
      source.symbol = "k" + std::to_string(program) + "_" + level.suffix;
      source.text =
          without_includes(prelude_for(k, level.lanes)) + KernelEmitter(k, level).text();
      out.sources.push_back(std::move(source));
    }
  }
  out.schedule = std::move(schedule);
  return out;
}

} // namespace svod
