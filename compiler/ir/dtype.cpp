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

namespace {

struct ComplexType {
  int onnx;
  std::string_view text;
  DType part;
};

} // namespace

static constexpr ComplexType kComplexTypes[] = {{14, "c64", DType::F32},
                                                {15, "c128", DType::F64}};

std::optional<DType> complex_part(int onnx_type) {
  for (const ComplexType& type : kComplexTypes)
    if (type.onnx == onnx_type) return type.part;
  return std::nullopt;
}

std::optional<int> complex_of(DType part) {
  for (const ComplexType& type : kComplexTypes)
    if (type.part == part) return type.onnx;
  return std::nullopt;
}

std::string onnx_type_text(int code) {
  if (std::optional<DType> dtype = dtype_from_onnx(code))
    return std::string(info(*dtype).text);
  for (const ComplexType& type : kComplexTypes)
    if (type.onnx == code) return std::string(type.text);
  return "onnx" + std::to_string(code);
}

std::optional<int> onnx_type_from_text(std::string_view text) {
  if (std::optional<DType> dtype = dtype_from_text(text)) return info(*dtype).onnx;
  for (const ComplexType& type : kComplexTypes)
    if (type.text == text) return type.onnx;
  if (!text.starts_with("onnx")) return std::nullopt;
  int code = 0;
  const char* end = text.data() + text.size();
  auto [stop, error] = std::from_chars(text.data() + 4, end, code);
  if (error != std::errc() || stop != end || code < 0) return std::nullopt;
  return code;
}

} // namespace svod
