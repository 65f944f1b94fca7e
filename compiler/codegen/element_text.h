// Elements of each type in the text of kernels.
#pragma once

#include "compiler/ir/dtype.h"

#include <string>

namespace svod::codegen {

// What an element is in memory and while it is computed with.
std::string store_type(DType dtype);
std::string compute_type(DType dtype);
// A value of the compute type rounded to the dtype, and a stored element in the compute
// type and back.
std::string rounded(DType dtype, const std::string& value);
std::string from_store(DType dtype, const std::string& value);
std::string to_store(DType dtype, const std::string& value);
// A constant in the compute type, and as it lies in memory.
std::string literal(DType dtype, uint64_t bits);
std::string stored_literal(DType dtype, uint64_t bits);

} // namespace svod::codegen
