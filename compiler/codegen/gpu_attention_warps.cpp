// Attention by tensor cores. A warp has sixteen queries, or several times sixteen, and
// keeps them as the factors of matrices; its threads have two neighbouring keys of two
// rows, eight apart, of either half of sixteen keys (PTX ISA, "mma", fragments of
// .m16n8).
#include "compiler/codegen/gpu_factor.h"

namespace svod::codegen {

namespace {

std::string matrix_text(const SharedTile& tile, const std::string& place,
                        const std::string& position, const std::string& step) {
  return "matrix_of<" + std::string(tile.by_steps ? "true" : "false") + ", " +
         std::to_string(tile.pitch) + ">(" + place + ", " + position + ", " + step + ")";
}

// Of sum `n` of a thread: a warp's row, and a column of so many times sixteen.
std::string row_text(int64_t across) {
  return "n / " + text_of(8 * across) + " * 16u + n / 2u % 2u * 8u + beside / 4u";
}
std::string column_text(int64_t across) {
  return "n / 8u % " + text_of(across) +
         " * 16u + n / 4u % 2u * 8u + beside % 4u * 2u + n % 2u";
}

} // namespace

void GpuEmitter::emit_warp_queries(const Plane& queries) {
  const AttentionTile& t = gpu_.attention;
  const int64_t down = queries_of_warp(t) / kMatrixSide,
                steps = queries.steps / kMatrixSide;
  line("wait_for_block();");
  line("Matrix queries[" + std::to_string(down * steps) + "];");
  line(kUnrolled);
  line("for (u32 i = 0; i < " + text_of(down * steps) + "; ++i) queries[i] = " +
       matrix_text(queries.tile, "query_tile",
                   "below * " + text_of(queries_of_warp(t)) + " + i / " + text_of(steps) +
                       " * 16u",
                   "i % " + text_of(steps) + " * 16u") +
       ";");
}

void GpuEmitter::emit_warp_keys(const Plane& keys) {
  const AttentionTile& t = gpu_.attention;
  const int64_t down = queries_of_warp(t) / kMatrixSide,
                across = t.block_keys / kMatrixSide, steps = keys.steps / kMatrixSide;
  const std::string type(info(keys.tile.dtype).text);
  line(kUnrolled);
  open("for (u32 s = 0; s < " + text_of(steps) + "; ++s)");
  line(kUnrolled);
  open("for (u32 j = 0; j < " + text_of(across) + "; ++j)");
  line("const Matrix keys = " +
       matrix_text(keys.tile, keys.buffer(), "j * 16u", "s * 16u") + ";");
  line(kUnrolled);
  line("for (u32 i = 0; i < " + text_of(down) + "; ++i) multiply_matrices<" + type +
       ", " + type + ">(scores + (i * " + text_of(across) + " + j) * 8u, queries[i * " +
       text_of(steps) + " + s], keys);");
  close();
  close();
}

void GpuEmitter::emit_warp_place() {
  const AttentionTile& t = gpu_.attention;
  const int64_t across = t.block_keys / kMatrixSide;
  line("const u32 query = first_query + below * " + text_of(queries_of_warp(t)) + " + " +
       row_text(across) + ", key = first_key + " + column_text(across) + ";");
}

// Scores become weights, and sums ready for these.
void GpuEmitter::emit_warp_weights(const Plane& values) {
  const AttentionTile& t = gpu_.attention;
  line("weigh<" + text_of(queries_of_warp(t) / kMatrixSide) + ", " +
       text_of(t.block_keys / kMatrixSide) + ", " +
       text_of(values.positions / kMatrixSide) + ">(scores, sums, tops, totals);");
}

void GpuEmitter::emit_warp_values(const Plane& values) {
  const AttentionTile& t = gpu_.attention;
  const int64_t down = queries_of_warp(t) / kMatrixSide,
                across = t.block_keys / kMatrixSide,
                columns = values.positions / kMatrixSide;
  const std::string type(info(values.tile.dtype).text);
  emit_warp_weights(values);
  line(kUnrolled);
  open("for (u32 s = 0; s < " + text_of(across) + "; ++s)");
  line("Matrix weights[" + std::to_string(down) + "];");
  line(kUnrolled);
  line("for (u32 i = 0; i < " + text_of(down) + "; ++i) weights[i] = weights_of<" + type +
       ">(scores + (i * " + text_of(across) + " + s) * 8u);");
  line(kUnrolled);
  open("for (u32 j = 0; j < " + text_of(columns) + "; ++j)");
  line("const Matrix values = " +
       matrix_text(values.tile, values.buffer(), "j * 16u", "s * 16u") + ";");
  line(kUnrolled);
  line("for (u32 i = 0; i < " + text_of(down) + "; ++i) multiply_matrices<" + type +
       ", " + type + ">(sums + (i * " + text_of(columns) +
       " + j) * 8u, weights[i], values);");
  close();
  close();
}

void GpuEmitter::emit_warp_totals() {
  const AttentionTile& t = gpu_.attention;
  const int64_t columns = plane(AttentionFactor::Values).positions / kMatrixSide;
  line("divide_by_totals<" + text_of(queries_of_warp(t) / kMatrixSide) + ", " +
       text_of(columns) + ">(sums, totals);");
}

void GpuEmitter::emit_warp_column() {
  const AttentionTile& t = gpu_.attention;
  const int64_t columns = plane(AttentionFactor::Values).positions / kMatrixSide;
  line("const u32 query = first_query + below * " + text_of(queries_of_warp(t)) + " + " +
       row_text(columns) + ", column = " + column_text(columns) + ";");
}

} // namespace svod::codegen
