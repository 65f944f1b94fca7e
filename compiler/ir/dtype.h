// Element types of tensors, from dtypes.def.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace svod {

enum class DType : uint8_t {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec) name,
#include "compiler/ir/dtypes.def"
};

inline constexpr int kDTypes = 0
#define DTYPE(...) +1
#include "compiler/ir/dtypes.def"
    ;

enum class DTypeKind : uint8_t { Bool, Int, Uint, Float, Handle };

struct DTypeInfo {
  DType dtype;
  std::string_view text;
  int bytes; // of a stored element
  int bits;  // of an element as callers and files have it
  int onnx;  // TensorProto.DataType
  DTypeKind kind;
  std::string_view store_type, compute_type;
  std::string_view codec; // "none" unless computed in float
};

const DTypeInfo& info(DType dtype);
std::optional<DType> dtype_from_text(std::string_view text);
std::optional<DType> dtype_from_onnx(int code);
// A complex number is the caller's only: two numbers of this type, along a last axis that
// the caller does not see. None for any other element type.
std::optional<DType> complex_part(int onnx_type);
// The complex type whose parts are of this type.
std::optional<int> complex_of(DType part);
// Element types of interfaces: those of dtypes.def, "c64" and "c128"; any other is "onnx"
// and its number.
std::string onnx_type_text(int code);
std::optional<int> onnx_type_from_text(std::string_view text);

inline int byte_size(DType dtype) { return info(dtype).bytes; }
inline bool is_float(DType dtype) { return info(dtype).kind == DTypeKind::Float; }
// A float that is computed in float and rounded to its own type.
inline bool is_narrow_float(DType dtype) { return info(dtype).codec != "none"; }
// Two, four or eight elements of it share a byte of the caller's.
inline bool is_packed(DType dtype) { return info(dtype).bits < 8; }
inline bool is_integer(DType dtype) {
  return info(dtype).kind == DTypeKind::Int || info(dtype).kind == DTypeKind::Uint;
}

// A float of 16 bits, which tensor cores multiply.
inline bool is_half(DType dtype) { return dtype == DType::F16 || dtype == DType::BF16; }

// An integer of eight bits that is stored as itself: what products of bytes multiply.
inline bool is_byte(DType dtype) { return dtype == DType::U8 || dtype == DType::I8; }

// Calls `f` with a value-initialised element of the dtype's compute type.
template <class F> decltype(auto) with_compute_type(DType dtype, F&& f) {
  switch (dtype) {
#define DTYPE(name, text, bytes, bits, onnx, kind, store, compute, codec)                \
  case DType::name:                                                                      \
    return f(compute{});
#include "compiler/ir/dtypes.def"
  }
  __builtin_unreachable();
}

} // namespace svod
