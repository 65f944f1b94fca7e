// Operators on complex numbers. Those that the standard lets take them move elements, or
// weigh them with real numbers and add: what they do to a complex tensor they do to its
// real and to its imaginary part, so no rule needs to know. Sequences and optionals of
// complex tensors have parts as well: those of their elements.
#include "importer/driver/graph_import.h"
#include "importer/formula/complex.h"
#include "importer/operators/onnx_ops.h"

#include <algorithm>

namespace svod::importer {

bool GraphImport::has_complex(NodeId value) const {
  if (!is_compound(value)) return false;
  const Compound& compound = import_.compounds[value];
  return compound.kind == Compound::Kind::Complex ||
         std::ranges::any_of(compound.items,
                             [&](NodeId item) { return has_complex(item); });
}

// Part 0 or 1 of a value; of one that is not complex, the value itself.
NodeId GraphImport::part(NodeId value, int64_t which) {
  if (!has_complex(value)) return value;
  Compound compound = import_.compounds[value];
  if (compound.kind != Compound::Kind::Complex) {
    for (NodeId& item : compound.items) item = part(item, which);
    if (const auto type = complex_part(compound.onnx_type))
      compound.onnx_type = info(*type).onnx;
    return import_.compounds.add(std::move(compound));
  }
  const Bounded* bounded = import_.frame.bounds.find(compound.items[0]);
  if (!bounded) return part_of_pairs({&g(), compound.items[0]}, which).id;
  Counts counts = bounded->counts;
  counts.pop_back();
  const Expr tensor = part_of_pairs({&g(), bounded->tensor}, which);
  return import_.frame.bounds.add(g(), tensor.id, counts);
}

// The value whose parts these are; kNoNode where they are none.
NodeId GraphImport::joined(NodeId real, NodeId imaginary) {
  if (is_compound(real) != is_compound(imaginary)) return kNoNode;
  if (!is_compound(real)) {
    const Bounded* bounded = import_.frame.bounds.find(real);
    const Bounded* other = import_.frame.bounds.find(imaginary);
    const Expr a{&g(), bounded ? bounded->tensor : real};
    const Expr b{&g(), other ? other->tensor : imaginary};
    if (!complex_of(a.dtype()) || a.dtype() != b.dtype() || a.shape() != b.shape())
      return kNoNode;
    Counts counts = bounded ? bounded->counts : Counts{};
    if (counts != (other ? other->counts : Counts{})) return kNoNode;
    if (bounded) counts.push_back(kNoNode);
    return complex_value(import_.compounds,
                         import_.frame.bounds.add(g(), pairs_of(a, b).id, counts));
  }
  Compound out = import_.compounds[real];
  const Compound& other = import_.compounds[imaginary];
  if (out.kind != other.kind || out.items.size() != other.items.size()) return kNoNode;
  for (size_t i = 0; i < out.items.size(); ++i) {
    out.items[i] = joined(out.items[i], other.items[i]);
    if (out.items[i] == kNoNode) return kNoNode;
  }
  if (const auto type = dtype_from_onnx(out.onnx_type))
    out.onnx_type = complex_of(*type).value_or(out.onnx_type);
  return import_.compounds.add(std::move(out));
}

// Which elements of a complex tensor are not zero.
NodeId GraphImport::truth(NodeId value) {
  if (!is_complex(import_.compounds, value)) return value;
  const NodeId pairs = inside(import_.compounds, value);
  const Bounded* bounded = import_.frame.bounds.find(pairs);
  const Expr x{&g(), bounded ? bounded->tensor : pairs};
  const auto nonzero = [&](int64_t which) {
    const Expr part = part_of_pairs(x, which);
    return apply(Op::Not, equal(part, 0));
  };
  const Expr some = either(nonzero(0), nonzero(1));
  if (!bounded) return some.id;
  Counts counts = bounded->counts;
  counts.pop_back();
  return import_.frame.bounds.add(g(), some.id, counts);
}

// Products and extremes of complex numbers are none of their parts'.
static bool is_linear(const ModelNode& node) {
  for (const ModelAttribute& attribute : node.attributes)
    if (attribute.name == "reduction")
      return attribute.s == "none" || attribute.s == "add";
  return true;
}

// Of an operator that has complex inputs.
Results GraphImport::import_complex(const NodeAt& at, const Results& inputs) {
  const ModelNode& node = at.node;
  const OnnxOp* row = find_onnx_op(node.domain, node.op_type);
  const ComplexHow how = row ? row->complex : ComplexHow::None;
  const auto run = [&](const auto& change) {
    Results changed;
    g().open_source(place_path(at.place));
    for (NodeId input : inputs)
      changed.push_back(input == kNoNode ? input : change(input));
    g().close_source();
    return import_operator(at, changed);
  };
  const auto part_run = [&](int64_t which) {
    return run([&](NodeId id) { return part(id, which); });
  };
  const auto refuse = [&](const std::string& what) {
    fail(Exit::Unsupported, what + " complex numbers are not supported", at.place);
    return Results{};
  };
  Results results;
  switch (how) {
  case ComplexHow::None:
    return refuse("its");
  case ComplexHow::Whole:
    return import_operator(at, inputs);
  case ComplexHow::First:
    return part_run(0);
  case ComplexHow::Truth:
    return run([&](NodeId id) { return truth(id); });
  case ComplexHow::Pairs:
    complex_pairs_ = true;
    results = run([&](NodeId id) { return inside(import_.compounds, id); });
    complex_pairs_ = false;
    if (!results.empty()) results[0] = complex_value(import_.compounds, results[0]);
    return results;
  case ComplexHow::Parts:
    break;
  }
  if (!is_linear(node)) return refuse("products and extremes of");
  results = part_run(0);
  if (results.empty()) return {};
  const Results imaginary = part_run(1);
  if (imaginary.size() != results.size()) return {};
  g().open_source(place_path(at.place));
  for (size_t i = 0; i < results.size(); ++i)
    if (results[i] != kNoNode) {
      results[i] = joined(results[i], imaginary[i]);
      SVOD_CHECK(results[i] != kNoNode) << "complex parts of " << node.op_type;
    }
  g().close_source();
  return results;
}

} // namespace svod::importer
