// Loops over a stage's own axes, cut where sums are made of sums, where neighbouring
// steps add to accumulators of their own, and where the last step is unlike the others.
#include "compiler/codegen/stage_emitter.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <bit>

namespace svod::codegen {

// Loops of the remainders of a tile have fewer positions below them, so that the same
// limits may write them out further.
bool StageEmitter::is_written_out(const Stage& s) const {
  const auto ends = [&](AxisId a) { return k_.run_end(a) != nullptr; };
  if (std::ranges::any_of(k_.inner(s), ends)) return false;
  const Unroll& unroll = how(s).unroll;
  int64_t steps = tile_points();
  const int64_t most = steps <= 2 ? unroll.small_nest : unroll.nest;
  for (AxisId a : k_.inner(s))
    if (k_.is_loop(a) && steps <= unroll.nest) steps *= k_.indices.extent(a);
  return !unroll.off && steps <= most;
}

void StageEmitter::unroll_hint(const Stage& s, int64_t extent, bool innermost) {
  const Unroll& unroll = how(s).unroll;
  const bool small = tile_points() <= 2;
  if (unroll.off) return line("#pragma clang loop unroll(disable) vectorize(disable)");
  if (is_written_out(s))
    return line("#pragma clang loop unroll(full) vectorize(disable)");
  if (!innermost) return line("#pragma clang loop unroll(disable)");
  if (small && extent <= unroll.free) return;
  if (extent < unroll.by)
    return line("#pragma clang loop unroll(full) vectorize(disable)");
  line(extent % unroll.by == 0 ? "#pragma clang loop unroll_count(" +
                                     std::to_string(unroll.by) + ") vectorize(disable)"
                               : "#pragma clang loop unroll(disable) vectorize(disable)");
}

// Whether the extent of the loop decides how it is written out, so that it has to be a
// constant.
bool StageEmitter::is_written_by_extent(const Stage& s, size_t depth) const {
  const AxisId axis = k_.inner(s)[depth];
  const int64_t extent = k_.indices.extent(axis);
  if (s.kind != StageKind::Reduce)
    return only_moves() && is_innermost(s, depth) && moving_turns() > 1;
  const Unroll& unroll = how(s).unroll;
  if (unroll.off) return false;
  if (is_innermost(s, depth) && how(s).elements > 1) return true;
  return is_written_out(s) || extent < unroll.by ||
         (is_innermost(s, depth) && unroll.by > 1);
}

// Of a kernel that has vectors.
bool StageEmitter::only_moves() const {
  return k_.has_lane_axis() && std::ranges::all_of(k_.stages, [](const Stage& s) {
           return s.kind == StageKind::Store && !s.nested;
         });
}

// Kernels that only move and map values wait for memory, and a few accesses hide what a
// loop costs. Left to itself the optimizer writes out whole nests of such loops, which
// took most of the time to compile them and ran no faster.
int64_t StageEmitter::moving_turns() const {
  constexpr int64_t kSteps = 16; // accesses and operations of one turn
  const auto values = std::ranges::count_if(k_.exprs, [](const Expr& e) {
    return e.kind != Expr::Kind::Constant && e.kind != Expr::Kind::Position;
  });
  const int64_t steps = tile_points() * (std::ssize(k_.stages) + values);
  return static_cast<int64_t>(
      std::bit_floor(static_cast<uint64_t>(std::max<int64_t>(1, kSteps / steps))));
}

void StageEmitter::moving_hint(bool innermost, int64_t extent) {
  const int64_t turns = moving_turns();
  if (!innermost || turns == 1)
    line("#pragma clang loop unroll(disable)");
  else if (extent <= turns)
    line("#pragma clang loop unroll(full)");
  else
    line("#pragma clang loop unroll_count(" + std::to_string(turns) + ")");
}

// A loop whose neighbouring steps add to accumulators of their own, and what is left of
// it.
void StageEmitter::emit_ways(AxisId axis, const std::string& from, const std::string& to,
                             const std::function<void()>& body) {
  const std::string i = "x" + std::to_string(axis), first = fresh("b"),
                    ways = std::to_string(sums_.ways.size());
  line("iptr " + first + " = " + from + ";");
  line("#pragma clang loop unroll(disable) vectorize(disable)");
  open("for (; " + first + " + " + ways + " <= " + to + "; " + first + " += " + ways +
       ")");
  for (sums_.way = 0; sums_.way < sums_.ways.size(); ++sums_.way) {
    open("");
    line("const iptr " + i + " = " + first + " + " + std::to_string(sums_.way) + ";");
    body();
    close();
  }
  sums_.way = 0;
  close();
  line("#pragma clang loop unroll(disable) vectorize(disable)");
  open("for (iptr " + i + " = " + first + "; " + i + " < " + to + "; ++" + i + ")");
  body();
  close();
}

bool StageEmitter::is_innermost(const Stage& s, size_t depth) const {
  for (size_t d = depth + 1; d < k_.inner(s).size(); ++d)
    if (k_.is_loop(k_.inner(s)[d])) return false;
  return true;
}

// One step: the loops below, where some position of the tile is useful there.
void StageEmitter::emit_step(const Stage& s, size_t depth, const Body& body) {
  const bool held = sums_.blocks && sums_.blocks->how.loop == k_.inner(s)[depth] &&
                    !sums_.blocks->how.held.empty();
  const bool together = together_along(s, k_.inner(s)[depth]) > 1;
  const std::string useful = together ? "" : useful_tile(s, depth);
  if (!useful.empty()) open("if (" + useful + ")");
  if (held) open_block();
  emit_inner(s, depth + 1, body);
  if (held) close_block();
  if (!useful.empty()) close();
}

// All steps from `from` to before `to`, both C++ text.
void StageEmitter::emit_steps(const Stage& s, size_t depth, const std::string& from,
                              const std::string& to, const Body& body) {
  const AxisId axis = k_.inner(s)[depth];
  const std::string i = "x" + std::to_string(axis);
  const bool innermost = is_innermost(s, depth), sums = s.kind == StageKind::Reduce;
  if (innermost && sums && sums_.ways.size() > 1)
    return emit_ways(axis, from, to, [&] { emit_step(s, depth, body); });
  if (innermost && sums && how(s).elements > 1)
    return emit_elements(s, depth, from, to, body);
  const int step = together_along(s, axis);
  // As a loop its products would be moved out of it, all before the first is added.
  if (step > 1 && step == k_.indices.extent(axis)) {
    open("");
    line("const iptr " + i + " = 0;");
    emit_step(s, depth, body);
    return close();
  }
  if (sums)
    unroll_hint(s, k_.indices.extent(axis) / step, innermost);
  else if (only_moves())
    moving_hint(innermost, k_.indices.extent(axis));
  const std::string next = step == 1 ? "++" + i : i + " += " + std::to_string(step);
  open("for (iptr " + i + " = " + from + "; " + i + " < " + to + "; " + next + ")");
  emit_step(s, depth, body);
  close();
}

// The same in blocks that have sums of their own.
void StageEmitter::emit_blocks(const Stage& s, size_t depth, const std::string& end,
                               const Body& body) {
  const std::string b = fresh("b"), size = std::to_string(sums_.blocks->how.steps);
  open("for (iptr " + b + " = 0; " + b + " < " + end + "; " + b + " += " + size + ")");
  const std::string to = fresh("b");
  line("const iptr " + to + " = " + b + " + " + size + " < " + end + " ? " + b + " + " +
       size + " : " + end + ";");
  open_block();
  emit_steps(s, depth, b, to, body);
  close_block();
  close();
}

void StageEmitter::emit_inner(const Stage& s, size_t depth, const Body& body) {
  while (depth < k_.inner(s).size() && !k_.is_loop(k_.inner(s)[depth])) ++depth;
  if (s.kind == StageKind::Reduce && how(s).grouped) {
    const WrittenSteps written = written_steps(k_, tile_points(), how(s).unroll.nest);
    if (depth == written.depth) {
      const bool cut = depth < k_.inner(s).size() &&
                       k_.indices.extent(k_.inner(s)[depth]) > written.by;
      std::string to = cut ? useful_end(s, depth) : "";
      if (cut && to.empty()) to = std::to_string(k_.indices.extent(k_.inner(s)[depth]));
      return emit_groups(s, written, to, body);
    }
  }
  if (depth == k_.inner(s).size()) return body();
  const AxisId axis = k_.inner(s)[depth];
  const int64_t extent = k_.indices.extent(axis);
  const bool last = needs_peel(axis, true);
  const Range before = narrowed_[axis];
  narrowed_[axis] = {0, extent - (last ? 2 : together_along(s, axis))};
  const bool here = sums_.blocks && sums_.blocks->how.loop == axis;
  const bool blocks = here && sums_.blocks->how.held.empty();
  std::string to = counted(!is_written_by_extent(s, depth), extent - (last ? 1 : 0));
  const std::string a = std::to_string(axis), end = "end" + a;
  const bool ends = k_.run_end(axis) != nullptr;
  if (ends) {
    SVOD_CHECK(together_along(s, axis) == 1)
        << "a sum that ends where the run does is written otherwise";
    to = last ? "(" + end + " < " + to + " ? " + end + " : " + to + ")" : end;
  } else if (!here && !last && s.kind == StageKind::Reduce)
    if (const std::string useful = useful_end(s, depth); !useful.empty()) to = useful;
  if (blocks)
    emit_blocks(s, depth, to, body);
  else
    emit_steps(s, depth, "0", to, body);
  if (last) {
    narrowed_[axis] = {extent - 1, extent - 1};
    open(ends ? "if (" + end + " == " + std::to_string(extent) + ")" : "");
    if (blocks) open_block();
    line("const iptr x" + a + " = " + std::to_string(extent - 1) + ";");
    emit_step(s, depth, body);
    if (blocks) close_block();
    close();
  }
  narrowed_[axis] = before;
}

} // namespace svod::codegen
