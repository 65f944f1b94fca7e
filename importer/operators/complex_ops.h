// Operators that may be given complex numbers: the rows of complex_ops.def.
#pragma once

#include <cstdint>
#include <string_view>

namespace svod::importer {

// What the import does with an operator that is given complex numbers: the column `how`
// of complex_ops.def.
enum class ComplexHow : uint8_t { None, Parts, First, Truth, Whole, Pairs };
ComplexHow complex_how(std::string_view domain, std::string_view name);

} // namespace svod::importer
