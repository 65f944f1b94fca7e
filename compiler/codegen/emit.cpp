// Kernel text for every program and CPU level: the prelude's parts that the kernel needs,
// then the kernel. Nothing of the model is in it; equal kernels have equal text.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/kernels.h"
#include "compiler/codegen/marked_text.h"
#include "compiler/ir/custom_op.h"
#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/support/threads.h"

#include <algorithm>

namespace svod::codegen {

extern const char kText_scalar_functions[];
extern const char kText_scalar_convert[];
extern const char kText_scalar_math[];
extern const char kText_scalar_angle[];
extern const char kText_scalar_power[];
extern const char kText_scalar_vectors[];
extern const char kText_kernel_prelude[];
extern const char kText_dot_prelude[];
extern const char kText_byte_prelude[];
extern const char kText_neon_prelude[];
extern const char kText_tile_prelude[];
extern const char kText_sort_prelude[];
extern const char kText_gpu_prelude[];
extern const char kText_gpu_groups_prelude[];
extern const char kText_gpu_attention_prelude[];

// Whether the cell calls a function that this text defines.
static bool defines_call(std::string_view text, std::string_view cell) {
  size_t call = cell.find("_(");
  if (call == std::string_view::npos) return false;
  size_t start = call;
  auto is_name = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  while (start > 0 && is_name(cell[start - 1])) --start;
  std::string name(cell.substr(start, call + 2 - start));
  return text.find(" T " + name) != std::string_view::npos;
}

static PreludeParts mathematics_of(Op op) {
  thread_local std::map<Op, PreludeParts> known;
  const auto [at, is_new] = known.try_emplace(op);
  const std::string_view cell = info(op).cell;
  if (is_new)
    at->second = {.math = defines_call(kText_scalar_math, cell),
                  .angle = defines_call(kText_scalar_angle, cell),
                  .power = defines_call(kText_scalar_power, cell)};
  return at->second;
}

static bool multiplies_bytes(const ScheduledKernel& k, const LevelSchedule& how) {
  return k.has_dot_axis() || std::ranges::any_of(how.stages, [](const StageSchedule& s) {
           return s.across || s.paired || s.widened || s.words;
         });
}

static bool uses_tiles(const ScheduledKernel& k, size_t level) {
  const std::vector<StageSchedule>& stages = k.levels[level].stages;
  return std::ranges::any_of(stages, [](const auto& s) { return s.tiles.has_value(); });
}

static bool uses_neon(const ScheduledKernel& k, const LevelSchedule& how) {
  return (how.narrows && narrows_integers(k)) ||
         std::ranges::any_of(how.stages, &StageSchedule::grouped);
}

// The parts of the scalar functions that the kernel's maps call, or its parts'.
static PreludeParts prelude_parts(const ScheduledKernel& k, size_t level) {
  PreludeParts out{.lanes = k.levels[level].lanes};
  auto look_at = [&](const std::vector<Expr>& exprs) {
    for (const Expr& e : exprs)
      if (e.kind == Expr::Kind::Map) out |= mathematics_of(e.op);
  };
  look_at(k.exprs);
  for (const ScheduledKernel& part : k.parts()) look_at(part.exprs);
  out.dots = multiplies_bytes(k, k.levels[level]) ||
             std::ranges::any_of(k.parts(), [&](const ScheduledKernel& part) {
               return multiplies_bytes(part, part.levels[level]);
             });
  out.bytes = makes_bytes(k) || std::ranges::any_of(k.parts(), makes_bytes);
  out.neon = uses_neon(k, k.levels[level]) ||
             std::ranges::any_of(k.parts(), [&](const ScheduledKernel& part) {
               return uses_neon(part, part.levels[level]);
             });
  out.tiles = uses_tiles(k, level) ||
              std::ranges::any_of(k.parts(), [&](const ScheduledKernel& part) {
                return uses_tiles(part, level);
              });
  out.gpu = k.levels[level].gpu.has_value();
  if (out.gpu) {
    const GpuSchedule& s = *k.levels[level].gpu;
    out.attention = s.mapping == GpuMapping::Attention;
    out.groups = (out.attention ? s.attention.by : s.product.by) == Multiplier::Group;
  }
  out.narrow = out.gpu && has_narrow_indices(k);
  out.sort = std::ranges::any_of(
      k.stages, [](const Stage& s) { return s.kind == StageKind::Sort; });
  return out;
}

// The headers include one another for readers; in front of a kernel they are all there.
static std::string without_includes(std::string text) {
  for (size_t at = 0; (at = text.find("#include", at)) != std::string::npos;)
    text.erase(at, text.find('\n', at) + 1 - at);
  return text;
}

// Angles and powers need the rest of the mathematics before them.
std::string scalar_prelude(const PreludeParts& parts, bool plain) {
  constexpr std::string_view kVectors = "#include \"compiler/ir/scalar_vectors.h\"\n";
  std::string out = kText_scalar_functions;
  if (plain) out.replace(out.find(kVectors), kVectors.size(), kText_scalar_vectors);
  out += kText_scalar_convert;
  if (parts.math || parts.angle || parts.power) out += kText_scalar_math;
  if (parts.angle) out += kText_scalar_angle;
  if (parts.power) out += kText_scalar_power;
  return without_includes(std::move(out));
}

// Numbers of 64 bits take a GPU two registers and several instructions.
static void narrow_indices(std::string& text) {
  for (const auto& [wide, narrow] : {std::pair("__INTPTR_TYPE__ iptr", "i32 iptr"),
                                     std::pair("__UINTPTR_TYPE__ uptr", "u32 uptr")})
    text.replace(text.find(wide), std::string_view(wide).size(), narrow);
}

std::string lane_prelude(const PreludeParts& parts) {
  std::string out = "enum { kLanes = " + std::to_string(parts.lanes) + " };\n";
  out += kText_kernel_prelude;
  if (parts.narrow) narrow_indices(out);
  if (parts.dots) out += kText_dot_prelude;
  if (parts.bytes) out += kText_byte_prelude;
  if (parts.neon) out += kText_neon_prelude;
  if (parts.tiles) out += kText_tile_prelude;
  if (parts.sort) out += kText_sort_prelude;
  if (parts.gpu) out += kText_gpu_prelude;
  if (parts.groups) out += kText_gpu_groups_prelude;
  if (parts.attention) out += kText_gpu_attention_prelude;
  return without_includes(std::move(out));
}

// The user's text, then a kernel that hands its function what it takes. The text ends
// with a function svod_call(void* const* tensors), which the importer wrote; it returns
// what a kernel returns.
static std::string call_kernel(const ScheduledKernel& kernel, const Graph& graph,
                               bool direct) {
  const CallStep& call = *kernel.call();
  std::string out(text_of(graph.blob(call.function).bytes()));
  if (direct)
    out += direct_entry(kernel) + "(" + direct_parameters(kernel) + ") {\n";
  else
    out += "extern \"C\" __attribute__((visibility(\"hidden\"))) __INT32_TYPE__\n"
           "svod_kernel(void* const* buffers, void* scratch, __UINT32_TYPE__) {\n";
  out += "  void* const tensors[] = {";
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    const int64_t tensor = call.tensors[i];
    out += i == 0 ? "" : ", ";
    if (tensor >= 0)
      out += direct ? "q" + std::to_string(tensor)
                    : "buffers[" + std::to_string(tensor) + "]";
    else
      out += "static_cast<char*>(scratch) + " + std::to_string(-1 - tensor);
  }
  return out + "};\n  return svod_call(tensors);\n}\n";
}

