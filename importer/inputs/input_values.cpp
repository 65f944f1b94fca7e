// How many elements a sequence has, and whether an optional is there, is known from the
// user (--shape) or from a data set (--shape-from). The keys of a map are those that its
// readers look up, so that a run may give others as well; where a reader wants all keys
// in their order, they are those of the data set and a run must give the same.
#include "importer/inputs/input_values.h"

#include <algorithm>
#include <charconv>
#include <set>

namespace svod::importer {

namespace {

using Kind = ModelValue::Kind;

// Sorted and without doubles.
template <class T> void make_set(std::vector<T>& values) {
  std::ranges::sort(values);
  values.erase(std::ranges::unique(values).begin(), values.end());
}

const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &ModelAttribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

class Expander {
public:
  Expander(const ModelGraph& graph, const ImportOptions& options, Diags& diags)
      : graph_(graph), options_(options), diags_(diags) {}
  InputValue expand(const ModelValue& input);

private:
  void add_tensor(InputValue& out, std::string name, bool named_dims);
  void expand_sequence(InputValue& out);
  void expand_map(InputValue& out);
  std::optional<int64_t> length(const ModelValue& input);
  bool is_present(const ModelValue& input);
  std::optional<MapKeys> looked_up_keys(const ModelValue& input);
  void refuse(const ModelValue& input, const std::string& why) {
    diags_.error(Exit::Unsupported, "input " + quoted(input.name) + " " + why);
  }
  const DataPort* data(const ModelValue& input) const {
    const auto found = options_.data_ports.find(input.name);
    return found == options_.data_ports.end() ? nullptr : &found->second;
  }

