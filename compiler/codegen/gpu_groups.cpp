// Products by groups of four warps, which read both factors from shared memory by
// themselves while the threads have the next steps copied. Of a tile of steps the
// products are begun; those of the tile before are waited for only then, so that tensor
// cores have work while the block's threads wait for each other.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_factor.h"

namespace svod::codegen {

// "f16", as the instruction calls it.
static std::string instruction_type(DType dtype) {
  switch (dtype) {
  case DType::I8:
    return "s8";
  case DType::U8:
    return "u8";
  case DType::F32:
    return "tf32";
  default:
    return std::string(info(dtype).text);
  }
}

// The instruction of as many columns as a group's part has, whose sums it names one by
// one, and which adds to them or not; or, on a processor, a list of what it was asked
// for.
std::string GpuEmitter::group_definition(const GroupInstruction& of) const {
  const SharedFactor& columns = *of.columns;
  const DType type = of.rows != nullptr ? of.rows->tile.dtype : columns.tile.dtype;
  const bool floats = of.sum == DType::F32;
  const int sums = static_cast<int>(of.width) * kGroupRows / kGroupThreads,
            steps = kMatrixBytes / static_cast<int>(byte_size(type));
  auto listed = [](int count, auto item) {
    std::string out;
    for (int i = 0; i < count; ++i) out += (i == 0 ? "" : ",") + item(i);
    return out;
  };
  auto place = [](int i) { return "%" + std::to_string(i); };
  auto after = [&](int i) { return place(sums + i); };
  const int of_rows = of.rows != nullptr ? 1 : 4; // words of a matrix, or an address
  const std::string rows =
      of.rows != nullptr ? after(0) : "{" + listed(of_rows, after) + "}";
  // Halves may be negated or turned; those in registers lie one way.
  auto turned = [](const SharedFactor& f) { return f.tile.by_steps ? ", 0" : ", 1"; };
  std::string flags = floats ? ", 1, 1" : "";
  if (is_half(type))
    flags += (of.rows != nullptr ? turned(*of.rows) : "") + std::string(turned(columns));
  auto instruction = [&](bool adds) {
    const std::string constraint =
        std::string(adds ? "\"+" : "\"=") + (floats ? "f" : "r") + "\"(sums[";
    return "    asm volatile(\"{.reg .pred adds; setp.ne.b32 adds, " +
           std::string(adds ? "1" : "0") +
           ", 0;\"\n      \"wgmma.mma_async.sync.aligned.m64n" +
           std::to_string(of.width) + "k" + std::to_string(steps) + "." +
           (floats ? "f32" : "s32") + "." + instruction_type(type) + "." +
           instruction_type(columns.tile.dtype) + "\"\n      \"{" + listed(sums, place) +
           "}, " + rows + ", " + after(of_rows) + ", adds" + flags + ";}\"\n      : " +
           listed(sums, [&](int i) { return constraint + std::to_string(i) + "])"; }) +
           "\n      : " +
           (of.rows != nullptr
                ? "\"l\"(rows)"
                : listed(of_rows,
                         [](int i) {
                           return "\"r\"(rows->words[" + std::to_string(i) + "])";
                         })) +
           ", \"l\"(columns));\n";
  };
  const std::string tags =
      (of.rows != nullptr ? of.rows->tag() : columns.tag()) + ", " + columns.tag();
  const std::string row_type = of.rows != nullptr ? of.rows->of_groups("FactorOfGroup")
                                                  : "const Matrix*",
                    column_type = columns.of_groups("FactorOfGroup"),
                    kind = compute_type(of.sum);
  return "typedef GroupProducts<" + tags + ", " + text_of(of.width) + ", " + row_type +
         ", " + column_type + ", " + kind + "> " + of.products +
         ";\ntemplate <bool kAdds>\nSVOD_INLINE void " + of.name + "(" + of.products +
         "& products, " + kind + "* sums, " + row_type + " rows, " + column_type +
         " columns) {\n#ifdef __NVPTX__\n  if constexpr (kAdds)\n" + instruction(true) +
         "  else\n" + instruction(false) + "#else\n  products.add(sums, rows, columns, " +
         std::to_string(steps) + ", kAdds);\n#endif\n}\n";
}

// Begins to multiply what a buffer holds.
void GpuEmitter::emit_group_sums(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  const int64_t steps = kMatrixBytes / byte_size(rows.tile.dtype);
  line("begin_products();");
  line(kUnrolled);
  open("for (u32 s = 0; s < " + text_of(t.steps) + "; s += " + text_of(steps) + ")");
  line(kUnrolled);
  open("for (u32 i = 0; i < " + text_of(t.part_rows / kGroupRows) + "; ++i)");
  line("multiply_group<true>(products, sums + i * " +
       text_of(t.part_columns * kGroupRows / kGroupThreads) + ",");
  line("  " + rows.of_groups("factor_of_group") + "(" + rows.buffer() + ", below * " +
       text_of(t.part_rows) + " + i * " + text_of(kGroupRows) + ", s),");
  line("  " + columns.of_groups("factor_of_group") + "(" + columns.buffer() +
       ", beside * " + text_of(t.part_columns) + ", s));");
  close();
  close();
  line("end_products(products);");
}

void GpuEmitter::emit_groups(const Factor& rows, const Factor& columns) {
  const ProductTile& t = gpu_.product;
  const std::string steps = text_of(t.steps), last = text_of(buffers_of(k_, t) - 1),
                    further = text_of(int64_t{t.ahead} * t.steps);
  functions_["multiply_group"] =
      group_definition({"multiply_group", "Products", k_.stages[0].dtype, t.part_columns,
                        &rows, &columns});
  line("Products products;");
  line("hold(sums);");
  emit_copies(rows, columns);
  open("auto multiply = [&](u32 buffer) SVOD_INLINED");
  emit_group_sums(rows, columns);
  close("};");
  begin_copies();
  line("u32 filled = 0, free = " + text_of(t.ahead) + ";");
  line("#pragma clang loop unroll(disable)");
  open("for (u32 step = begin; step < end; step += " + steps + ")");
  line("wait_for_copies<" + std::to_string(t.ahead - 1) + ">();");
  line("show_to_groups();");
  line("wait_for_block();");
  line("multiply(filled);");
  line("if (step + " + further + " < end) copy(step + " + further + ", free);");
  line("end_copies();");
  line("wait_for_products<1>(products, sums);");
  for (const char* buffer : {"filled", "free"})
    line(std::string(buffer) + " = " + buffer + " == " + last + " ? 0 : " + buffer +
         " + 1;");
  close();
  line("wait_for_products<0>(products, sums);");
}

} // namespace svod::codegen
