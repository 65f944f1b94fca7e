// The rows are generated in the order of domain, name and version, so they are searched
// by halves.
#include "importer/signature.h"

#include <algorithm>
#include <tuple>

namespace svod {

// From the generated onnx_package.cpp.
extern const FormalInput kFormalInputs[];
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

FormalInput formal_input(const Signature& signature, int64_t i) {
  const int64_t last = signature.formal_count - 1;
  FormalInput formal = kFormalInputs[signature.formal_offset + std::min(i, last)];
  // Each input of a mixed list has a type variable of its own.
  if (signature.mixed_last && i >= last)
    formal.variable = static_cast<int>(signature.formal_count + i);
  return formal;
}

} // namespace svod
