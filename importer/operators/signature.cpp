// The rows are generated in the order of domain, name and version, so they are searched
// by halves.
#include "importer/operators/signature.h"

#include <algorithm>
#include <tuple>

namespace svod::importer {

// From the generated onnx_package.cpp.
extern const FormalValue kFormalValues[];
extern const FormalAttribute kFormalAttributes[];
extern const Signature kSignatures[];
extern const size_t kSignatureCount;

std::span<const Signature> signatures() { return {kSignatures, kSignatureCount}; }

const Signature* find_signature(std::string_view domain, std::string_view name,
                                int64_t opset) {
  const auto key = std::make_tuple(domain, name, opset);
  const Signature* end = kSignatures + kSignatureCount;
  const Signature* row = std::partition_point(kSignatures, end, [&](const Signature& at) {
    return std::make_tuple(at.domain, at.name, at.last) < key;
  });
  return row != end && row->domain == domain && row->name == name ? row : nullptr;
}

FormalValue formal_value(const FormalList& list, int64_t i) {
  const int64_t last = list.count - 1;
  FormalValue formal = kFormalValues[list.offset + std::min(i, last)];
  if (list.mixed_last && i >= last) formal.variable = kOwnVariable;
  return formal;
}

std::span<const FormalAttribute> formal_attributes(const Signature& signature) {
  return {kFormalAttributes + signature.attribute_offset,
          static_cast<size_t>(signature.attribute_count)};
}

} // namespace svod::importer
