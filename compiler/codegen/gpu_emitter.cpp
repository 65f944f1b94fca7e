// A kernel's entry, and the two mappings whose threads do not know of each other. A
// thread's number is 32 bits: the schedule sees to it that there are no more.
#include "compiler/codegen/gpu_emitter.h"

#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/kernels.h"

#include <algorithm>

namespace svod::codegen {

void GpuEmitter::name_axes(const std::vector<AxisId>& axes, const std::string& number) {
  std::vector<AxisId> loops;
  for (AxisId a : axes)
    if (k_.indices.extent(a) != 1) loops.push_back(a);
  int64_t inside = 1;
  for (size_t i = loops.size(); i-- > 0;) {
    const int64_t extent = k_.indices.extent(loops[i]);
    std::string at = number;
    if (inside != 1) at += " / " + std::to_string(inside) + "u";
    if (i != 0)
      at = (inside == 1 ? at : "(" + at + ")") + " % " + std::to_string(extent) + "u";
    line("const iptr x" + std::to_string(loops[i]) + " = iptr(" + at + ");");
    inside *= extent;
  }
}

void GpuEmitter::emit_stages() {
  locals_.clear();
  for (uint32_t s = 0; s < k_.stages.size(); ++s)
    if (!k_.stages[s].nested) emit_stage(s);
}

void GpuEmitter::emit_positions() {
  const std::string threads = std::to_string(gpu_.threads),
                    count =
                        std::to_string(positions_along(k_, gpu_.positions) / gpu_.near) +
                        "u";
  const bool goes_on = gpu_.most_blocks != 0;
  line("const u32 number = block_number() * " + threads + "u + thread_number();");
  if (k_.scratch_bytes != 0)
    line("void* scratch = room + u64(number) * " + std::to_string(k_.scratch_bytes) +
         ";");
  if (goes_on)
    open("for (u32 at = number; at < " + count +
         "; at += " + std::to_string(block_count(k_, gpu_) * gpu_.threads) + "u)");
  else
    open("if (const u32 at = number; at < " + count + ")");
  name_axes(gpu_.positions,
            gpu_.near == 1 ? "at" : "(at * " + std::to_string(gpu_.near) + "u)");
  emit_stages();
  close();
}

// Names what all of a thread's positions load, of which the first one is read with the
// others.
bool GpuEmitter::load_neighbours(ExprId id, const Point& p) {
  if (!has_neighbours()) return false;
  const AxisId axis = gpu_.positions.back();
  const Expr& load = k_.exprs[id];
  if (!depends(id, axis) || !loads_run(k_, load, axis, gpu_.near)) return false;
  Point at = p;
  at.back() = 0;
  const std::string name = load_run(load, gpu_.near, at);
  for (int i = 0; i < gpu_.near; ++i) {
    at.back() = i;
    frames_.back()[{id, at}] = {
        from_store(load.dtype, name + "[" + std::to_string(i) + "]"), false};
  }
  return true;
}

bool GpuEmitter::write_neighbours(const Stage& s, const std::vector<Point>& all) {
  if (!has_neighbours()) return false;
  const std::string guard = condition(s.domain, all[0], false), stored = fresh("w");
  if (!guard.empty()) open("if (" + guard + ")");
  line("Vector<" + store_type(s.dtype) + ", " + std::to_string(gpu_.near) + "> " +
       stored + ";");
  for (size_t i = 0; i < all.size(); ++i)
    line(stored + "[" + std::to_string(i) +
         "] = " + to_store(s.dtype, eval(s.value, all[i]).name) + ";");
  line("put_run(a" + std::to_string(s.argument) + " + " +
       index_text(s.index, all[0], false) + ", " + stored + ");");
  if (!guard.empty()) close();
  return true;
}

static std::string argument_name(size_t number) { return "a" + std::to_string(number); }

// What a kernel reads where it has written is seen by other threads of the block: it is
// not restricted to what this one does.
static std::string parameter(const ScheduledKernel& k, size_t number) {
  const Argument& a = k.arguments[number];
  const bool loaded = a.read || std::ranges::any_of(k.exprs, [&](const Expr& e) {
                        return e.kind == Expr::Kind::Load && e.argument == number;
                      });
  const bool apart = !a.shares && !(a.written && loaded);
  return pointer_type(a) + (apart ? " __restrict " : " ") + argument_name(number);
}

// For whoever watches what the threads of a block share.
std::string GpuEmitter::shared_list() const {
  std::string out = "extern \"C\" __attribute__((visibility(\"default\"))) const void*\n"
                    "svod_shared(unsigned number, unsigned long* bytes) {\n";
  size_t number = 0;
  for (const auto& [name, definition] : shared_)
    out += "  if (number == " + std::to_string(number++) +
           ") return *bytes = sizeof kernel::" + name + ", kernel::" + name + ";\n";
  return out + "  return nullptr;\n}\n";
}

std::string GpuEmitter::text() {
  frames_.emplace_back();
  switch (gpu_.mapping) {
  case GpuMapping::Positions:
    emit_positions();
    break;
  case GpuMapping::Rows:
    emit_rows();
    break;
  case GpuMapping::Products:
    emit_products();
    break;
  case GpuMapping::Attention:
    emit_attention();
    break;
  case GpuMapping::Scatter:
    emit_scatter_kernel();
    break;
  }
  frames_.pop_back();
  std::string parameters, passed, out;
  for (size_t i = 0; i < k_.arguments.size(); ++i) {
    parameters += parameter(k_, i) + ", ";
    passed += "static_cast<" + pointer_type(k_.arguments[i]) + ">(buffers[" +
              std::to_string(i) + "]), ";
  }
  for (const auto& [name, definition] : functions_) out += definition;
  for (const auto& [name, definition] : shared_) out += definition;
  // A fault is all that threads tell of each other's data; the number is the same.
  const std::string tell = can_fail(k_) ? "  if (bad != 0) *fault = 1;\n" : "";
  return out + "SVOD_ENTRY svod_kernel(" + parameters +
         "[[maybe_unused]] u8* room, [[maybe_unused]] u32* arrived, "
         "[[maybe_unused]] i32* fault) {\n"
         "  [[maybe_unused]] i32 bad = 0;\n" +
         out_ + tell + "}\n} // namespace kernel\n\n" +
         "#ifndef __NVPTX__\n"
         "extern \"C\" __attribute__((visibility(\"default\"))) void\n"
         "svod_thread(void* const* buffers, void* room, __UINT32_TYPE__* arrived,\n"
         "            __INT32_TYPE__* fault) {\n"
         "  using namespace kernel;\n  svod_kernel(" +
         passed + "static_cast<u8*>(room), arrived, fault);\n}\n" + shared_list() +
         "#endif\n";
}

static bool is_narrow(const IndexPool& pool, const Index& index) {
  const Range range = pool.range(index);
  if (range.low < INT32_MIN || range.high > INT32_MAX) return false;
  return std::ranges::all_of(index.terms, [&](const auto& term) {
    const Term& t = pool.term(term.first);
    return t.low >= INT32_MIN && t.high <= INT32_MAX && is_narrow(pool, t.of);
  });
}

// Sums may pass 31 bits on their way to a number that does not: they wrap, both ways.
bool has_narrow_indices(const ScheduledKernel& k) {
  auto narrow = [&](const Index& index) { return is_narrow(k.indices, index); };
  auto narrow_bounds = [&](const std::vector<Bound>& bounds) {
    return std::ranges::all_of(bounds, [&](const Bound& b) { return narrow(b.index); });
  };
  // What a walk down a tree is at is known to the run alone.
  return std::ranges::all_of(k.exprs,
                             [&](const Expr& e) {
                               return e.kind != Expr::Kind::Descend && narrow(e.index) &&
                                      narrow_bounds(e.bounds);
                             }) &&
         std::ranges::all_of(k.stages, [&](const Stage& s) {
           return s.kind != StageKind::Sort && narrow(s.index) && narrow(s.position) &&
                  narrow_bounds(s.domain);
         });
}

std::string gpu_text(const ScheduledKernel& kernel, const LevelSchedule& how) {
  return GpuEmitter(kernel, how).text();
}

} // namespace svod::codegen
