// Inputs packed for one value. A shape, an axis or a count may be an input of the model,
// and then no program can be packed without its value. Such an input stays in the
// program's interface; what is packed holds for this value only, and a run with another
// one is refused. When an input is fixed: docs/decisions/fixed-inputs.md.
//
// The import is tried without any value first. A rule that gives up because it does not
// know a value leaves the value's node behind; where only small inputs of the model
// decide it, these are fixed to what the user or the data set gives, and the model is
// imported again. Each round fixes at least one more input, so it ends.
#include "importer/driver/import.h"

#include "compiler/ir/build.h"
#include "compiler/ir/text.h"
#include "compiler/support/nearest.h"
#include "importer/driver/graph_import.h"
#include "importer/driver/ports.h"
#include "importer/formula/deciding_inputs.h"
#include "importer/inputs/value_text.h"

#include <algorithm>

namespace svod::importer {

namespace {

const ModelValue* find_input(const ModelGraph& graph, const std::string& name) {
  for (const ModelTensor& tensor : graph.initializers)
    if (tensor.name == name) return nullptr;
  for (const ModelValue& input : graph.inputs)
    if (input.name == name) return &input;
  return nullptr;
}

// A list of values also says how long the input is that holds it.
bool take_lengths(const ModelGraph& graph, ImportOptions& options, Diags& diags) {
  bool good = true;
  for (const auto& [name, text] : options.values) {
    const ModelValue* input = find_input(graph, name);
    if (!input) {
      std::vector<std::string_view> names;
      for (const ModelValue& other : graph.inputs) names.push_back(other.name);
      diags.error(Exit::Usage,
                  "--value: the model has no input " + quoted(name) +
                      (names.empty() ? "" : escaped(nearest_text(name, names), 400)));
      good = false;
    } else if (input->dims && input->dims->size() == 1 &&
               !options.shapes.contains(name)) {
      options.data_shapes[name] = {values_in(text)};
    }
  }
  return good;
}

void note_fixed(const std::string& name, const std::string& value, Diags& diags) {
  diags.note("the value of input " + quoted(name) + " decides a shape; packed for " +
             escaped(name) + " = " + value);
}

} // namespace

namespace {

// The inputs that decide what rules missed, all rules together.
std::set<std::string> missed_inputs(const ImportState& import) {
  std::set<std::string> names;
  for (NodeId id : import.missed) names.merge(deciding_inputs(import.frame.graph, id));
  return names;
}

void hint_values(const ImportState& import) {
  const Graph& g = import.frame.graph;
  const std::set<std::string> missed = missed_inputs(import);
  for (const GraphInput& input : g.inputs())
    if (missed.contains(input.name))
      import.diags.note("with a value of input " + quoted(input.name) +
                        " it could be packed; use " +
                        value_option(input.name, element_count(g[input.node].shape)));
}

// A program for one byte of a file, or one sample of a sound, is of no use. Known only
// now: where the value of such an input decides a shape, it is the value that is missing.
bool has_lengths(const ImportState& import) {
  bool good = true;
  for (const std::string& name : import.lone_inputs) {
    if (import.interface.fixed.contains(name)) continue;
    import.diags.error(Exit::Unsupported,
                       "input " + quoted(name) +
                           " has one dimension, of unknown size; use --shape " +
                           escaped(name) + "=N with the number of its elements");
    good = false;
  }
  return good;
}

} // namespace

// The value that is given for an input that is to be fixed.
std::optional<std::vector<std::byte>>
PortImport::fixed_value(const std::string& name, DType dtype, const Shape& shape) {
  std::string error = "the data set has another type or shape";
  std::optional<std::vector<std::byte>> bytes;
  const auto text = import_.options.values.find(name);
  const auto tensor = import_.options.data_values.find(name);
  if (is_packed(dtype))
    error = "elements of less than a byte decide no shape";
  else if (text != import_.options.values.end())
    bytes = value_from_text(text->second, dtype, element_count(shape), error);
  else if (tensor != import_.options.data_values.end() && tensor->second.dims == shape &&
           tensor->second.onnx_type == info(dtype).onnx)
    bytes.emplace(tensor->second.bytes.begin(), tensor->second.bytes.end());
  if (!bytes)
    import_.diags.error(Exit::Usage,
                        "the value for input " + quoted(name) + ": " + error);
  return bytes;
}

std::optional<Graph> import_model(const Model& model, const ImportOptions& given,
                                  Diags& diags, ModelInterface* interface) {
  ImportOptions options = given;
  if (!take_lengths(model.graph, options, diags)) return std::nullopt;
  std::set<std::string> fix;
  for (const auto& [name, text] : options.values) fix.insert(name);
  const Diags before = diags;
  for (;;) {
    ImportState import(model, options, fix, diags);
    std::optional<Graph> graph = GraphImport(import).run();
    // Room for the rows that are put behind a state is known once they are.
    if (const int64_t added = import.frame.bounds.added_rows();
        added > options.added_rows) {
      options.added_rows = added;
      diags = before;
      continue;
    }
    import.interface.added_rows = options.added_rows;
    if (graph) {
      if (!has_lengths(import)) return std::nullopt;
      for (const GraphInput& input : graph->inputs())
        if (const auto at = import.interface.fixed.find(input.name);
            at != import.interface.fixed.end())
          note_fixed(input.name, value_text((*graph)[input.node].dtype, at->second),
                     diags);
      if (interface) *interface = import.interface;
      return graph;
    }
    bool more = false;
    for (const std::string& name : missed_inputs(import))
      if (options.data_values.contains(name)) more |= fix.insert(name).second;
    if (!more) {
      hint_values(import);
      return std::nullopt;
    }
    diags = before;
  }
}

} // namespace svod::importer
