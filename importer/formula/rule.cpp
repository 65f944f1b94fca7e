// What rules ask of their node: inputs that are known, attributes with the defaults of
// their row, and the two ways to give up.
#include "importer/formula/rule.h"

#include "compiler/support/check.h"
#include "compiler/support/diags.h"
#include "importer/formula/complex.h"
#include "importer/formula/packing.h"

#include <algorithm>
#include <charconv>

namespace svod::importer {

namespace {

// Numbers and lists in the default texts of onnx_ops.def: "3", "0.01", "[1,1]".
template <class T> T number_from(std::string_view text) {
  T value{};
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  SVOD_CHECK(error == std::errc() && end == text.data() + text.size())
      << "default '" << text << "' in onnx_ops.def";
  return value;
}

std::vector<std::string_view> list_from(std::string_view text) {
  SVOD_CHECK(text.size() >= 2 && text.front() == '[' && text.back() == ']')
      << "default '" << text << "' in onnx_ops.def";
  text = text.substr(1, text.size() - 2);
  std::vector<std::string_view> items;
  while (!text.empty()) {
    const size_t comma = std::min(text.find(','), text.size());
    items.push_back(text.substr(0, comma));
    text.remove_prefix(std::min(comma + 1, text.size()));
  }
  return items;
}

template <class T> std::vector<T> numbers_from(std::string_view text) {
  std::vector<T> values;
  for (std::string_view item : list_from(text)) values.push_back(number_from<T>(item));
  return values;
}

std::string why_not_listed(const Graph& g, NodeId id) {
  if (is_known(g, id)) return "has more elements than a list of values may";
  return "must be known when packing, but it depends on the model's inputs";
}

} // namespace

NodeId NodeImport::value(size_t i) const {
  if (!has_input(i)) invalid("input " + std::to_string(i) + " is missing");
  return inputs_[i];
}

const Compound* NodeImport::compound(size_t i) const {
  return is_compound(value(i)) ? &(*compounds)[inputs_[i]] : nullptr;
}

NodeId NodeImport::input(size_t i) const {
  if (const Compound* other = compound(i))
    invalid("input " + std::to_string(i) + " is " + kind_text(*other) +
            ", the operator takes a tensor");
  return inputs_[i];
}

std::vector<int64_t> NodeImport::known_ints(size_t i) const {
  const NodeId id = input(i);
  if (!is_integer(g[id].dtype) && g[id].dtype != DType::Bool)
    invalid("input " + std::to_string(i) + " (" + quoted(model_node.inputs[i]) +
            ") must hold integers, not " + std::string(info(g[id].dtype).text));
  if (element_count(g[id].shape) == 0) return {}; // known whatever made it
  if (auto values = svod::known_ints(g, id)) return *values;
  needs_value(i, "input " + std::to_string(i) + " (" + quoted(model_node.inputs[i]) +
                     ") " + why_not_listed(g, input(i)));
}

std::vector<double> NodeImport::known_floats(size_t i) const {
  if (auto values = svod::known_floats(g, input(i))) return *values;
  needs_value(i, "input " + std::to_string(i) + " (" + quoted(model_node.inputs[i]) +
                     ") " + why_not_listed(g, input(i)));
}

const NodeImport::AttributeRow& NodeImport::row(std::string_view name,
                                                AttributeType type) const {
  for (const AttributeRow& row : rows_)
    if (row.name == name) {
      SVOD_CHECK(row.type == type)
          << "type of attribute " << name << " in the row of " << model_node.op_type;
      return row;
    }
  SVOD_CHECK(false) << "attribute " << name << " has no place in the row of "
                    << model_node.op_type;
  __builtin_unreachable();
}

const ModelAttribute* NodeImport::find(std::string_view name) const {
  for (const ModelAttribute& attribute : model_node.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

// The attribute, or null with a default to use; one that has neither is a fault of the
// model.
const ModelAttribute* NodeImport::find_or_default(const AttributeRow& row) const {
  const ModelAttribute* attribute = find(row.name);
  if (!attribute && row.fallback.empty())
    invalid("attribute '" + std::string(row.name) + "' is missing");
  return attribute;
}

bool NodeImport::has(std::string_view name) const { return find(name) != nullptr; }

AttributeType NodeImport::type_of(std::string_view name) const {
  for (const AttributeRow& row : rows_)
    if (row.name == name) return row.type;
  SVOD_CHECK(false) << "attribute " << name << " has no place in the row of "
                    << model_node.op_type;
  __builtin_unreachable();
}

int64_t NodeImport::get_int(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::Int);
  const ModelAttribute* attribute = find_or_default(known);
  return attribute ? attribute->i : number_from<int64_t>(known.fallback);
}

double NodeImport::get_float(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::Float);
  const ModelAttribute* attribute = find_or_default(known);
  // Defaults are float32 in the specification as well, so 0.01 is 0.01f.
  return attribute ? attribute->f : number_from<float>(known.fallback);
}

std::string NodeImport::get_string(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::String);
  const ModelAttribute* attribute = find_or_default(known);
  return attribute ? attribute->s : std::string(known.fallback);
}

