// svod-pack check: what would stop a pack, and what a pack would need. The model is
// planned as for a pack and nothing is compiled or written.
#include "compiler/pipeline.h"
#include "compiler/rewrite/integer_contractions.h"
#include "packager/artefact/contents.h"
#include "packager/report/estimate.h"
#include "packager/report/summary.h"
#include "packager/verbs.h"

#include <cstdio>

namespace svod::packager {

namespace {

std::string type_text(const Interface& seen) {
  std::string out = onnx_type_text(seen.onnx_type) + '[';
  for (size_t i = 0; i < seen.shape.size(); i++)
    out += (i ? "," : "") + std::to_string(seen.shape[i]);
  return out + ']';
}

void write_ports(JsonWriter& json, const char* key, const auto& ports) {
  json.key(key).begin_list();
  for (const auto& port : ports) {
    json.begin_object().pair("name", port.name);
    json.pair("dtype", onnx_type_text(port.seen.onnx_type)).key("shape").begin_list();
    for (int64_t dim : port.seen.shape) json.value(dim);
    json.end_list().end_object();
  }
  json.end_list();
}

Estimate estimate_of(Options options, const Front& front) {
  if (!rewrite::multiplies_bytes(front.graph))
    options.target = without_dot_levels(std::move(options.target));
  CompileOptions compiled{options.target, options.exact(), options.emits_run()};
  compiled.most_weights = options.max_weights;
  const codegen::Kernels kernels = compile(front.graph, compiled);
  ImageContents contents =
      image_contents(kernels.plan, front.interface, front.model.digest, {});
  contents.straight = options.emits_run();
  return estimate(options, kernels, contents);
}

// Two digits: more would promise what an estimate does not hold.
std::string time_text(double ms) {
  char text[32];
  if (ms < 1)
    std::snprintf(text, sizeof(text), "%.2g us", ms * 1000);
  else if (ms < 1000)
    std::snprintf(text, sizeof(text), "%.2g ms", ms);
  else
    std::snprintf(text, sizeof(text), "%.2g s", ms / 1000);
  return text;
}

std::string estimate_text(const Estimate& found) {
  return "estimate: RAM " + size_text(found.arena) + " and a stack, flash " +
         size_text(found.weights + found.code) + " (weights " + size_text(found.weights) +
         "), " + time_text(found.ms) + " a run on one core like " + found.machine + " (" +
         std::to_string(found.kernels) + " kernels, " + std::to_string(found.macs) +
         " MACs)\n";
}

void write_estimate(JsonWriter& json, const Estimate& found) {
  json.key("estimate").begin_object();
  json.pair("kernels", uint64_t{found.kernels}).pair("macs", found.macs);
  json.pair("arena", found.arena).pair("weights", found.weights);
  json.pair("flash", found.weights + found.code).key("ms").milliseconds(found.ms);
  json.pair("machine", found.machine).end_object();
}

// A budget is refused when it is known to be exceeded; here that is likely.
void warn_of_budget(const Options& options, const Estimate& found,
                    const Console& console) {
  const auto check = [&](const char* option, uint64_t needed,
                         std::optional<uint64_t> limit) {
    if (limit && needed > *limit)
      console.warning(std::string(option) + ": about " + std::to_string(needed) +
                      " bytes are needed, " + std::to_string(*limit) + " are allowed");
  };
  check("--max-ram", found.arena, options.max_ram);
  check("--max-flash", found.weights + found.code, options.max_flash);
  if (options.max_weights && options.max_weights->factor == 0)
    check("--max-weights", found.weights, options.max_weights->bytes);
}

} // namespace

Exit check_verb(const Options& options, const Console& console) {
  Exit exit = Exit::Done;
  console.progress("reading " + options.model_name());
  std::optional<Front> front = front_of(options, console, exit);
  if (!front) return exit;
  console.progress("planning " + options.model_name());
  const Estimate found = estimate_of(options, *front);
  warn_of_budget(options, found, console);
  const size_t nodes = front->model.graph.nodes.size();
  std::string text =
      options.model_name() + ": can be packed, " + std::to_string(nodes) + " nodes\n";
  for (const GraphInput& input : front->graph.inputs())
    text += "input " + escaped(input.name) + " " + type_text(input.seen) + "\n";
  for (const GraphOutput& output : front->graph.outputs())
    text += "output " + escaped(output.name) + " " + type_text(output.seen) + "\n";
  text += estimate_text(found);
  JsonWriter json;
  json.begin_object().key("model").begin_object();
  json.pair("sha256", front->model.digest.hex());
  json.pair("nodes", uint64_t{nodes}).end_object();
  json.pair("target", options.target.alias).key("entries").begin_list().begin_object();
  write_ports(json, "inputs", front->graph.inputs());
  write_ports(json, "outputs", front->graph.outputs());
  json.end_object().end_list();
  write_estimate(json, found);
  json.end_object();
  return answer(options, console, text, json);
}

} // namespace svod::packager
