// Lookups over the rows of ops.def.
#include "compiler/ir/graph.h"

namespace svod {

static constexpr OpInfo kOps[] = {
#define OP(name, text, class, arity, shape, payload)                                     \
  {#name, text, OpClass::class, arity, payload, ""},
#define MAP(name, text, arity, result, cell)                                             \
  {#name, text, OpClass::Map, arity, "", #cell},
#include "compiler/ir/ops.def"
};

const OpInfo& info(Op op) { return kOps[static_cast<int>(op)]; }
size_t op_count() { return std::size(kOps); }

std::optional<Op> op_from_text(std::string_view text) {
  for (size_t i = 0; i < std::size(kOps); ++i)
    if (kOps[i].text == text) return static_cast<Op>(i);
  return std::nullopt;
}

} // namespace svod
