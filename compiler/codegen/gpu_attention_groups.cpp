// Attention by groups of four warps, which multiply queries with keys in shared memory,
// and the weights in their registers with values there. A group has 64 queries, sixteen
// for each of its warps, whose threads have their scores as warps by themselves do
// (gpu_attention_warps.cpp): only the products differ. While one group's threads make
// weights of scores, tensor cores multiply for others. Queries stay out of registers:
// ptxas 13.0 gave those of all steps to the weights of the first one.
#include "compiler/codegen/gpu_factor.h"

namespace svod::codegen {

// All products of rows, sixteen steps at a time, which `rows` names.
void GpuEmitter::emit_group_products(const GroupInstruction& of, const std::string& sums,
                                     const std::function<std::string(int64_t)>& rows,
                                     int64_t steps, bool adds) {
  functions_[of.name] = group_definition(of);
  const std::string products = of.name + "_begun";
  line(of.products + " " + products + ";");
  line("begin_products();");
  for (int64_t s = 0; s < steps / kMatrixSide; ++s)
    line(of.name + "<" + (adds || s != 0 ? "true" : "false") + ">(" + products + ", " +
         sums + ", " + rows(s) + ", " + of.columns->of_groups("factor_of_group") + "(" +
         of.columns->buffer() + ", 0, " + text_of(s * kMatrixSide) + "));");
  line("end_products(" + products + ");");
  line("wait_for_products<0>(" + products + ", " + sums + ");");
}

void GpuEmitter::emit_group_keys(const Plane& queries, const Plane& keys) {
  constexpr int kWarps = kGroupThreads / kWarpThreads;
  emit_group_products(
      {"multiply_keys", "KeyProducts", DType::F32, keys.positions, &queries, &keys},
      "scores",
      [&](int64_t s) {
        return queries.of_groups("factor_of_group") + "(" + queries.name + ", below / " +
               text_of(kWarps) + " * " + text_of(kGroupRows) + ", " +
               text_of(s * kMatrixSide) + ")";
      },
      keys.steps, false);
}

void GpuEmitter::emit_group_values(const Plane& values) {
  const int64_t across = gpu_.attention.block_keys / kMatrixSide;
  emit_warp_weights(values);
  line("Matrix weights[" + std::to_string(across) + "];");
  line(kUnrolled);
  line("for (u32 s = 0; s < " + text_of(across) + "; ++s) weights[s] = weights_of<" +
       values.tag() + ">(scores + s * 8u);");
  line("hold(weights);");
  emit_group_products(
      {"multiply_values", "ValueProducts", DType::F32, values.positions, nullptr,
       &values},
      "sums", [](int64_t s) { return "&weights[" + std::to_string(s) + "]"; },
      values.steps, true);
}

} // namespace svod::codegen
