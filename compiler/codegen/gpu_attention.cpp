// Attention in one kernel. A block has some queries, in registers or shared memory, and
// goes through all keys: those of one step and their values are in shared memory while
// the next ones are on their way. Scores stay in registers. They are multiplied with the
// values as exp(score - maximum until now), and what was summed by a lower maximum is
// multiplied by the exponential of the difference, so that each score is computed once
// and none is stored. Where tensor cores multiply, the scores that a thread has are, as
// halves, the factors that it needs for the values (Dao, "FlashAttention-2", 2023).
#include "compiler/codegen/gpu_factor.h"

#include "compiler/codegen/element_text.h"

namespace svod::codegen {

GpuEmitter::Plane GpuEmitter::plane(AttentionFactor factor) const {
  const AttentionTile& t = gpu_.attention;
  const AttentionPlane p = attention_plane(k_, *attention_of(k_), t, factor);
  Plane out;
  out.value = p.value, out.how = p.how, out.tile = p.tile;
  out.positions = p.positions, out.steps = p.steps;
  out.threads = gpu_.threads;
  out.narrow = t.matrices();
  out.element = t.matrices() ? store_type(out.tile.dtype) : compute_type(out.tile.dtype);
  out.step_axes = p.step_axes, out.copied = p.copied;
  out.position_extent = p.position_extent, out.step_extent = p.step_extent;
  switch (factor) {
  case AttentionFactor::Queries:
    out.name = "query_tile", out.from_position = "first_query + ";
    break;
  case AttentionFactor::Keys:
    out.name = "key_tile", out.next = "next_keys", out.from_position = "from_key + ";
    break;
  case AttentionFactor::Values:
    out.name = "value_tile", out.next = "next_values", out.from_step = "from_key + ";
    break;
  }
  return out;
}

// Opens a run, with its place among all.
void GpuEmitter::open_plane(const Plane& f) {
  open_run(f);
  line("const u32 position = " + f.from_position + "p, at = " + f.from_step + "s;");
}

// Opens what is done where the run is there, if that is not certain, and under the bounds
// given. Returns how many blocks that opens.
int GpuEmitter::open_inside(const Plane& f, const std::vector<Bound>& bounds) {
  const std::string there = both(bounded("position", f.position_extent, f.positions),
                                 bounded("at", f.step_extent, f.steps));
  open(there.empty() ? "" : "if (" + there + ")");
  name_axes(f.how.axes, "position");
  name_axes(f.step_axes, "at");
  const std::string guard = condition(bounds, Point(counts_.size(), 0), false);
  if (guard.empty()) return 1;
  open("if (" + guard + ")");
  return 2;
}

// The elements of the run, or zeros, into a register of them.
void GpuEmitter::emit_plane_run(const Plane& f, const std::string& to) {
  line(to + " = 0;");
  int opened = open_inside(f, {});
  emit_run(f, f.step_axes, to);
  while (opened-- > 0) close();
}

void GpuEmitter::emit_plane_copy(const Plane& f) {
  const CopiedFactor copied = *copied_value(k_, f.value, f.tile.dtype);
  open_plane(f);
  emit_copy(f, copied, [&] { return open_inside(f, copied.bounds); });
  close();
}

// Queries are there once for all keys.
void GpuEmitter::emit_queries(const Plane& queries) {
  line("const u32 buffer = 0;");
  open_plane(queries);
  line(queries.run_type() + " run;");
  emit_plane_run(queries, "run");
  emit_put(queries, "run");
  close();
}

// How keys and values come to shared memory: copied as they lie, or by registers.
void GpuEmitter::emit_moves(const std::vector<Plane>& copied,
                            const std::vector<Plane>& fetched) {
  if (!copied.empty()) {
    open("auto copy = [&](u32 from_key, u32 buffer) SVOD_INLINED");
    for (const Plane& f : copied) emit_plane_copy(f);
    close("};");
  }
  if (fetched.empty()) return;
  for (const Plane& f : fetched)
    line(f.run_type() + " " + f.next + "[" + std::to_string(f.turns()) + "];");
  open("auto fetch = [&](u32 from_key) SVOD_INLINED");
  for (const Plane& f : fetched) {
    open_plane(f);
    emit_plane_run(f, f.next + "[n]");
    close();
  }
  close("};");
  open("auto put = [&](u32 buffer) SVOD_INLINED");
  line("const u32 from_key = 0;");
  for (const Plane& f : fetched) {
    open_plane(f);
    emit_put(f, f.next + "[n]");
    close();
  }
  close("};");
}

// Gives what is rounded to halves below the value the names of what it was before: a
// score takes few instructions, and two would be these.
void GpuEmitter::skip_roundings(ExprId id, const Point& p) {
  const Expr& e = k_.exprs[id];
  for (ExprId in : e.inputs) skip_roundings(in, p);
  if (e.kind == Expr::Kind::Cast && is_half(e.dtype) &&
      k_.exprs[e.inputs[0]].dtype == DType::F32)
    frames_.back()[{id, project(id, p)}] = eval(e.inputs[0], p);
}

// From products to what the softmax takes; of keys that do not exist, -inf. `whole`: all
// do. What a query that does not exist reads is the last one's, and nobody's result.
void GpuEmitter::emit_scores(bool whole) {
  const AttentionTile& t = gpu_.attention;
  const Attention a = *attention_of(k_);
  const Point p(counts_.size(), 0);
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(score_sums(t)) + "; ++n)");
  t.matrices() ? emit_warp_place() : emit_thread_place();
  auto name = [&](const std::vector<AxisId>& axes, const std::string& at, bool inside) {
    const std::string last = text_of(positions_along(k_, axes) - 1);
    name_axes(axes,
              inside ? at : "(" + at + " < " + last + " ? " + at + " : " + last + ")");
  };
  const int64_t queries = positions_along(k_, a.queries);
  name(t.queries.axes, "query", queries % t.block_queries == 0);
  name(a.keys, "key", whole);
  locals_.clear();
  locals_[{kScoreStage, p}] = {"scores[n]", false};
  if (t.matrices()) skip_roundings(a.score, p);
  const std::string score = eval(a.score, p).name;
  line("scores[n] = " +
       (whole ? score
              : "key < " + text_of(positions_along(k_, a.keys)) + " ? " + score +
                    " : -kInf<f32>") +
       ";");
  close();
}

