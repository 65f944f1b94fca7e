// Loops: outer axes cut into register tiles with a remainder of their own, first and last
// iterations apart where that makes conditions on lanes constant, and then the stages.
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/support/check.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <set>

namespace svod::codegen {

KernelEmitter::KernelEmitter(const ScheduledKernel& kernel, const LevelSchedule& how)
    : k_(kernel), how_(how), dependence_(dependence_of(kernel)) {
  for (AxisId a = 0; a < k_.indices.axis_count(); ++a)
    narrowed_.push_back({0, k_.indices.extent(a) - 1});
  counts_.assign(how_.tile.size(), 1);
}

void KernelEmitter::open(const std::string& head) {
  line(head + " {");
  ++indent_;
  frames_.emplace_back();
}

void KernelEmitter::close() {
  frames_.pop_back();
  --indent_;
  line("}");
}

std::vector<KernelEmitter::Point> KernelEmitter::points() const {
  std::vector<Point> out = {Point(counts_.size(), 0)};
  for (size_t i = 0; i < counts_.size(); ++i) {
    std::vector<Point> next;
    for (const Point& p : out)
      for (int n = 0; n < counts_[i]; ++n) {
        next.push_back(p);
        next.back()[i] = n;
      }
    out = std::move(next);
  }
  return out;
}

bool KernelEmitter::needs_peel(AxisId axis, bool high) const {
  return ends_apart(k_, how_.peeled, axis, high, narrowed_);
}

// One outer axis: from `low` to `high`, both C++ text, which are so far apart as one of
// `lengths`.
void KernelEmitter::emit_range(size_t depth, const std::string& low,
                               const std::string& high,
                               const std::vector<int64_t>& lengths) {
  AxisId axis = k_.loops.outer[depth];
  std::string i = "x" + std::to_string(axis);
  size_t slot = 0;
  while (slot < how_.tile.size() && how_.tile[slot].axis != axis) ++slot;
  if (slot == how_.tile.size()) {
    open("for (iptr " + i + " = " + low + "; " + i + " < " + high + "; ++" + i + ")");
    emit_outer(depth + 1);
    close();
    return;
  }
  int count = how_.tile[slot].count;
  Range before = narrowed_[axis];
  line("iptr " + i + " = " + low + ";");
  if (std::ranges::max(lengths) >= count) {
    narrowed_[axis].high = std::max(before.low, before.high - count + 1);
    counts_[slot] = count;
    open("for (; " + i + " + " + std::to_string(count) + " <= " + high + "; " + i +
         " += " + std::to_string(count) + ")");
    emit_outer(depth + 1);
    close();
  }
  std::set<int64_t> rests;
  for (int64_t length : lengths) rests.insert(length % count);
  for (int64_t rest : rests) {
    if (rest == 0) continue;
    narrowed_[axis] = {before.low, before.high - rest + 1};
    counts_[slot] = static_cast<int>(rest);
    open("if (" + high + " - " + i + " == " + std::to_string(rest) + ")");
    emit_outer(depth + 1);
    close();
  }
  counts_[slot] = 1;
  narrowed_[axis] = before;
}

void KernelEmitter::emit_outer(size_t depth) {
  if (depth == k_.loops.outer.size()) return emit_tiles();
  AxisId axis = k_.loops.outer[depth];
  if (k_.has_lane_axis() && axis == *k_.loops.lane) return emit_outer(depth + 1);
  int64_t extent = k_.indices.extent(axis);
  if (extent == 1) return emit_outer(depth + 1);
  std::string a = std::to_string(axis);
  bool chunked = std::any_of(k_.loops.chunks.begin(), k_.loops.chunks.end(),
                             [&](const ChunkAxis& c) { return c.axis == axis; });
  std::string low = chunked ? "low" + a : "0";
  std::string high = chunked ? "high" + a : std::to_string(extent);
  Range before = narrowed_[axis];
  bool first = needs_peel(axis, false), last = needs_peel(axis, true);
  if (!first && !last) {
    open("");
    emit_range(depth, low, high, range_lengths(k_, axis, false, false));
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
    emit_range(depth, from, to, range_lengths(k_, axis, first, last));
    close();
  }
  if (last) {
    narrowed_[axis] = {extent - 1, extent - 1};
    open(chunked ? "if (" + high + " == " + std::to_string(extent) + ")" : "");
    line("const iptr x" + a + " = " + std::to_string(extent - 1) + ";");
    emit_outer(depth + 1);
    close();
  }
  narrowed_[axis] = before;
}

// Loops of the remainders of a tile have fewer positions below them, so that the same
// limits may write them out further.
void KernelEmitter::unroll_hint(const Stage& s, int64_t extent, bool innermost) {
  const Unroll& unroll = how(s).unroll;
  const auto tile = static_cast<int64_t>(points().size());
  const bool small = tile <= 2;
  if (unroll.off) return line("#pragma clang loop unroll(disable) vectorize(disable)");
  int64_t steps = tile;
  for (AxisId a : k_.inner(s))
    if (k_.is_loop(a) && steps <= unroll.nest) steps *= k_.indices.extent(a);
  if (steps <= (small ? unroll.small_nest : unroll.nest))
    return line("#pragma clang loop unroll(full) vectorize(disable)");
  if (!innermost) return line("#pragma clang loop unroll(disable)");
  if (small && extent <= unroll.free) return;
  if (extent < unroll.by)
    return line("#pragma clang loop unroll(full) vectorize(disable)");
  line(extent % unroll.by == 0 ? "#pragma clang loop unroll_count(" +
                                     std::to_string(unroll.by) + ") vectorize(disable)"
                               : "#pragma clang loop unroll(disable) vectorize(disable)");
}

// The factors' product as text.
std::string KernelEmitter::product(const std::vector<ExprId>& factors, const Point& p,
                                   bool vector) {
  std::string text;
  for (ExprId f : factors) {
    Value v = eval(f, p);
    text += (text.empty() ? "" : " * ") + (vector ? splat(v, k_.exprs[f].dtype) : v.name);
  }
  return text;
}

// Positions of the tile at which the factors beside y are the same share one sum(x).
std::string& KernelEmitter::sum_beside(Point p) {
  for (size_t i = 0; i < p.size(); ++i) {
    bool varies = false;
    for (size_t f = 0; f + 1 < blocks_->how.summed.size(); ++f)
      varies |= dependence_[blocks_->how.summed[f]][how_.tile[i].axis];
    if (!varies) p[i] = 0;
  }
  return blocks_->beside[p];
}

void KernelEmitter::open_block() {
  std::vector<std::string> names;
  for (const auto& way : ways_) names.insert(names.end(), way.begin(), way.end());
  if (blocks_->how.offset) {
    for (const Point& p : points()) sum_beside(p) = "";
    for (auto& [p, name] : blocks_->beside) names.push_back(name = fresh("c"));
  }
  for (const std::string& name : names)
    line(blocks_->type + " " + name + " = " + blocks_->type + "(0);");
}

void KernelEmitter::close_block() {
  const std::vector<Point> all = points();
  join_ways("SumOf::of<" + blocks_->type + ">");
  for (size_t i = 0; i < all.size(); ++i) {
    const std::string &total = blocks_->totals[i], &part = ways_[0][i];
    if (blocks_->how.offset)
      line(part + " = ma_(-" + product({*blocks_->how.offset}, all[i], true) + ", " +
           sum_beside(all[i]) + ", " + part + ");");
    if (blocks_->how.held.empty())
      line(total + " = " + total + " + " + part + ";");
    else
      line(total + " = ma_(" + product(blocks_->how.held, all[i], true) + ", " + part +
           ", " + total + ");");
  }
}

// A loop whose neighbouring steps add to accumulators of their own, and what is left of
// it.
void KernelEmitter::emit_ways(AxisId axis, const std::string& from, const std::string& to,
                              const std::function<void()>& body) {
  const std::string i = "x" + std::to_string(axis), first = fresh("b"),
                    ways = std::to_string(ways_.size());
  line("iptr " + first + " = " + from + ";");
  line("#pragma clang loop unroll(disable) vectorize(disable)");
  open("for (; " + first + " + " + ways + " <= " + to + "; " + first + " += " + ways +
       ")");
  for (way_ = 0; way_ < ways_.size(); ++way_) {
    open("");
    line("const iptr " + i + " = " + first + " + " + std::to_string(way_) + ";");
    body();
    close();
  }
  way_ = 0;
  close();
  line("#pragma clang loop unroll(disable) vectorize(disable)");
  open("for (iptr " + i + " = " + first + "; " + i + " < " + to + "; ++" + i + ")");
  body();
  close();
}

// Loops over a stage's own axes.
void KernelEmitter::emit_inner(const Stage& s, size_t depth,
                               const std::function<void()>& body) {
  while (depth < k_.inner(s).size() && !k_.is_loop(k_.inner(s)[depth])) ++depth;
  if (depth == k_.inner(s).size()) return body();
  AxisId axis = k_.inner(s)[depth];
  int64_t extent = k_.indices.extent(axis);
  std::string i = "x" + std::to_string(axis);
  bool last = needs_peel(axis, true);
  Range before = narrowed_[axis];
  bool innermost = true;
  for (size_t d = depth + 1; d < k_.inner(s).size(); ++d)
    innermost &= !k_.is_loop(k_.inner(s)[d]);
  narrowed_[axis] = {0, extent - 1 - (last ? 1 : 0)};
  const bool here = blocks_ && blocks_->how.loop == axis;
  const bool blocks = here && blocks_->how.held.empty(), held = here && !blocks;
  std::string from = "0", to = std::to_string(extent - (last ? 1 : 0));
  if (!here && !last && s.kind == StageKind::Reduce)
    if (const std::string end = useful_end(s, depth); !end.empty()) to = end;
  if (blocks) {
    const std::string b = fresh("b"), size = std::to_string(blocks_->how.steps), end = to;
    open("for (iptr " + b + " = 0; " + b + " < " + end + "; " + b + " += " + size + ")");
    from = b, to = fresh("b");
    line("const iptr " + to + " = " + b + " + " + size + " < " + end + " ? " + b + " + " +
         size + " : " + end + ";");
    open_block();
  }
  const bool several = innermost && s.kind == StageKind::Reduce && ways_.size() > 1;
  if (s.kind == StageKind::Reduce && !several) unroll_hint(s, extent, innermost);
  auto emit_below = [&] {
    std::string useful = useful_tile(s, depth);
    if (!useful.empty()) open("if (" + useful + ")");
    if (held) open_block();
    emit_inner(s, depth + 1, body);
    if (held) close_block();
    if (!useful.empty()) close();
  };
  if (several) {
    emit_ways(axis, from, to, emit_below);
  } else {
    open("for (iptr " + i + " = " + from + "; " + i + " < " + to + "; ++" + i + ")");
    emit_below();
    close();
  }
  if (blocks) {
    close_block();
    close();
  }
  if (last) {
    narrowed_[axis] = {extent - 1, extent - 1};
    open("");
    if (blocks) open_block();
    line("const iptr " + i + " = " + std::to_string(extent - 1) + ";");
    emit_below();
    if (blocks) close_block();
    close();
  }
  narrowed_[axis] = before;
}

void KernelEmitter::emit_tiles() {
  locals_.clear();
  for (uint32_t s = 0; s < k_.stages.size(); ++s)
    if (!k_.stages[s].nested) emit_stage(s);
}

std::string pointer_type(const Argument& argument) {
  return (argument.written ? "" : "const ") + store_type(argument.dtype) + "*";
}

std::string KernelEmitter::definitions() {
  std::string parameters;
  for (size_t i = 0; i < k_.arguments.size(); ++i)
    parameters +=
        pointer_type(k_.arguments[i]) + " __restrict a" + std::to_string(i) + ", ";
  frames_.emplace_back();
  std::string rest = "chunk";
  for (size_t i = k_.loops.chunks.size(); i-- > 0;) {
    const ChunkAxis& c = k_.loops.chunks[i];
    int64_t extent = k_.indices.extent(c.axis), parts = (extent + c.block - 1) / c.block;
    std::string a = std::to_string(c.axis), end = std::to_string(extent);
    std::string part = i == 0 ? rest : "(" + rest + " % " + std::to_string(parts) + ")";
    line("const iptr low" + a + " = iptr(" + part + ") * " + std::to_string(c.block) +
         ";");
    line("const iptr high" + a + " = low" + a + " + " + std::to_string(c.block) + " < " +
         end + " ? low" + a + " + " + std::to_string(c.block) + " : " + end + ";");
    rest = "(" + rest + " / " + std::to_string(parts) + ")";
  }
  emit_outer(0);
  frames_.pop_back();
  std::string functions;
  for (const auto& [name, definition] : functions_) functions += definition;
  return functions + "static __attribute__((noinline)) i32 body(" + parameters +
         "[[maybe_unused]] void* scratch, [[maybe_unused]] u32 chunk) {\n  i32 bad = "
         "0;\n" +
         out_ + "  return bad;\n}\n";
}

std::string KernelEmitter::text() {
  std::string arguments;
  for (size_t i = 0; i < k_.arguments.size(); ++i)
    arguments += "static_cast<" + pointer_type(k_.arguments[i]) + ">(buffers[" +
                 std::to_string(i) + "]), ";
  return definitions() + "} // namespace kernel\n\n" +
         "extern \"C\" __attribute__((visibility(\"hidden\"))) __INT32_TYPE__\n"
         "svod_kernel(void* const* buffers, void* scratch, __UINT32_TYPE__ chunk) {\n"
         "  using namespace kernel;\n  return body(" +
         arguments + "scratch, chunk) ? " + std::to_string(SVOD_INDEX) + " : 0;\n}\n";
}

} // namespace svod::codegen