static bool is_scalar(const ScheduledKernel& k, const Graph& graph) {
  if (!k.call()) return false;
  return text_of(graph.blob(k.call()->function).bytes()).starts_with(kScalarText);
}

// What stands in the kernel's namespace.
static std::string own_text(const ScheduledKernel& k, size_t level, bool direct) {
  const LevelSchedule& how = k.levels[level];
  if (how.gpu) return gpu_text(k, how);
  if (k.sequence())
    return direct ? direct_sequence_text(k, level) : sequence_text(k, level);
  if (!k.has_lane_axis() || how.lanes == k.loops.lanes)
    return direct ? direct_text(k, how) : KernelEmitter(k, how).text();
  const std::optional<ScheduledKernel> cut = cut_lanes(k, k.loops.lanes / how.lanes);
  SVOD_CHECK(cut) << "lanes that cannot be cut";
  return direct ? direct_text(*cut, how) : KernelEmitter(*cut, how).text();
}

KernelText kernel_text(const ScheduledKernel& k, size_t level, bool direct) {
  KernelText out;
  out.parts = prelude_parts(k, level);
  out.text = scalar_prelude(out.parts) + lane_prelude(out.parts);
  out.prelude_bytes = out.text.size();
  std::string own = "namespace kernel {\n" + own_text(k, level, direct);
  out.text += direct ? plain_text_of(own) : own;
  if (direct && k.levels[level].small) out.marked = std::move(own);
  return out;
}

std::string program_symbol(uint32_t program, const std::string& level) {
  return "k" + std::to_string(program) + "_" + level;
}

Kernels emit(plan::Plan plan, const Target& target) {
  Kernels out;
  std::vector<size_t> levels; // of the sources
  const bool direct = target.kind != TargetKind::Linux && target.kind != TargetKind::Gpu;
  for (uint32_t program = 0; program < plan.programs.size(); ++program) {
    const ScheduledKernel& k = plan.programs[program];
    const bool serves_all = is_scalar(k, plan.graph);
    for (size_t level = 0; level < target.levels.size(); ++level) {
      KernelSource source;
      source.program = program;
      source.level = target.levels[level].suffix;
      source.symbol = program_symbol(program, source.level);
      if (k.levels[level].small) source.flags.emplace_back("-Os");
      if (!k.levels[level].pack_scalars) source.flags.emplace_back("-fno-slp-vectorize");
      if (target.levels[level].rounds_once)
        source.flags.emplace_back("-DSVOD_ROUNDS_ONCE");
      if (serves_all)
        source.flags = {"-O2", "-fno-vectorize", "-fno-slp-vectorize",
                        "-fno-unroll-loops"};
      source.serves_all = serves_all;
      source.direct = direct;
      out.sources.push_back(std::move(source));
      levels.push_back(level);
      if (serves_all) break;
    }
  }
  run_on_threads(out.sources.size(), 0, [&](size_t i) {
    KernelSource& source = out.sources[i];
    const ScheduledKernel& k = plan.programs[source.program];
    static_cast<KernelText&>(source) =
        k.call() ? KernelText{call_kernel(k, plan.graph, direct)}
                 : kernel_text(k, levels[i], direct);
  });
  out.plan = std::move(plan);
  return out;
}

} // namespace svod::codegen
