// What a node may have, before its rule runs and after: as many inputs as its operator
// takes, of types that go together; attributes that somebody reads; strings only where
// the rule knows of them; results within the limits.
#include "importer/driver/check_node.h"

#include "importer/formula/complex.h"
#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"

#include <algorithm>
#include <cmath>

namespace svod::importer {

namespace {

std::string type_text(const Node& node) {
  std::string text(info(node.dtype).text);
  text += '[';
  for (size_t i = 0; i < node.shape.size(); ++i)
    text += (i ? "," : "") + std::to_string(node.shape[i]);
  return text + "]";
}

// Attributes whose value enters every element of a result. NaN or infinity there is a
// fault of the model; elsewhere, as in a constant or a clipping bound, it has a meaning.
bool must_be_finite(std::string_view attribute) {
  static constexpr std::string_view kNames[] = {"alpha",    "beta",  "epsilon",
                                                "gamma",    "lambd", "ratio",
                                                "momentum", "scale", "scales"};
  return std::ranges::find(kNames, attribute) != std::end(kNames);
}

bool is_finite(const ModelAttribute& attribute) {
  if (attribute.type == AttributeType::Float) return std::isfinite(attribute.f);
  return std::ranges::all_of(attribute.floats, [](float f) { return std::isfinite(f); });
}

// The number of elements, or nothing when it is over `limit`.
std::optional<int64_t> elements_within(const Shape& shape, int64_t limit) {
  int64_t elements = 1;
  for (int64_t extent : shape)
    if (extent < 0 || __builtin_mul_overflow(elements, extent, &elements) ||
        elements > limit)
      return std::nullopt;
  return elements;
}

bool takes(const FormalValue& formal, int onnx_type) {
  return (formal.types >> onnx_type & 1) != 0;
}

using TypeOf = std::map<int, int>; // per type variable of a signature

// The type that the value's variable has: `onnx_type` when it had none.
int bind(TypeOf& types, const FormalValue& formal, int onnx_type) {
  if (formal.variable == kOwnVariable) return onnx_type;
  return types.emplace(formal.variable, onnx_type).first->second;
}

} // namespace

void NodeCheck::note_inputs(const ModelNode& node, const std::vector<NodeId>& inputs,
                            const ModelPlace& place) {
  std::string text;
  for (size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kNoNode)
      text += (text.empty() ? "" : ", ") +
              (is_compound(inputs[i]) ? kind_text(import_.compounds[inputs[i]])
                                      : type_text(g()[inputs[i]])) +
              " " + quoted(node.inputs[i]);
  if (!text.empty() && import_.more_errors == 0)
    import_.diags.note("its inputs are " + text, place);
}

// Whether counts and element types fit the operator's schema. `inputs` has no left-out
// ones at its end.
bool NodeCheck::check_signature(const ModelNode& node, const std::vector<NodeId>& inputs,
                                int64_t opset, const ModelPlace& place) {
  const Signature* signature = find_signature(node.domain, node.op_type, opset);
  if (!signature) return true;
  const auto invalid = [&](const std::string& what) {
    fail(Exit::InvalidModel, what, place);
    note_inputs(node, inputs, place);
    return false;
  };
  const auto count = static_cast<int64_t>(inputs.size());
  if (count < signature->least_inputs || count > signature->most_inputs)
    return invalid("it has " + std::to_string(count) + " inputs, the operator takes " +
                   std::to_string(signature->least_inputs) + " to " +
                   std::to_string(signature->most_inputs));
  if (static_cast<int64_t>(node.outputs.size()) > signature->most_outputs)
    return invalid("it has more outputs than the operator");
  // Before its first version an operator was an experiment, and took what it took.
  if (signature->first > opset) return true;
  for (const FormalAttribute& attribute : formal_attributes(*signature))
    if (attribute.required &&
        std::ranges::find(node.attributes, attribute.name, &ModelAttribute::name) ==
            node.attributes.end())
      return invalid("attribute " + quoted(attribute.name) +
                     " is missing, and the operator needs it");
  TypeOf bound;
  for (int64_t i = 0; i < count; ++i) {
    const NodeId id = inputs[static_cast<size_t>(i)];
    const FormalValue formal = formal_value(signature->inputs, i);
    const std::string name = "input " + std::to_string(i);
    // Rules say what kinds they take, and ask for what they read: exporters leave out
    // inputs that the mode makes meaningless (the roi of Resize) and the schema requires.
    if (id == kNoNode || is_compound(inside(import_.compounds, id))) continue;
    const int type = onnx_type_of(id);
    if (!takes(formal, type))
      return invalid(name + " is " + onnx_type_text(type) +
                     ", which the operator does not take in opset " +
                     std::to_string(opset));
    if (const int other = bind(bound, formal, type); other != type)
      return invalid(name + " is " + onnx_type_text(type) + ", an input before it is " +
                     onnx_type_text(other) + ", and the operator wants one type");
  }
  return true;
}

// What a rule gives has a type of the operator's schema: the type of its inputs where
// those share a variable, which only a fault of the rule breaks, and else one of the
// list, which a model can miss by asking for a type that came later.
bool NodeCheck::check_result_types(const NodeImport& rule, const ModelPlace& place) {
  const ModelNode& node = rule.model_node;
  const Signature* signature = find_signature(node.domain, node.op_type, rule.opset);
  if (!signature || signature->first > rule.opset) return true;
  const auto tensor = [&](NodeId id) { return id != kNoNode && !is_compound(id); };
  TypeOf bound;
  for (size_t i = 0; i < rule.input_count(); ++i)
    if (rule.has_input(i) && tensor(rule.value(i)))
      bind(bound, formal_value(signature->inputs, static_cast<int64_t>(i)),
           onnx_type_of(rule.value(i)));
  for (size_t i = 0; i < std::min(rule.results().size(), node.outputs.size()); ++i) {
    const NodeId id = rule.results()[i];
    if (node.outputs[i].empty() || !tensor(id)) continue;
    const FormalValue formal = formal_value(signature->outputs, static_cast<int64_t>(i));
    const int type = onnx_type_of(id);
    SVOD_CHECK(bind(bound, formal, type) == type)
        << full_op_name(node) << " gives " << onnx_type_text(type) << " as output " << i;
    if (takes(formal, type)) continue;
    // ONNX Runtime loads constants of types that only later versions allow, as strings.
    const Signature* newest = find_signature(node.domain, node.op_type, kNewestOpset);
    if (node.inputs.empty() && newest &&
        takes(formal_value(newest->outputs, static_cast<int64_t>(i)), type))
      continue;
    fail(Exit::InvalidModel,
         "its output " + std::to_string(i) + " is " + onnx_type_text(type) +
             ", which the operator does not give in opset " + std::to_string(rule.opset),
         place);
    return false;
  }
  return true;
}

bool NodeCheck::check_attributes(const ModelNode& node,
                                 std::span<const NodeImport::AttributeRow> rows,
                                 const ModelPlace& place) {
  bool good = true;
  for (const ModelAttribute& attribute : node.attributes) {
    const auto row =
        std::ranges::find(rows, attribute.name, &NodeImport::AttributeRow::name);
    if (row == rows.end() && takes_any_attribute(rows)) {
      import_.diags.warning(
          "attribute " + quoted(attribute.name) +
              " is none of the operator's; it is ignored, as the operator's "
              "schema has it",
          place);
      continue;
    }
    good = false;
    if (row == rows.end())
      fail(Exit::Unsupported,
           "attribute " + quoted(attribute.name) + " is not known for this operator",
           place);
    else if (row->type != attribute.type)
      fail(Exit::InvalidModel,
           "attribute " + quoted(attribute.name) + " has the wrong type", place);
    else if (must_be_finite(attribute.name) && !is_finite(attribute))
      fail(Exit::InvalidModel, "attribute " + quoted(attribute.name) + " is not finite",
           place);
    else
      good = true;
    if (!good) break;
  }
  return good;
}

// What a rule made must be within the limits, and what folding made within its budget.
bool NodeCheck::check_results(const NodeImport& rule, NodeId first_new, size_t first_blob,
                              const ModelPlace& place) {
  const ModelNode& node = rule.model_node;
  const auto over = [&](const char* what) {
    fail(Exit::InvalidModel, std::string(what) + " is over the limit", place);
    return false;
  };
  for (size_t i = 0; i < node.outputs.size(); ++i) {
    if (node.outputs[i].empty()) continue;
    const NodeId id = i < rule.results().size() ? rule.results()[i] : kNoNode;
    if (id == kNoNode) {
      fail(Exit::Unsupported, "its output " + std::to_string(i) + " is not supported",
           place);
      return false;
    }
    if (is_compound(id)) continue;
    const Shape& shape = g()[id].shape;
    if (!elements_within(shape, import_.limits.elements) ||
        static_cast<int64_t>(shape.size()) > import_.limits.rank)
      return over("the shape of its result");
  }
  if (!check_result_types(rule, place)) return false;
  constexpr int64_t kMostElements = int64_t{1} << 58;
  for (NodeId id = first_new; id < g().size(); ++id) {
    const std::optional<int64_t> elements = elements_within(g()[id].shape, kMostElements);
    if (!elements) return over("the work of this node");
    // A reshaped weight has the blob it had.
    if (g()[id].op == Op::Weight && node.op_type != "Constant" &&
        static_cast<size_t>(g()[id].payload[0]) >= first_blob)
      folded_bytes_ += *elements * byte_size(g()[id].dtype);
  }
  if (folded_bytes_ > import_.limits.folded_bytes)
    return over("the memory for values computed when packing");
  return true;
}

} // namespace svod::importer