std::vector<int64_t> NodeImport::get_ints(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::Ints);
  if (const ModelAttribute* attribute = find(name)) return attribute->ints;
  if (known.fallback.empty()) return {};
  return numbers_from<int64_t>(known.fallback);
}

std::vector<float> NodeImport::get_floats(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::Floats);
  if (const ModelAttribute* attribute = find(name)) return attribute->floats;
  if (known.fallback.empty()) return {};
  return numbers_from<float>(known.fallback);
}

std::vector<std::string> NodeImport::get_strings(std::string_view name) const {
  const AttributeRow& known = row(name, AttributeType::Strings);
  if (const ModelAttribute* attribute = find(name)) return attribute->strings;
  if (known.fallback.empty()) return {};
  std::vector<std::string> values;
  for (std::string_view item : list_from(known.fallback)) values.emplace_back(item);
  return values;
}

const ModelTensor& NodeImport::get_tensor(std::string_view name) const {
  // The reader made a sparse tensor dense.
  const ModelAttribute* attribute = find(name);
  if (!attribute || !attribute->tensor)
    invalid("attribute '" + std::string(name) + "' holds no tensor");
  return *attribute->tensor;
}

std::vector<NodeId> NodeImport::run_graph(std::string_view name,
                                          const std::vector<NodeId>& inputs) const {
  row(name, AttributeType::Graph);
  const ModelAttribute* attribute = find(name);
  SVOD_CHECK(attribute && host) << "attribute " << name << " cannot be run";
  const std::vector<NodeId> results = host->run_graph(*attribute, inputs);
  if (!results.empty()) return results;
  throw RuleFailure{};
}

RuleLoopResult NodeImport::try_loop(const RuleLoop& loop) const {
  SVOD_CHECK(host) << "a loop cannot be made here";
  return host->run_loop(loop);
}

bool NodeImport::wants_output(size_t i) const {
  return i < model_node.outputs.size() && !model_node.outputs[i].empty();
}

void NodeImport::output(size_t i, NodeId value) {
  if (results_.size() <= i) results_.resize(i + 1, kNoNode);
  results_[i] = value;
}

void NodeImport::unsupported(const std::string& why) const {
  throw RuleFailure{why, true};
}

void NodeImport::set_counts(size_t out, Counts counts) {
  if (output_counts.size() <= out) output_counts.resize(out + 1);
  output_counts[out] = std::move(counts);
}

void NodeImport::replace_input(size_t i, NodeId id) {
  if (i >= inputs_.size()) inputs_.resize(i + 1, kNoNode);
  inputs_[i] = id;
  if (i < input_counts.size()) input_counts[i].clear();
}

void NodeImport::needs_value_of(NodeId value, const std::string& why) const {
  throw RuleFailure{why, true, {value}};
}

void NodeImport::invalid(const std::string& why) const { throw RuleFailure{why}; }

int64_t NodeImport::axis(int64_t value, int64_t rank) const {
  if (value < -rank || value >= rank)
    invalid("axis " + std::to_string(value) + " is outside a tensor of rank " +
            std::to_string(rank));
  return value < 0 ? value + rank : value;
}

NodeId NodeImport::tensor(const ModelTensor& tensor) const {
  if (const auto part = complex_part(tensor.onnx_type))
    return complex_weight(g, *compounds, tensor, *part);
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  if (!dtype)
    unsupported("tensor " + quoted(tensor.name) + " has element type " +
                onnx_type_name(tensor.onnx_type) + ", which is not supported");
  if (dtype == DType::String) return strings->tensor(g, tensor.dims, tensor.strings);
  return weight_of(g, tensor, *dtype, exact);
}

} // namespace svod::importer
