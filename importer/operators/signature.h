// What a standard operator takes and gives, from the schemas of the pinned `onnx`
// package: how many inputs and outputs, of which element types, and which attributes.
// Checked around a rule, so that no rule meets an input it does not read or types that do
// not go together, and none gives a type that the operator does not have.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace svod::importer {

// A type variable of this value alone.
inline constexpr int kOwnVariable = -1;

struct FormalValue {
  int variable;   // inputs and outputs of one type variable have one element type
  uint32_t types; // bit n: TensorProto.DataType n is allowed
};

// Formal inputs or outputs.
struct FormalList {
  int64_t offset, count; // in kFormalValues
  bool mixed_last;       // the last one stands for any number, which may differ in type
};

struct FormalAttribute {
  std::string_view name;
  int type; // AttributeProto.AttributeType
  bool required;
};

struct Signature {
  std::string_view domain, name;
  int64_t first, last; // versions of the domain
  int64_t least_inputs, most_inputs, most_outputs;
  FormalList inputs, outputs;
  int64_t attribute_offset, attribute_count; // in kFormalAttributes
};

// All of them, by domain, name and version.
std::span<const Signature> signatures();

// Null for an operator that the package does not know. For a version before its first
// one, in which exporters used it as an experiment, the first one's.
const Signature* find_signature(std::string_view domain, std::string_view name,
                                int64_t opset);

// The formal value of actual input or output `i`.
FormalValue formal_value(const FormalList& list, int64_t i);

std::span<const FormalAttribute> formal_attributes(const Signature& signature);

} // namespace svod::importer
