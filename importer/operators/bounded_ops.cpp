#include "importer/operators/bounded_ops.h"

#include "importer/bounded/bounded_rules.h"

namespace svod::importer {

namespace {

struct BoundedOp {
  std::string_view domain, name;
  BoundedRule rule;
};

constexpr BoundedOp kBoundedOps[] = {
#define BOUNDED_OP(domain, name, rule) {domain, #name, rule},
#include "importer/operators/bounded_ops.def"
};

} // namespace

BoundedRule find_bounded_rule(std::string_view domain, std::string_view name) {
  for (const BoundedOp& op : kBoundedOps)
    if (op.domain == domain && op.name == name) return op.rule;
  return nullptr;
}

} // namespace svod::importer
