// The small pieces of the text form: types, single values, quoted names. Each reads back
// what it writes.
#pragma once

#include "compiler/ir/graph.h"

namespace svod {

// f32[1,64,56,56]; a scalar is f32[].
std::string type_text(DType dtype, const Shape& shape);

// The shortest decimal that reads back to the same bits; inf, -inf, nan; the bits in hex
// for any other NaN.
std::string scalar_text(DType dtype, uint64_t bits);
std::optional<uint64_t> scalar_from_text(DType dtype, std::string_view text);

std::optional<int64_t> int_from_text(std::string_view text);

// In double quotes, everything but printable ASCII as \xNN.
std::string name_text(std::string_view name);
// `text` includes the quotes.
std::optional<std::string> name_from_text(std::string_view text);

// One entry of a payload legend of ops.def: "axis", "low[R]", "axes...".
struct PayloadField {
  enum class Kind { One, PerAxis, Rest } kind;
  std::string_view name;
};
std::vector<PayloadField> payload_fields(Op op);

} // namespace svod
