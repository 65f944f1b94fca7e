#include "importer/operators/complex_ops.h"

namespace svod::importer {

namespace {

struct ComplexRow {
  std::string_view domain, name;
  ComplexHow how;
};

constexpr ComplexRow kComplexRows[] = {
#define COMPLEX_OP(domain, name, how) {domain, #name, ComplexHow::how},
#include "importer/operators/complex_ops.def"
};

} // namespace

ComplexHow complex_how(std::string_view domain, std::string_view name) {
  for (const ComplexRow& row : kComplexRows)
    if (row.domain == domain && row.name == name) return row.how;
  return ComplexHow::None;
}

} // namespace svod::importer
