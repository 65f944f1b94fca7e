// What takes a byte to a byte, as a table of all 256 values.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/kernel/kernel.h"

#include <optional>

namespace svod {

struct ByteTable {
  ExprId source = 0;   // the byte it is made of
  Tensor values;       // 256 of them, by the bits of that byte
  bool costly = false; // computing it takes an exponential, a division or the like
};

// Of an expression of 8 bits; nothing where it is made of anything but constants and one
// other byte.
std::optional<ByteTable> byte_table(const Kernel& kernel, ExprId id);

} // namespace svod
