// The rows are generated in the order of domain, name and version, so they are searched
// by halves.
#include "importer/arity.h"

#include <algorithm>
#include <tuple>

namespace svod {

// From the generated onnx_package.cpp.
extern const Arity kArities[];
extern const size_t kArityCount;

const Arity* find_arity(std::string_view domain, std::string_view name, int64_t opset) {
  const auto key = std::make_tuple(domain, name, opset);
  const Arity* end = kArities + kArityCount;
  const Arity* row = std::partition_point(kArities, end, [&](const Arity& at) {
    return std::make_tuple(at.domain, at.name, at.last) < key;
  });
  const bool found = row != end && row->domain == domain && row->name == name;
  return found && row->first <= opset ? row : nullptr;
}

} // namespace svod
