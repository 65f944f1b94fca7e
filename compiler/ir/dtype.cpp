// Lookups over the rows of dtypes.def.
#include "compiler/ir/dtype.h"

#include <charconv>

namespace svod {

static constexpr DTypeInfo kTypes[] = {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  {DType::name, text, bytes, bits, onnx, DTypeKind::kind, #store, #compute, #codec},
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

static constexpr int kString = 8;

std::string onnx_type_text(int code) {
  if (std::optional<DType> dtype = dtype_from_onnx(code))
    return std::string(info(*dtype).text);
  return code == kString ? "string" : "onnx" + std::to_string(code);
}

std::optional<int> onnx_type_from_text(std::string_view text) {
  if (std::optional<DType> dtype = dtype_from_text(text)) return info(*dtype).onnx;
  if (text == "string") return kString;
  if (!text.starts_with("onnx")) return std::nullopt;
  int code = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + 4, end, code);
  if (error != std::errc() || stop != end || code < 0) return std::nullopt;
  return code;
}

} // namespace svod