void GpuEmitter::emit_attention_results() {
  const AttentionTile& t = gpu_.attention;
  const Attention a = *attention_of(k_);
  // Of what tensor cores multiply a thread has pairs of neighbours.
  const int near = t.matrices() ? near_results(k_, t.values.axes, 2) : 1;
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(result_sums(k_, a, t)) +
       "; n += " + text_of(near) + ")");
  t.matrices() ? emit_warp_column() : emit_thread_column();
  open("if (query < " + text_of(positions_along(k_, a.queries)) + " && column < " +
       text_of(positions_along(k_, a.columns)) + ")");
  name_axes(t.queries.axes, "query");
  name_axes(t.values.axes, "column");
  locals_.clear();
  const std::string empty =
      a.empty ? eval(*a.empty, Point(counts_.size(), 0)).name + " ? 0.0f : " : "";
  line("f32 run[" + std::to_string(near) + "];");
  for (int i = 0; i < near; ++i)
    line("run[" + std::to_string(i) + "] = " + empty + "sums[n + " + text_of(i) + "];");
  emit_result(kResultStage, t.values.axes, near);
  close();
  close();
}

// Keys and values of a step in buffer `buffer` are used while those of the next steps
// are on their way to others. A block waits once for each step: then all that was copied
// or put there before is seen, and the buffer of the step before is free.
void GpuEmitter::emit_attention_loop(const Plane& queries, const Plane& keys,
                                     const Plane& values) {
  const AttentionTile& t = gpu_.attention;
  const int64_t count = keys.position_extent;
  std::vector<Plane> copied, fetched;
  for (const Plane& f : {keys, values}) (f.copied ? copied : fetched).push_back(f);
  emit_moves(copied, fetched);
  const std::string step = text_of(t.block_keys), end = text_of(count),
                    ahead = std::to_string(t.ahead),
                    further = text_of(int64_t{t.ahead} * t.block_keys);
  if (!copied.empty())
    for (int64_t i = 0; i < t.ahead; ++i) {
      if (i * t.block_keys < count)
        line("copy(" + text_of(i * t.block_keys) + ", " + text_of(i) + ");");
      line("end_copies();");
    }
  if (!fetched.empty()) line("fetch(0);"), line("put(0);");
  line("u32 buffer = 0;");
  line("#pragma clang loop unroll(disable)");
  open("for (u32 first_key = 0; first_key < " + end + "; first_key += " + step + ")");
  if (!copied.empty()) line("wait_for_copies<" + std::to_string(t.ahead - 1) + ">();");
  if (t.by == Multiplier::Group) line("show_to_groups();");
  line("wait_for_block();");
  line("const u32 next = buffer == " + text_of(t.buffers() - 1) + " ? 0 : buffer + 1;");
  if (!copied.empty()) {
    line("if (first_key + " + further + " < " + end + ") copy(first_key + " + further +
         ", buffer == 0 ? " + ahead + "u : buffer - 1);");
    line("end_copies();");
  }
  const std::string goes_on = "if (first_key + " + step + " < " + end + ") ";
  if (!fetched.empty()) line(goes_on + "fetch(first_key + " + step + ");");
  line("f32 scores[" + std::to_string(score_sums(t)) + "]" +
       (t.by == Multiplier::Group ? ";" : " = {};"));
  switch (t.by) {
  case Multiplier::Thread:
    emit_thread_keys(queries, keys);
    break;
  case Multiplier::Warp:
    emit_warp_keys(keys);
    break;
  case Multiplier::Group:
    emit_group_keys(queries, keys);
    break;
  }
  if (count >= t.block_keys) {
    open(count % t.block_keys == 0 ? "" : "if (first_key + " + step + " <= " + end + ")");
    emit_scores(true);
    close();
  }
  if (count % t.block_keys != 0) {
    open(count < t.block_keys ? "" : "else");
    emit_scores(false);
    close();
  }
  if (t.by == Multiplier::Group)
    emit_group_values(values);
  else
    t.matrices() ? emit_warp_values(values) : emit_thread_values(values);
  if (!fetched.empty()) line(goes_on + "put(next);");
  line("buffer = next;");
  close();
}

