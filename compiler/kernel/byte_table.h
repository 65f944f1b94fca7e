// What takes a byte to a byte, as a table of all 256 values.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/kernel/kernel.h"

#include <optional>

namespace svod {

struct ByteTable {
  ExprId source = 0; // the byte it is made of
  Tensor values;     // 256 of them, by the bits of that byte
};

// Of an expression of 8 bits; nothing where it is made of anything but constants and one
// other byte. Of several such bytes, one made of the other, it is the first one: a
// quantised network rounds a GELU's parts to bytes that all are made of the GELU's input.
std::optional<ByteTable> byte_table(const Kernel& kernel, ExprId id);

// The expressions with a table that take an exponential, a division or the like without.
std::vector<ExprId> costly_byte_tables(const Kernel& kernel);

} // namespace svod
