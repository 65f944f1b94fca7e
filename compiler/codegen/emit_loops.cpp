// Loops: outer axes cut into register tiles with a remainder of their own, first and last
// iterations apart where that makes conditions on lanes constant, and then the stages.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/kernel/stage_work.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <set>

namespace svod::codegen {

// Of another outer axis, or of a stage that is not written out.
bool KernelEmitter::has_loop_below(size_t depth) const {
  for (size_t d = depth + 1; d < order_.size(); ++d) {
    const AxisId a = order_[d];
    if (a != *k_.loops.lane && k_.indices.extent(a) > 1) return true;
  }
  return std::ranges::any_of(k_.stages, [&](const Stage& s) {
    return std::ranges::any_of(k_.inner(s), [&](AxisId a) { return k_.is_loop(a); }) &&
           !(s.kind == StageKind::Reduce && is_written_out(s));
  });
}

// A nest of loops gains nothing from being written out several times by the optimizer,
// which does so with short loops around it: twice the code, half as long again to
// compile.
void KernelEmitter::unroll_hint_of_outer(size_t depth) {
  if (!k_.has_lane_axis()) return;
  if (has_loop_below(depth)) return line("#pragma clang loop unroll(disable)");
  if (only_moves()) moving_hint(true, k_.indices.extent(order_[depth]));
}

// Whether the extent of the loop decides how it is written out.
bool KernelEmitter::is_unrolled(size_t depth) const {
  return k_.has_lane_axis() && !has_loop_below(depth) && only_moves() &&
         moving_turns() > 1;
}

// One outer axis: from `low` to `high`, both C++ text, which are so far apart as one of
// `lengths`. Of a loop that ends where the run needs no more, what is left of the last
// tile is computed in smaller ones, and nothing beyond: what lies there may be numbers
// that are no floats, and denormal ones take a hundred times as long.
void KernelEmitter::emit_range(size_t depth, const std::string& low,
                               const std::string& high,
                               const std::vector<int64_t>& lengths) {
  constexpr int kMostRests = 6, kPart = 4; // of a tile that may be left in pieces
  const AxisId axis = order_[depth];
  const std::string i = "x" + std::to_string(axis);
  const bool ends = ends_early(axis);
  const std::string stop = ends ? "stop" + std::to_string(axis) : high;
  if (ends) {
    const std::string end = "end" + std::to_string(axis);
    line("const iptr " + stop + " = " + end + " < " + high + " ? " + end + " : " + high +
         ";");
  }
  const auto slot = static_cast<size_t>(
      std::ranges::find(how_.tile, axis, &TileAxis::axis) - how_.tile.begin());
  if (slot == how_.tile.size()) {
    unroll_hint_of_outer(depth);
    open("for (iptr " + i + " = " + low + "; " + i + " < " + stop + "; ++" + i + ")");
    emit_outer(depth + 1);
    close();
    return;
  }
  const Range before = narrowed_[axis];
  const auto emit_tile = [&](const std::string& head, int positions, bool loop) {
    if (std::ranges::max(lengths) < positions) return;
    narrowed_[axis] = {before.low, std::max(before.low, before.high - positions + 1)};
    counts_[slot] = positions;
    if (loop) unroll_hint_of_outer(depth);
    open(head);
    emit_outer(depth + 1);
    close();
  };
  const auto emit_tiles_of = [&](int positions) {
    const std::string count = std::to_string(positions);
    emit_tile("for (; " + i + " + " + count + " <= " + stop + "; " + i + " += " + count +
                  ")",
              positions, true);
  };
  const int count = how_.tile[slot].count;
  line("iptr " + i + " = " + low + ";");
  emit_tiles_of(count);
  const int part = ends && count > kMostRests ? kPart : count;
  if (part < count) emit_tiles_of(part);
  std::set<int64_t> rests;
  for (const int64_t length : lengths) rests.insert(length % part);
  for (int rest = 1; ends && rest < part; ++rest) rests.insert(rest);
  rests.erase(0);
  for (const int64_t rest : rests)
    emit_tile("if (" + stop + " - " + i + " == " + std::to_string(rest) + ")",
              static_cast<int>(rest), false);
  counts_[slot] = 1;
  narrowed_[axis] = before;
}

// Whether the loop over an outer axis ends where the run needs no more. What ends
// elsewhere computes more than that, which nobody reads.
bool KernelEmitter::ends_early(AxisId axis) const {
  return k_.run_end(axis) != nullptr && contains(k_.loops.outer, axis) && !tiles_;
}

// Of all loops that end so, before the first of them.
void KernelEmitter::emit_run_ends() {
  for (const RunEnd& e : k_.ends) {
    const std::string a = std::to_string(e.axis);
    const bool outer = contains(k_.loops.outer, e.axis);
    if (outer && !ends_early(e.axis)) continue;
    const bool chunked = std::ranges::count(k_.loops.chunks, e.axis, &ChunkAxis::axis);
    line("const iptr end" + a + " = end_of_run(a" + std::to_string(e.argument) + "[" +
         std::to_string(e.element) + "], " + std::to_string(e.step) + ", " +
         (chunked ? "low" + a + ", high" + a
                  : "0, " + std::to_string(k_.indices.extent(e.axis))) +
         ");");
  }
}

void KernelEmitter::emit_outer(size_t depth) {
  const bool within = tiles_ && depth >= k_.loops.outer.size();
  if (within && depth == k_.loops.outer.size()) emit_tile_products();
  if (depth == order_.size()) return emit_tiles();
  AxisId axis = order_[depth];
  if (k_.has_lane_axis() && axis == *k_.loops.lane) return emit_outer(depth + 1);
  int64_t extent = k_.indices.extent(axis);
  if (extent == 1) return emit_outer(depth + 1);
  std::string a = std::to_string(axis);
  bool chunked = std::any_of(k_.loops.chunks.begin(), k_.loops.chunks.end(),
                             [&](const ChunkAxis& c) { return c.axis == axis; });
  std::string low = chunked ? "low" + a : "0";
  std::string high = chunked ? "high" + a : counted(!is_unrolled(depth), extent);
  if (tiles_ && !within && positions_in_block(axis) > 0)
    return emit_blocks_of(depth, low, high);
  if (within) chunked = true, low = "b" + a, high = "e" + a;
  const auto lengths = [&](bool first, bool last) {
    return within ? lengths_in_block(axis, first, last)
                  : range_lengths(k_, axis, first, last);
  };
  Range before = narrowed_[axis];
  bool first = needs_peel(axis, false), last = needs_peel(axis, true);
  const bool ends = ends_early(axis);
  if (!first && !last) {
    open("");
    emit_range(depth, low, high, lengths(false, false));
    close();
    return;
  }
  if (first) {
    narrowed_[axis] = {0, 0};
    open(chunked ? "if (" + low + " == 0)" : "");
    line("const iptr x" + a + " = 0;");
    emit_outer(depth + 1);
    close();
  }
  narrowed_[axis] = {first ? 1 : 0, extent - 1 - (last ? 1 : 0)};
  if (narrowed_[axis].low <= narrowed_[axis].high) {
    std::string from = low, to = high;
    if (first) from = chunked ? "(" + low + " == 0 ? 1 : " + low + ")" : "1";
    std::string end = std::to_string(extent), before_end = std::to_string(extent - 1);
    if (last)
      to = chunked ? "(" + high + " == " + end + " ? " + before_end + " : " + high + ")"
                   : before_end;
    open("");
    emit_range(depth, from, to, lengths(first, last));
    close();
  }
  if (last) {
    narrowed_[axis] = {extent - 1, extent - 1};
    const std::string end = ends ? "end" + a : high;
    open(chunked || ends ? "if (" + end + " == " + std::to_string(extent) + ")" : "");
    line("const iptr x" + a + " = " + std::to_string(extent - 1) + ";");
    emit_outer(depth + 1);
    close();
  }
  narrowed_[axis] = before;
}

void KernelEmitter::emit_tiles() {
  locals_.clear();
  for (uint32_t s = 0; s < k_.stages.size(); ++s) {
    if (k_.stages[s].nested) continue;
    if (stores_once(k_.stages[s]) && (s == 0 || !stores_once(k_.stages[s - 1]))) {
      uint32_t last = s + 1;
      while (last < k_.stages.size() && stores_once(k_.stages[last])) ++last;
      emit_looped(s, last);
    }
    emit_stage(s);
  }
}

std::string pointer_type(const Argument& argument) {
  return (argument.written ? "" : "const ") + store_type(argument.dtype) + "*";
}

void KernelEmitter::emit_body() {
  frames_.emplace_back();
  std::string rest = "chunk";
  for (size_t i = k_.loops.chunks.size(); i-- > 0;) {
    const ChunkAxis& c = k_.loops.chunks[i];
    int64_t extent = k_.indices.extent(c.axis), parts = (extent + c.block - 1) / c.block;
    std::string a = std::to_string(c.axis), end = number(extent);
    std::string part = i == 0 ? rest : "(" + rest + " % " + std::to_string(parts) + ")";
    line("const iptr low" + a + " = iptr(" + part + ") * " + std::to_string(c.block) +
         ";");
    line("const iptr high" + a + " = low" + a + " + " + std::to_string(c.block) + " < " +
         end + " ? low" + a + " + " + std::to_string(c.block) + " : " + end + ";");
    rest = "(" + rest + " / " + std::to_string(parts) + ")";
  }
  find_tiles();
  if (tiles_) line(shape_text());
  emit_run_ends();
  emit_outer(0);
  if (tiles_) line("release_tiles();");
  frames_.pop_back();
}

std::string KernelEmitter::own_functions() const {
  std::string out;
  for (const auto& [name, definition] : functions_) out += definition;
  return out;
}

std::string KernelEmitter::definitions() {
  std::string parameters;
  for (size_t i = 0; i < k_.arguments.size(); ++i)
    parameters += pointer_type(k_.arguments[i]) +
                  (k_.arguments[i].shares ? " a" : " __restrict a") + std::to_string(i) +
                  ", ";
  emit_body();
  return own_functions() + "static __attribute__((noinline)) i32 body(" + parameters +
         "[[maybe_unused]] void* scratch, [[maybe_unused]] u32 chunk) {\n  i32 bad = "
         "0;\n" +
         out_ + "  return bad;\n}\n";
}

std::string KernelEmitter::text() {
  std::string arguments;
  for (size_t i = 0; i < k_.arguments.size(); ++i)
    arguments += "static_cast<" + pointer_type(k_.arguments[i]) + ">(buffers[" +
                 std::to_string(i) + "]), ";
  const std::string own = definitions();
  std::string called;
  for (const auto& [name, definition] : called_) called += definition;
  return called + own + "} // namespace kernel\n\n" +
         "extern \"C\" __attribute__((visibility(\"hidden\"))) __INT32_TYPE__\n"
         "svod_kernel(void* const* buffers, void* scratch, __UINT32_TYPE__ chunk) {\n"
         "  using namespace kernel;\n  return body(" +
         arguments + "scratch, chunk) ? " + std::to_string(SVOD_INDEX) + " : 0;\n}\n";
}

} // namespace svod::codegen
