// A model out of decisions: its nodes are of the table of operators, with attributes and
// inputs of the kinds that these take, more often right than not.
#pragma once

#include "tests/fuzz/target.h"

namespace svod::fuzz {

// The bytes of an ONNX file.
std::string draw_model(Bytes bytes);

} // namespace svod::fuzz
