// What a standard operator takes, from the schemas of the pinned `onnx` package: how many
// inputs and outputs, and of which element types. Checked before a rule runs, so that no
// rule meets an input it does not read or types that do not go together.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace svod {

struct FormalInput {
  int variable;   // inputs of one type variable have one element type; counted from 0
  uint32_t types; // bit n: TensorProto.DataType n is allowed
};

struct Signature {
  std::string_view domain, name;
  int64_t first, last; // versions of the domain
  int64_t least_inputs, most_inputs, most_outputs;
  int64_t formal_offset, formal_count; // in kFormalInputs
  bool repeats_last;                   // the last formal input stands for any number
  bool mixed_last;                     // which may differ in type
};

// All of them, by domain, name and version.
std::span<const Signature> signatures();

// Null for an operator that the package does not know. For a version before its first
// one, in which exporters used it as an experiment, the first one's.
const Signature* find_signature(std::string_view domain, std::string_view name,
                                int64_t opset);

// The formal input of actual input `i`.
FormalInput formal_input(const Signature& signature, int64_t i);

} // namespace svod
