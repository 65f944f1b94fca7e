// The model's inputs become inputs of the graph, each element of a sequence one of its
// own, and the model's outputs outputs; the interface keeps what belongs together.
#include "importer/driver/ports.h"

#include "importer/formula/complex.h"
#include "importer/formula/packing.h"

#include <algorithm>

namespace svod::importer {

namespace {

// As many as the packed program binds.
constexpr size_t kMostTensors = 1024;

// The value that names inside the model stand for, from the graph's inputs.
NodeId value_of(const InputValue& input, std::vector<NodeId> items,
                CompoundTable& compounds) {
  NodeId value = kNoNode;
  switch (input.port.kind) {
  case ModelPort::Kind::Tensor:
    if (!items.empty()) value = items[0];
    break;
  case ModelPort::Kind::Sequence:
    value =
        compounds.add({Compound::Kind::Sequence, std::move(items), input.port.onnx_type});
    break;
  case ModelPort::Kind::Map:
  case ModelPort::Kind::Maps:
    value = compounds.add({Compound::Kind::Map, std::move(items), input.port.onnx_type,
                           kNoNode, input.port.keys});
    break;
  }
  if (!input.port.optional) return value;
  Compound optional{Compound::Kind::Optional};
  if (input.port.present) optional.items = {value};
  return compounds.add(std::move(optional));
}

} // namespace

// A tensor of the caller's; kPoisoned when its type is not supported.
NodeId PortImport::add_input(const ModelValue& tensor, const Shape& shape) {
  if (pictures_.contains(tensor.name))
    return g().add_input(tensor.name, DType::U8, {picture_bound().file_bytes()});
  if (const auto part = complex_part(tensor.onnx_type))
    return add_complex_input(tensor, shape, *part);
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  if (!dtype) {
    import_.diags.error(Exit::Unsupported, "input " + quoted(tensor.name) +
                                               " has element type " +
                                               onnx_type_name(tensor.onnx_type) +
                                               ", which is not supported");
    return kPoisoned;
  }
  if (dtype == DType::String) return add_string_input(tensor.name, shape);
  const NodeId input = add_tensor_input(g(), tensor.name, *dtype, shape);
  if (!import_.fix.contains(tensor.name)) return input;
  std::optional<std::vector<std::byte>> bytes = fixed_value(tensor.name, *dtype, shape);
  if (!bytes) return input;
  import_.interface.fixed[tensor.name] = *bytes;
  return weight(g(), *dtype, shape, g().add_blob(std::move(*bytes)));
}

void PortImport::add_input_values(const InputShapes& shapes, Scope& scope, bool states) {
  for (const InputValue& input : shapes.values)
    if (input_states_.contains(input.port.name) == states)
      add_input_value(input, shapes, scope);
}

// States are not the caller's: they come last.
bool PortImport::add_inputs(const InputShapes& shapes, Scope& scope) {
  find_states();
  if (!find_growing(shapes)) return false;
  find_pictures(shapes);
  add_input_values(shapes, scope, false);
  add_input_extents(shapes, scope);
  add_input_values(shapes, scope, true);
  add_counters();
  return true;
}

void PortImport::add_input_value(const InputValue& input, const InputShapes& shapes,
                                 Scope& scope) {
  ModelPort port = input.port;
  port.first = static_cast<uint32_t>(g().inputs().size());
  if (pictures_.contains(port.name)) port.onnx_type = info(DType::U8).onnx;
  std::vector<NodeId> items;
  bool good = true;
  for (const ModelValue& tensor : input.tensors) {
    Shape shape = shapes.inputs.at(tensor.name);
    const auto growing = growing_.find(tensor.name);
    if (growing != growing_.end())
      shape[static_cast<size_t>(growing->second.axis)] = growing->second.room;
    items.push_back(add_input(tensor, shape));
    good = good && items.back() != kPoisoned;
    if (growing != growing_.end()) growing->second.all = items.back();
  }
  scope.values[input.declared->name] =
      good ? value_of(input, std::move(items), import_.compounds) : kPoisoned;
  import_.interface.inputs.push_back(std::move(port));
}

// The caller has complex numbers, the node their parts.
NodeId PortImport::add_complex_input(const ModelValue& tensor, const Shape& shape,
                                     DType part) {
  Shape pairs = shape;
  pairs.push_back(2);
  const NodeId input =
      g().add_input(tensor.name, part, pairs, Interface{tensor.onnx_type, shape});
  return complex_value(import_.compounds, input);
}

// The caller of the program sees strings, the node has their bytes.
NodeId PortImport::add_string_input(const std::string& name, const Shape& shape) {
  Shape bytes = shape;
  bytes.push_back(import_.options.string_bytes);
  const NodeId input =
      g().add_input(name, DType::U8, bytes, Interface{info(DType::String).onnx, shape});
  const int64_t count = element_count(shape);
  if (count == 0) return import_.frame.strings.tensor(g(), shape, {});
  const NodeId rows = reshape(g(), input, {count, import_.options.string_bytes});
  return reshape(g(), import_.frame.strings.add_rows(g(), rows), shape);
}

void PortImport::add_output(const std::string& name, NodeId id) {
  const bool complex = is_complex(import_.compounds, id);
  const int onnx_type = onnx_type_of(id);
  id = inside(import_.compounds, id);
  if (growing_outputs_.contains(name)) id = rows_of_state(name, id);
  const Bounded* bounded = import_.frame.bounds.find(id);
  if (bounded) sized_outputs_.emplace_back(g().outputs().size(), id);
  if (bounded) id = bounded->tensor;
  if (complex) {
    Shape shape = g()[id].shape;
    shape.pop_back();
    return g().add_output(name, id, Interface{onnx_type, std::move(shape)});
  }
  if (g()[id].dtype != DType::String) return add_tensor_output(g(), name, id);
  std::string failure;
  const NodeId rows = import_.frame.strings.rows_of(g(), id, failure);
  if (rows == kNoNode)
    return fail(Exit::Unsupported, "output " + quoted(name) + " holds " + failure, {});
  const Shape shape = g()[id].shape;
  Shape bytes = shape;
  bytes.push_back(g()[rows].shape[1]);
  g().add_output(name, reshape(g(), rows, bytes),
                 Interface{info(DType::String).onnx, shape});
}

// The sizes of outputs that depend on data become outputs as well, behind all others.
void PortImport::add_extents() {
  for (const auto& [output, id] : sized_outputs_) {
    const Bounded& bounded = *import_.frame.bounds.find(id);
    const Shape& shape = g().outputs()[output].seen.shape;
    std::vector<NodeId> sizes;
    for (size_t axis = 0; axis < shape.size(); ++axis) {
      const NodeId count = bounded.counts[axis];
      sizes.push_back(count != kNoNode ? reshape(g(), count, {1})
                                       : constant_int(g(), DType::I64, {1}, shape[axis]));
    }
    import_.interface.extents[output] = g().outputs().size();
    g().set_output_extents(output, g().outputs().size());
    g().add_output(g().outputs()[output].name + ".shape", concat(g(), sizes, 0));
  }
}

// False when it is nested deeper than a port can say.
bool PortImport::add_elements(ModelPort& port, const Compound& value) {
  using Kind = Compound::Kind;
  if (value.kind == Kind::Optional) {
    if (port.optional) return false;
    port.optional = true;
    port.present = !value.items.empty();
    port.count = 0;
    if (value.items.empty()) return true;
    if (is_compound(inside(import_.compounds, value.items[0])))
      return add_elements(port, import_.compounds[value.items[0]]);
    port.count = 1;
    port.onnx_type = onnx_type_of(value.items[0]);
    add_output(port.name, value.items[0]);
    return true;
  }
  for (NodeId item : value.items)
    if (is_compound(inside(import_.compounds, item))) return false;
  const bool sequence = value.kind == Kind::Sequence;
  port.kind = sequence                  ? ModelPort::Kind::Sequence
              : value.kind == Kind::Map ? ModelPort::Kind::Map
                                        : ModelPort::Kind::Maps;
  port.count = static_cast<uint32_t>(value.items.size());
  port.keys = value.keys;
  port.onnx_type = value.items.empty() ? value.onnx_type : onnx_type_of(value.items[0]);
  for (size_t i = 0; i < value.items.size(); ++i)
    add_output(sequence ? element_name(port.name, i) : port.name, value.items[i]);
  return true;
}

void PortImport::add_output_value(const ModelValue& declared, NodeId id,
                                  std::vector<std::pair<size_t, NodeId>>& presences) {
  const std::string& name = declared.name;
  if (id == kPoisoned) return;
  ModelPort port;
  port.name = name;
  port.first = static_cast<uint32_t>(g().outputs().size());
  if (!is_compound(inside(import_.compounds, id))) {
    port.onnx_type = onnx_type_of(id);
    if (declared.onnx_type != 0 && declared.onnx_type != port.onnx_type)
      import_.diags.warning("output " + quoted(name) + " is declared " +
                            onnx_type_name(declared.onnx_type) + "; the model makes it " +
                            onnx_type_name(port.onnx_type) + ", and so does the program");
    add_output(name, id);
  } else if (!add_elements(port, import_.compounds[id])) {
    import_.diags.error(Exit::Unsupported,
                        "output " + quoted(name) + " is " +
                            kind_text(import_.compounds[id]) +
                            " of a type that is not supported: tensors, sequences of "
                            "tensors, optionals of both, and maps are");
  }
  if (is_compound(id) && import_.compounds[id].present != kNoNode)
    presences.emplace_back(import_.interface.outputs.size(),
                           import_.compounds[id].present);
  import_.interface.outputs.push_back(std::move(port));
}

// What the model gives comes first, then what says whether optionals are there and the
// extents of a run, then its states.
void PortImport::add_outputs(const std::function<NodeId(const std::string&)>& value_of) {
  std::vector<std::pair<size_t, NodeId>> presences;
  for (const ModelValue& output : import_.model.graph.outputs)
    if (!output_states_.contains(output.name))
      add_output_value(output, value_of(output.name), presences);
  for (const auto& [port, id] : presences) {
    import_.interface.outputs[port].presence =
        static_cast<uint32_t>(g().outputs().size());
    add_output(import_.interface.outputs[port].name + ".present", id);
  }
  add_extents();
  presences.clear(); // of a state, which is refused then
  for (const ModelValue& output : import_.model.graph.outputs)
    if (output_states_.contains(output.name))
      add_output_value(output, value_of(output.name), presences);
  add_counted_rows();
  const size_t most = std::max(g().inputs().size(), g().outputs().size());
  if (most > kMostTensors && most > import_.model.graph.inputs.size() &&
      most > import_.model.graph.outputs.size())
    import_.diags.error(Exit::Unsupported,
                        "with each element of a sequence counted, the model has " +
                            std::to_string(most) + " inputs or outputs; at most " +
                            std::to_string(kMostTensors) + " are supported");
}

} // namespace svod::importer
