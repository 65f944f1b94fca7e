#include "compiler/codegen/reduction_text.h"

#include "compiler/codegen/element_text.h"
#include "compiler/support/check.h"

namespace svod::codegen {

namespace {
// Per reduction: the struct of the prelude that combines, and how the identity is
// written.
struct ReduceRow {
  Op op;
  const char* combine;
};
constexpr ReduceRow kReduceRows[] = {
    {Op::ReduceSum, "SumOf"},    {Op::ScanSum, "SumOf"},   {Op::ReduceProd, "ProductOf"},
    {Op::ScanProd, "ProductOf"}, {Op::ReduceMin, "MinOf"}, {Op::ScanMin, "MinOf"},
    {Op::ReduceMax, "MaxOf"},    {Op::ScanMax, "MaxOf"},   {Op::ArgMin, "MinOf"},
    {Op::ArgMax, "MaxOf"},
};
} // namespace

std::string combine_of(Op op) {
  for (const ReduceRow& row : kReduceRows)
    if (row.op == op) return row.combine;
  SVOD_CHECK(false) << "no reduction: " << info(op).text;
  return "";
}

static std::string lowest(DType dtype, bool highest) {
  if (is_float(dtype)) {
    std::string inf = dtype == DType::F64 ? "kInf<f64>" : "kInf<f32>";
    return highest ? inf : "-" + inf;
  }
  if (dtype == DType::Bool) return highest ? "u8(1)" : "u8(0)";
  std::string t = compute_type(dtype);
  return (highest ? "kHighest<" : "kLowest<") + t + ">";
}

std::string identity(Op op, DType dtype) {
  std::string combine = combine_of(op);
  if (combine == "SumOf") return compute_type(dtype) + "(0)";
  if (combine == "ProductOf") return compute_type(dtype) + "(1)";
  return lowest(dtype, combine == "MinOf");
}

} // namespace svod::codegen
