// Lookups over the rows of dtypes.def.
#include "compiler/ir/dtype.h"

namespace svod {

static constexpr DTypeInfo kTypes[] = {
#define DTYPE(name, text, bytes, onnx, kind, store, compute)                             \
  {DType::name, text, bytes, onnx, DTypeKind::kind, #store, #compute},
#include "compiler/ir/dtypes.def"
};

const DTypeInfo& info(DType dtype) { return kTypes[static_cast<int>(dtype)]; }

std::optional<DType> dtype_from_text(std::string_view text) {
  for (const DTypeInfo& row : kTypes)
    if (row.text == text) return row.dtype;
  return std::nullopt;
}

std::optional<DType> dtype_from_onnx(int code) {
  for (const DTypeInfo& row : kTypes)
    if (row.onnx == code) return row.dtype;
  return std::nullopt;
}

} // namespace svod