void GpuEmitter::emit_attention() {
  const AttentionTile& t = gpu_.attention;
  const Attention a = *attention_of(k_);
  const Plane queries = plane(AttentionFactor::Queries),
              keys = plane(AttentionFactor::Keys),
              values = plane(AttentionFactor::Values);
  const int64_t blocks = attention_blocks(k_, t),
                others = positions_along(k_, gpu_.positions);
  line("const u32 thread = thread_number(), block = block_number();");
  line("const u32 first_query = block % " + text_of(blocks) + " * " +
       text_of(t.block_queries) + ";");
  if (others > 1) {
    line("const u32 part = block / " + text_of(blocks) + ";");
    name_axes(gpu_.positions, "part");
  }
  const int64_t across = t.matrices() ? kWarpThreads : t.block_keys / t.part_keys;
  line("const u32 below = thread / " + text_of(across) + ", beside = thread % " +
       text_of(across) + ";");
  shared_["tiles"] = "SVOD_TILES(" + std::to_string(shared_of_attention(k_, t)) + ", " +
                     (t.by == Multiplier::Group ? "1024" : "16") + ");\n";
  int64_t at = 0;
  for (const Plane* f : {&keys, &values, &queries}) {
    line("SVOD_OF_BLOCK " + f->element + "* const " + f->name + " = (SVOD_OF_BLOCK " +
         f->element + "*)(tiles + " + text_of(at) + ");");
    at += (f == &queries ? 1 : t.buffers()) * f->tile.elements * byte_size(f->tile.dtype);
  }
  const int64_t rows = t.matrices() ? queries_of_warp(t) / 8 : t.part_queries;
  open("");
  emit_queries(queries);
  close();
  line("f32 sums[" + std::to_string(result_sums(k_, a, t)) + "] = {}, tops[" +
       std::to_string(rows) + "], totals[" + std::to_string(rows) + "] = {};");
  line(kUnrolled);
  line("for (u32 i = 0; i < " + text_of(rows) + "; ++i) tops[i] = -kInf<f32>;");
  if (t.by == Multiplier::Warp) emit_warp_queries(queries);
  if (t.by == Multiplier::Thread) emit_thread_queries();
  emit_attention_loop(queries, keys, values);
  t.matrices() ? emit_warp_totals() : emit_thread_totals();
  emit_attention_results();
}

} // namespace svod::codegen
