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
// one; or, on a processor, a list of what it was asked for.
std::string GpuEmitter::group_definition(const Factor& rows,
                                         const Factor& columns) const {
  const ProductTile& t = gpu_.product;
  const DType sum = k_.stages[0].dtype;
  const bool floats = sum == DType::F32;
  const std::string kind = compute_type(sum), count = text_of(t.part_columns),
                    a = instruction_type(rows.tile.dtype),
                    b = instruction_type(columns.tile.dtype);
  const int sums = t.part_columns * kGroupRows / kGroupThreads,
            steps = kMatrixBytes / static_cast<int>(byte_size(rows.tile.dtype));
  std::string names, operands;
  for (int i = 0; i < sums; ++i) {
    names += (i == 0 ? "%" : ",%") + std::to_string(i);
    operands += (i == 0 ? "\"+" : ", \"+") + std::string(floats ? "f" : "r") +
                "\"(sums[" + std::to_string(i) + "])";
  }
  auto operand = [&](int i) { return "%" + std::to_string(sums + i); };
  // Added to what is there; halves may be negated or turned.
  const std::string turned = std::string(rows.tile.by_steps ? ", 0" : ", 1") +
                             (columns.tile.by_steps ? ", 0" : ", 1");
  const std::string added = std::string(", added") + (floats ? ", 1, 1" : "") +
                            (is_half(rows.tile.dtype) ? turned : "");
  auto truth = [](bool is) { return std::string(is ? "true" : "false"); };
  return "#ifdef __NVPTX__\n"
         "typedef GroupProducts Products;\n"
         "SVOD_INLINE void multiply_group(Products&, " +
         kind + "* sums, u64 rows, u64 columns) {\n  asm volatile(\"{.reg .pred added; " +
         "setp.ne.b32 added, " + operand(2) +
         ", 0;\"\n    \"wgmma.mma_async.sync.aligned.m64n" +
         std::to_string(t.part_columns) + "k" + std::to_string(steps) + "." +
         (floats ? "f32" : "s32") + "." + a + "." + b + "\"\n    \"{" + names + "}, " +
         operand(0) + ", " + operand(1) + added + ";}\"\n    : " + operands +
         "\n    : \"l\"(rows), \"l\"(columns), \"r\"(1));\n}\n#else\n"
         "typedef GroupProducts<" +
         rows.tag() + ", " + columns.tag() + ", " + count + ", " +
         truth(rows.tile.by_steps) + ", " + truth(columns.tile.by_steps) + ", " +
         text_of(t.steps) + ", " + rows.element + ", " + columns.element + ", " + kind +
         "> Products;\n"
         "SVOD_INLINE void multiply_group(Products& products, " +
         kind + "* sums, FactorOfGroup<" + rows.element + "> rows, FactorOfGroup<" +
         columns.element +
         "> columns) {\n  products.add(sums, rows, columns);\n}\n#endif\n";
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
  line("multiply_group(products, sums + i * " +
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
  functions_["multiply_group"] = group_definition(rows, columns);
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
