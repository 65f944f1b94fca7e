#include "compiler/codegen/element_text.h"

#include "compiler/ir/build.h"

#include <cmath>
#include <cstdio>

namespace svod::codegen {

// The name that kernels have for a C++ type of dtypes.def: u8 for uint8_t.
static std::string kernel_type(std::string_view type) {
  if (type == "float") return "f32";
  if (type == "double") return "f64";
  std::string out = type.front() == 'u' ? "u" : "i";
  for (char c : type)
    if (c >= '0' && c <= '9') out += c;
  return out;
}

std::string store_type(DType dtype) { return kernel_type(info(dtype).store_type); }

std::string compute_type(DType dtype) { return kernel_type(info(dtype).compute_type); }

std::string rounded(DType dtype, const std::string& value) {
  if (!is_narrow_float(dtype)) return value;
  return "round_" + std::string(info(dtype).codec) + "(" + value + ")";
}

std::string from_store(DType dtype, const std::string& value) {
  if (!is_narrow_float(dtype)) return value;
  return std::string(info(dtype).codec) + "_to_float(" + value + ")";
}

std::string to_store(DType dtype, const std::string& value) {
  if (!is_narrow_float(dtype)) return value;
  return "float_to_" + std::string(info(dtype).codec) + "(" + value + ")";
}

std::string literal(DType dtype, uint64_t bits) {
  char text[64];
  if (is_float(dtype)) {
    double value = scalar_value(dtype, bits);
    bool wide = dtype == DType::F64;
    if (std::isnan(value)) return wide ? "kNan<f64>" : "kNan<f32>";
    if (std::isinf(value))
      return std::string(value < 0 ? "-" : "") + (wide ? "kInf<f64>" : "kInf<f32>");
    std::snprintf(text, sizeof text, "%a%s", value, wide ? "" : "f");
    return std::string("(") + text + ")";
  }
  int width = 8 * byte_size(dtype);
  uint64_t kept = width == 64 ? bits : bits & ((uint64_t(1) << width) - 1);
  std::snprintf(text, sizeof text, "%s(%lluu%s)", compute_type(dtype).c_str(),
                static_cast<unsigned long long>(kept), width == 64 ? "ll" : "");
  return text;
}

// The element as it lies in memory.
std::string stored_literal(DType dtype, uint64_t bits) {
  if (!is_narrow_float(dtype)) return literal(dtype, bits);
  return store_type(dtype) + "(" + std::to_string(bits) + ")";
}

} // namespace svod::codegen
