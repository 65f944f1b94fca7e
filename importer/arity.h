// How many inputs and outputs a standard operator takes, from the schemas of the pinned
// `onnx` package: an input that no rule reads is an error, never ignored.
#pragma once

#include <cstdint>
#include <string_view>

namespace svod {

struct Arity {
  std::string_view domain, name;
  int64_t first, last; // versions of the domain
  int64_t least_inputs, most_inputs, most_outputs;
};

// Null for an operator that the package does not know.
const Arity* find_arity(std::string_view domain, std::string_view name, int64_t opset);

} // namespace svod
