// Attention by threads that multiply by themselves. Neighbouring threads of a warp share
// some queries, each with keys of its own, and later with columns of the values of its
// own: weights go from the one to the other by way of shared memory.
#include "compiler/codegen/gpu_factor.h"

namespace svod::codegen {

namespace {

// Number `i` of a part: runs of all threads take turns.
std::string place_text(int64_t count, int64_t across, const std::string& i) {
  const int run = run_of(count, DType::F32);
  return "beside * " + text_of(run) + " + " + i + " / " + text_of(run) + " * " +
         text_of(run * across) + " + " + i + " % " + text_of(run);
}

std::string take_text(const char* to, int64_t count, int64_t across,
                      const std::string& from) {
  const int run = run_of(count, DType::F32);
  return "take_runs<" + std::to_string(run) + ", " + std::to_string(run * across) + ">(" +
         to + ", " + from + " + " + (across == 1 ? "below" : "beside") + " * " +
         text_of(across == 1 ? count : run) + ");";
}

int64_t across(const AttentionTile& t) { return t.block_keys / t.part_keys; }

} // namespace

// Sums of products of what the threads of a part have in two rows of shared memory.
void GpuEmitter::emit_thread_products(const std::string& sums, int64_t steps,
                                      const std::string& rows, const std::string& columns,
                                      int64_t count) {
  const AttentionTile& t = gpu_.attention;
  line("#pragma clang loop unroll_count(4)");
  open("for (u32 s = 0; s < " + text_of(steps) + "; ++s)");
  line("f32 rows[" + std::to_string(t.part_queries) + "], columns[" +
       std::to_string(count) + "];");
  line(take_text("rows", t.part_queries, 1, rows));
  line(take_text("columns", count, across(t), columns));
  line(kUnrolled);
  open("for (u32 i = 0; i < " + text_of(t.part_queries) + "; ++i)");
  line(kUnrolled);
  line("for (u32 j = 0; j < " + text_of(count) + "; ++j) " + sums + "[i * " +
       text_of(count) + " + j] = ma_(rows[i], columns[j], " + sums + "[i * " +
       text_of(count) + " + j]);");
  close();
  close();
}

void GpuEmitter::emit_thread_queries() {
  const AttentionTile& t = gpu_.attention;
  line("SVOD_OF_BLOCK f32* const weight_tile = (SVOD_OF_BLOCK f32*)(tiles + " +
       text_of(weights_in_shared(k_, *attention_of(k_), t)) + ");");
}

void GpuEmitter::emit_thread_keys(const Plane& queries, const Plane& keys) {
  emit_thread_products(
      "scores", keys.steps, "query_tile + s * " + text_of(queries.tile.pitch),
      keys.buffer() + " + s * " + text_of(keys.tile.pitch), gpu_.attention.part_keys);
}

void GpuEmitter::emit_thread_place() {
  const AttentionTile& t = gpu_.attention;
  const std::string count = text_of(t.part_keys);
  line("const u32 query = first_query + below * " + text_of(t.part_queries) + " + n / " +
       count + ", key = first_key + " +
       place_text(t.part_keys, across(t), "n % " + count) + ";");
}

// Scores become weights, which all threads of the warp that share their queries read.
void GpuEmitter::emit_thread_values(const Plane& values) {
  const AttentionTile& t = gpu_.attention;
  const Attention a = *attention_of(k_);
  const Point p(counts_.size(), 0);
  const int64_t columns = values.positions / across(t);
  const std::string rows = text_of(t.part_queries), keys = text_of(t.part_keys),
                    pitch = text_of(weight_tile(t).pitch);
  line("f32 bases[" + std::to_string(t.part_queries) + "];");
  line("raise<" + text_of(across(t)) + ", " + rows + ", " + keys + ", " +
       text_of(columns) + ">(scores, sums, tops, totals, bases);");
  line(kUnrolled);
  open("for (u32 n = 0; n < " + text_of(score_sums(t)) + "; ++n)");
  locals_.clear();
  locals_[{kScoreStage, p}] = {"scores[n]", false};
  locals_[{kMaximumStage, p}] = {"bases[n / " + keys + "]", false};
  for (ExprId id = a.score;; id = k_.exprs[id].inputs[0]) {
    frames_.back()[{id, project(id, p)}] = {"scores[n]", false};
    if (k_.exprs[id].kind != Expr::Kind::Cast) break;
  }
  line("const f32 weight = " + eval(a.weight, p).name + ";");
  line("totals[n / " + keys + "] += weight;");
  line("weight_tile[(" + place_text(t.part_keys, across(t), "n % " + keys) + ") * " +
       pitch + " + below * " + rows + " + n / " + keys + "] = weight;");
  close();
  line("wait_for_block();");
  emit_thread_products("sums", t.block_keys, "weight_tile + s * " + pitch,
                       values.buffer() + " + s * " + text_of(values.tile.pitch), columns);
}

void GpuEmitter::emit_thread_totals() {
  const AttentionTile& t = gpu_.attention;
  const int64_t columns = plane(AttentionFactor::Values).positions / across(t);
  line("divide_rows<" + text_of(across(t)) + ", " + text_of(t.part_queries) + ", " +
       text_of(columns) + ">(sums, totals);");
}

void GpuEmitter::emit_thread_column() {
  const AttentionTile& t = gpu_.attention;
  const int64_t columns = plane(AttentionFactor::Values).positions / across(t);
  const std::string count = text_of(columns);
  line("const u32 query = first_query + below * " + text_of(t.part_queries) + " + n / " +
       count + ", column = " + place_text(columns, across(t), "n % " + count) + ";");
}

} // namespace svod::codegen
