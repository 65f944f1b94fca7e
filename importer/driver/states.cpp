// Outputs that are inputs of the next run (--state): which they are, by name, and that
// their types allow it.
#include "importer/driver/ports.h"

#include "importer/formula/complex.h"
#include "importer/formula/expression.h"

#include <algorithm>

namespace svod::importer {

namespace {

// What a * of the pattern stands for in the name; none where they do not match.
std::optional<std::string> match(const std::string& pattern, const std::string& name) {
  const size_t star = pattern.find('*');
  if (star == std::string::npos)
    return pattern == name ? std::optional<std::string>("") : std::nullopt;
  const std::string front = pattern.substr(0, star), end = pattern.substr(star + 1);
  if (name.size() < front.size() + end.size() || !name.starts_with(front) ||
      !name.ends_with(end))
    return std::nullopt;
  return name.substr(star, name.size() - front.size() - end.size());
}

const ModelPort& port_of(const std::vector<ModelPort>& ports, const std::string& name) {
  return *std::ranges::find(ports, name, &ModelPort::name);
}

// The names that INPUT=OUTPUT means; with a * on both sides, all for which it stands for
// the same. Names may have a = of their own.
std::vector<std::pair<std::string, std::string>> named_pairs(const std::string& text,
                                                             const ModelGraph& graph) {
  for (size_t at = text.find('='); at != std::string::npos; at = text.find('=', at + 1)) {
    const std::string left = text.substr(0, at), right = text.substr(at + 1);
    std::vector<std::pair<std::string, std::string>> out;
    for (const ModelValue& input : graph.inputs) {
      const std::optional<std::string> part = match(left, input.name);
      if (!part) continue;
      std::string name = right;
      if (const size_t star = name.find('*'); star != std::string::npos)
        name.replace(star, 1, *part);
      if (std::ranges::count(graph.outputs, name, &ModelValue::name) != 0)
        out.emplace_back(input.name, name);
    }
    if (!out.empty()) return out;
  }
  return {};
}

// The first few: a decoder has a hundred.
std::string names_of(const std::vector<ModelValue>& values) {
  constexpr size_t kMostNames = 16;
  std::string out;
  for (size_t i = 0; i < values.size() && i < kMostNames; ++i)
    out += " " + quoted(values[i].name);
  return out + (values.size() > kMostNames ? " ..." : "");
}

std::string type_text(const Interface& seen) {
  return onnx_type_name(seen.onnx_type) + shape_text(seen.shape);
}

// The axis along which the output is longer, -1 where shapes are equal; none where they
// differ otherwise.
std::optional<int64_t> grown_axis(const Shape& in, const Shape& out) {
  if (in.size() != out.size()) return std::nullopt;
  int64_t axis = -1;
  for (size_t i = 0; i < in.size(); ++i) {
    if (in[i] == out[i]) continue;
    if (axis >= 0 || out[i] < in[i] || in[i] == 0) return std::nullopt;
    axis = static_cast<int64_t>(i);
  }
  return axis;
}

// Runs between two moves of a cache of `rows` to the front of its memory. Where it may
// take a quarter more memory, a move costs four rows a run instead of all of them.
int64_t period_of(int64_t rows, int64_t grown, bool roomy) {
  constexpr int64_t kShare = 4;
  return roomy ? std::max<int64_t>(1, rows / (kShare * grown)) : 1;
}

} // namespace

void PortImport::add_state(const ModelPort& input, const ModelPort& output) {
  const auto fail = [&](const std::string& why) {
    import_.diags.error(Exit::Usage, "--state: " + why);
  };
  for (const ModelPort* port : {&input, &output})
    if (!port->is_tensor()) return fail(quoted(port->name) + " is no tensor");
  const GraphInput& from = g().inputs()[input.first];
  const GraphOutput& to = g().outputs()[output.first];
  if (import_.interface.fixed.contains(from.name))
    return fail("input " + quoted(from.name) + " is packed for one value");
  if (import_.interface.extents.contains(output.first))
    return fail("the size of output " + quoted(to.name) +
                " is the run's, and that of input " + quoted(from.name) +
                " is fixed; fix both (--shape), or open the input's (--dim)");
  const auto is_seen_whole = [&](const auto& port) {
    const Interface own = g().interface_of(port.node);
    return port.seen.onnx_type == own.onnx_type && port.seen.shape == own.shape;
  };
  const bool numbers = is_seen_whole(from) && is_seen_whole(to);
  const std::optional<int64_t> axis = grown_axis(from.seen.shape, to.seen.shape);
  if (!numbers || from.seen.onnx_type != to.seen.onnx_type || !axis)
    return fail("input " + quoted(from.name) + " is " + type_text(from.seen) +
                " and output " + quoted(to.name) + " " + type_text(to.seen) +
                "; a state's output has the type and shape of its input, or is longer "
                "along one axis, of which the next run reads the end");
  if (byte_size(to.seen).value_or(0) > int64_t{UINT32_MAX} / 2)
    return fail(quoted(to.name) + " is larger than 2 GiB, the most that a state may be");
  StateLink link{input.first, output.first, *axis};
  if (*axis >= 0) {
    const auto a = static_cast<size_t>(*axis);
    link.grown = to.seen.shape[a] - from.seen.shape[a];
    link.period = period_of(from.seen.shape[a], link.grown, import_.options.roomy_states);
  }
  g().add_state(link);
}

void PortImport::find_states() {
  const ModelGraph& graph = import_.model.graph;
  for (const std::string& text : import_.options.states) {
    const auto pairs = named_pairs(text, graph);
    for (const auto& [input, output] : pairs) {
      const bool is_new = input_states_.insert(input).second;
      if (!output_states_.insert(output).second || !is_new)
        import_.diags.error(Exit::Usage, "--state: " + quoted(input) + " or " +
                                             quoted(output) + " is a state twice");
      states_.emplace_back(input, output);
    }
    if (!pairs.empty()) continue;
    const std::string names = "the inputs are" + names_of(graph.inputs) +
                              ", the outputs" + names_of(graph.outputs);
    import_.diags.error(Exit::Usage, "--state: " + quoted(text) +
                                         " is no INPUT=OUTPUT of the model; " + names);
  }
}

void PortImport::link_states() {
  const bool optional =
      std::ranges::any_of(import_.interface.outputs, [](const ModelPort& port) {
        return port.presence.has_value();
      });
  if (optional && !states_.empty())
    return import_.diags.error(Exit::Usage,
                               "--state: the model has outputs whose presence depends on "
                               "data, which do not go with states yet");
  for (const auto& [input, output] : states_)
    add_state(port_of(import_.interface.inputs, input),
              port_of(import_.interface.outputs, output));
}

} // namespace svod::importer
