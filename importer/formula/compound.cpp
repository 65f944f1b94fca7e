// Choosing between compound values at run time is choosing between their tensors, one by
// one. An optional that is there in one case only keeps the condition beside its element.
#include "importer/formula/compound.h"

#include "compiler/ir/build.h"
#include "compiler/support/check.h"

#include <algorithm>

namespace svod::importer {

const char* kind_text(const Compound& value) {
  switch (value.kind) {
  case Compound::Kind::Sequence:
    return "a sequence";
  case Compound::Kind::Optional:
    return "an optional";
  case Compound::Kind::Complex:
    return "a complex tensor";
  case Compound::Kind::Map:
    return "a map";
  case Compound::Kind::Maps:
    return "a sequence of maps";
  }
  __builtin_unreachable();
}

NodeId CompoundTable::add(Compound value) {
  SVOD_CHECK(values_.size() < kFirstCompound - 2) << "too many sequences";
  items_ += static_cast<int64_t>(value.items.size() + value.keys.size()) + 1;
  values_.push_back(std::move(value));
  return kFirstCompound + static_cast<NodeId>(values_.size() - 1);
}

namespace {

// `x`, unless `chosen` is false at run time: then the run stops at an index out of range.
NodeId guarded_tensor(Graph& g, NodeId x, NodeId chosen) {
  const Shape shape = g[x].shape;
  const int64_t count = element_count(shape);
  if (count == 0) return x;
  // Row 0 of one row, or row 1, which is not there: one check for all elements.
  const NodeId row = cast(g, map(g, Op::Not, {reshape(g, chosen, {1, 1})}), DType::I64);
  const NodeId index = expand(g, row, {1, count});
  return reshape(g, gather(g, reshape(g, x, {1, count}), index, 0), shape);
}

// When the optional has its element, as a node of the graph.
NodeId presence(Graph& g, const Compound& optional) {
  if (optional.present != kNoNode) return optional.present;
  return constant_int(g, DType::Bool, {}, optional.items.empty() ? 0 : 1);
}

} // namespace

NodeId CompoundTable::guarded(Graph& g, NodeId value, NodeId chosen) {
  if (std::ranges::find(assumed_, chosen) != assumed_.end()) return value;
  if (!is_compound(value)) return guarded_tensor(g, value, chosen);
  Compound copy = (*this)[value];
  for (NodeId& item : copy.items) item = guarded(g, item, chosen);
  return add(std::move(copy));
}

// Exporters give a number in one branch and a list of one in the other; as the list, both
// can be read as either.
static std::optional<Shape> shape_of_either(const Shape& a, const Shape& b) {
  if (a == b) return a;
  if (element_count(a) != 1 || element_count(b) != 1) return std::nullopt;
  return a.size() > b.size() ? a : b;
}

NodeId CompoundTable::select(Graph& g, NodeId condition, NodeId yes, NodeId no) {
  if (yes == no) return yes;
  if (is_compound(yes) != is_compound(no)) return kNoNode;
  if (is_compound(yes)) {
    const Compound &a = (*this)[yes], &b = (*this)[no];
    if (a.kind != b.kind || a.keys != b.keys) return kNoNode;
    return a.kind == Compound::Kind::Optional ? select_optional(g, condition, a, b)
                                              : select_items(g, condition, a, b);
  }
  if (g[yes].dtype != g[no].dtype) return kNoNode;
  const auto shape = shape_of_either(g[yes].shape, g[no].shape);
  if (!shape) return kNoNode;
  const NodeId wide = broadcast_to(g, reshape(g, condition, {}), *shape);
  return map(g, Op::Select, {wide, reshape(g, yes, *shape), reshape(g, no, *shape)});
}

NodeId CompoundTable::select_items(Graph& g, NodeId condition, const Compound& yes,
                                   const Compound& no) {
  if (yes.items.size() != no.items.size()) return kNoNode;
  Compound out = yes;
  for (size_t i = 0; i < out.items.size(); ++i) {
    out.items[i] = select(g, condition, yes.items[i], no.items[i]);
    if (out.items[i] == kNoNode) return kNoNode;
  }
  return add(std::move(out));
}

NodeId CompoundTable::select_optional(Graph& g, NodeId condition, const Compound& yes,
                                      const Compound& no) {
  Compound out = yes.items.empty() ? no : yes;
  if (out.items.empty()) return add(std::move(out));
  if (!yes.items.empty() && !no.items.empty()) {
    out.items[0] = select(g, condition, yes.items[0], no.items[0]);
    if (out.items[0] == kNoNode) return kNoNode;
  }
  if (yes.items.empty() || no.items.empty() || yes.present != no.present)
    out.present = map(g, Op::Select,
                      {reshape(g, condition, {}), presence(g, yes), presence(g, no)});
  return add(std::move(out));
}

} // namespace svod::importer