  const ModelGraph& graph_;
  const ImportOptions& options_;
  Diags& diags_;
};

// Elements of one sequence may differ in a dimension that the type names once.
void Expander::add_tensor(InputValue& out, std::string name, bool named_dims) {
  ModelValue tensor = *out.declared;
  tensor.name = std::move(name);
  tensor.kind = Kind::Tensor;
  tensor.inner.clear();
  if (!named_dims && tensor.dims)
    for (ModelDim& dim : *tensor.dims) dim.name.clear();
  out.tensors.push_back(std::move(tensor));
}

// --shape x=none; else the data; an optional of which nothing is said is there.
bool Expander::is_present(const ModelValue& input) {
  if (options_.absent.contains(input.name)) return false;
  const DataPort* given = data(input);
  return !given || given->present;
}

// --shape x=N, or the elements that --shape x[i]=... names; else the data.
std::optional<int64_t> Expander::length(const ModelValue& input) {
  const auto given = options_.shapes.find(input.name);
  if (given != options_.shapes.end()) {
    if (given->second.size() == 1) return given->second[0];
    diags_.error(Exit::Usage, "--shape: " + quoted(input.name) +
                                  " is a sequence, one number is its length; the shape "
                                  "of an element is given as --shape '" +
                                  escaped(element_name(input.name, 0)) + "=AxB'");
    return std::nullopt;
  }
  std::set<size_t> elements;
  for (const auto& [name, shape] : options_.shapes)
    if (const auto element = element_of(name); element && element->first == input.name)
      elements.insert(element->second);
  if (!elements.empty() && *elements.rbegin() + 1 == elements.size())
    return static_cast<int64_t>(elements.size());
  if (const DataPort* port = data(input)) return port->length;
  refuse(input, "is a sequence of unknown length; use --shape " + escaped(input.name) +
                    "=N, or --shape-from with a data set");
  return std::nullopt;
}

void Expander::expand_sequence(InputValue& out) {
  const std::optional<int64_t> count = length(*out.declared);
  if (!count) return;
  if (*count > kMostElements)
    return refuse(*out.declared,
                  "has more elements than the limit of " + std::to_string(kMostElements));
  for (int64_t i = 0; i < *count; ++i)
    add_tensor(out, element_name(out.declared->name, static_cast<size_t>(i)), false);
}

// The keys that the readers of a map look up; nothing when one wants all of them.
std::optional<MapKeys> Expander::looked_up_keys(const ModelValue& input) {
  MapKeys keys;
  bool all_known = true;
  for (const ModelNode& node : graph_.nodes) {
    if (std::ranges::find(node.inputs, input.name) == node.inputs.end()) continue;
    const ModelAttribute* numbers = find_attribute(node, "int64_vocabulary");
    const ModelAttribute* texts = find_attribute(node, "string_vocabulary");
    const ModelAttribute* form = find_attribute(node, "map_form");
    const ModelAttribute* size = find_attribute(node, "max_map");
    const auto add = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    if (node.op_type == "DictVectorizer" && numbers) {
      add(keys.numbers, numbers->ints);
    } else if (node.op_type == "DictVectorizer" && texts) {
      add(keys.texts, texts->strings);
    } else if (node.op_type == "CastMap" && form && form->s == "SPARSE" && size) {
      for (int64_t key = 0; key < std::min(size->i, kMostElements); ++key)
        keys.numbers.push_back(key);
    } else {
      all_known = false;
    }
  }
  make_set(keys.numbers);
  make_set(keys.texts);
  if (!all_known || keys.size() == 0) return std::nullopt;
  return keys;
}

void Expander::expand_map(InputValue& out) {
  const ModelValue& input = *out.declared;
  const bool texts = onnx_type_name(input.key_type) == "string";
  if (const auto keys = looked_up_keys(input)) {
    out.port.keys = *keys;
    out.port.any_keys = true;
  } else if (const DataPort* port = data(input)) {
    out.port.keys = port->keys;
    make_set(out.port.keys.numbers);
    make_set(out.port.keys.texts);
  } else {
    return refuse(input, "is a map of unknown keys; use --shape-from with a data set");
  }
  if (out.port.keys.texts.empty() == texts)
    return refuse(input, "is a map whose keys are not of its declared type, or none");
  add_tensor(out, input.name, false);
  const auto size = static_cast<int64_t>(out.port.keys.size());
  out.tensors.back().dims = {ModelDim{size, ""}};
}

InputValue Expander::expand(const ModelValue& input) {
  InputValue out;
  out.declared = &input;
  out.port.name = input.name;
  out.port.onnx_type = input.onnx_type;
  std::vector<Kind> kinds{input.kind};
  kinds.insert(kinds.end(), input.inner.begin(), input.inner.end());
  if (kinds[0] == Kind::Optional) {
    out.port.optional = true;
    out.port.present = is_present(input);
    kinds.erase(kinds.begin());
  }
  const std::vector<Kind> sequence{Kind::Sequence, Kind::Tensor};
  const std::vector<Kind> map{Kind::Map, Kind::Tensor};
  if (kinds == std::vector<Kind>{Kind::Tensor}) {
    out.port.kind = ModelPort::Kind::Tensor;
    if (out.port.present) add_tensor(out, input.name, true);
  } else if (kinds == sequence) {
    out.port.kind = ModelPort::Kind::Sequence;
    if (out.port.present) expand_sequence(out);
  } else if (kinds == map && !out.port.optional) {
    out.port.kind = ModelPort::Kind::Map;
    expand_map(out);
  } else {
    refuse(input, "is of a type that is not supported: tensors, sequences of tensors, "
                  "optionals of both, and maps are");
  }
  out.port.count = static_cast<uint32_t>(out.tensors.size());
  return out;
}

} // namespace

std::deque<InputValue> input_values(const ModelGraph& graph, const ImportOptions& options,
                                    Diags& diags) {
  std::set<std::string_view> constants;
  for (const ModelTensor& tensor : graph.initializers) constants.insert(tensor.name);
  std::deque<InputValue> values;
  Expander expander(graph, options, diags);
  for (const ModelValue& input : graph.inputs)
    if (!constants.contains(input.name)) values.push_back(expander.expand(input));
  return values;
}

std::string element_name(const std::string& name, size_t i) {
  return name + "[" + std::to_string(i) + "]";
}

std::optional<std::pair<std::string, size_t>> element_of(const std::string& name) {
  const size_t open = name.rfind('[');
  if (open == std::string::npos || name.back() != ']') return std::nullopt;
  size_t number = 0;
  const char* end = name.data() + name.size() - 1;
  const auto [at, error] = std::from_chars(name.data() + open + 1, end, number);
  if (error != std::errc() || at != end) return std::nullopt;
  return std::make_pair(name.substr(0, open), number);
}

} // namespace svod::importer
