// One writer for both JSON forms: the manifest stops where times and cache hits begin,
// since two packs of one model must be equal byte for byte.
#include "packager/report/summary.h"

#include "compiler/ir/dtype.h"
#include "compiler/support/join.h"
#include "importer/inputs/value_text.h"
#include "packager/report/json.h"
#include "packager/report/memory.h"
#include "packager/report/onnx_graph.h"
#include "packager/report/predicted.h"
#include "packager/report/searched.h"
#include "packager/version.h"

#include <cstdio>
#include <sstream>

namespace svod::packager {

namespace {

// "[1, 2]", the value an input was packed for.
std::string fixed_text(const ImageTensor& tensor) {
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  const auto* bytes = reinterpret_cast<const std::byte*>(tensor.fixed.data());
  return dtype ? importer::value_text(*dtype, {bytes, bytes + tensor.fixed.size()}) : "";
}

void write_tensors(JsonWriter& json, const char* key,
                   std::span<const ImageTensor> tensors) {
  json.key(key).begin_list();
  for (const ImageTensor& tensor : tensors) {
    json.begin_object().pair("name", tensor.name);
    json.pair("dtype", onnx_type_text(tensor.onnx_type));
    json.key("shape").begin_list();
    for (int64_t dim : tensor.dims) json.value(dim);
    json.end_list();
    if (tensor.onnx_type == info(DType::String).onnx)
      json.pair("string_bytes",
                tensor.elements() == 0 ? 0 : tensor.bytes / tensor.elements());
    if (!tensor.fixed.empty()) json.pair("fixed", fixed_text(tensor));
    if (!tensor.prepared.empty()) json.pair("prepared", tensor.prepared);
    if (tensor.shape_output != 0)
      json.pair("shape_output", uint64_t{tensor.shape_output} - 1);
    json.end_object();
  }
  json.end_list();
}

constexpr const char* kKinds[] = {"tensor", "sequence", "map", "maps"};

// What the model calls its inputs and outputs, where they are not all tensors.
void write_values(JsonWriter& json, const char* key,
                  const std::vector<ImageValue>& values) {
  if (values.empty()) return;
  json.key(key).begin_list();
  for (const ImageValue& value : values) {
    json.begin_object().pair("name", value.name).pair("kind", kKinds[value.kind]);
    json.pair("optional", (value.flags & SVOD_VALUE_OPTIONAL) != 0);
    json.pair("given", (value.flags & SVOD_VALUE_ABSENT) == 0);
    json.pair("first", uint64_t{value.first}).pair("count", uint64_t{value.count});
    if (value.presence != 0) json.pair("presence", uint64_t{value.presence} - 1);
    json.key("keys").begin_list();
    for (const ImageKey& key_of : value.keys) {
      if ((value.flags & SVOD_VALUE_TEXT_KEYS) != 0) {
        json.value(key_of.text);
      } else {
        json.value(key_of.number);
      }
    }
    json.end_list().end_object();
  }
  json.end_list();
}

// What stays from run to run, in how many bytes, and how often a run copies how much.
void write_states(JsonWriter& json, const ImageEntry& entry) {
  if (entry.states.empty()) return;
  constexpr const char* kKinds[] = {"place", "turns", "moves", "copied"};
  json.key("states").begin_list();
  for (size_t i = 0; i < entry.states.size(); i++) {
    if (is_counter(entry, i)) continue;
    const SvodState& state = entry.states[i];
    const bool moves = state.kind == SVOD_STATE_MOVES;
    json.begin_object();
    json.pair("input", entry.inputs[state.input].name);
    json.pair("output", entry.outputs[state.output].name);
    json.pair("kind", kKinds[state.kind]);
    json.pair("bytes", state.bytes * svod_state_places(state.kind));
    const uint64_t copied = moves ? state.bytes - uint64_t{state.period} * state.step
                            : state.kind == SVOD_STATE_COPIED ? state.bytes - state.step
                                                              : 0;
    json.pair("copied_bytes", copied);
    json.pair("runs_between_copies", uint64_t{state.period});
    if (state.counter != 0) {
      json.pair("grows_along", uint64_t{state.axis});
      json.pair("most_rows", entry.states[state.counter - 1].most);
    }
    json.end_object();
  }
  json.end_list();
}

uint64_t total_flops(const ImageEntry& entry) {
  uint64_t total = 0;
  for (const ImageStep& step : entry.steps) total += step.flops * step.repeats;
  return total;
}

size_t launches(const ImageEntry& entry) {
  size_t count = 0;
  for (const ImageStep& step : entry.steps) count += step.kind == SVOD_STEP_LAUNCH;
  return count;
}

void write_model(JsonWriter& json, const Summary& summary) {
  const importer::Model& model = summary.front.model;
  auto opset = model.opsets.find("");
  json.key("model").begin_object();
  json.pair("name", model.graph.name);
  json.pair("sha256", model.digest.hex());
  json.pair("opset", opset == model.opsets.end() ? int64_t{0} : opset->second);
  json.pair("nodes", uint64_t{model.graph.nodes.size()});
  if (!model.license.empty()) json.pair("license", model.license);
  json.end_object();
}

void write_bytes(JsonWriter& json, const Summary& summary) {
  json.key("bytes").begin_object();
  json.pair("image", summary.sizes.image);
  json.pair("weights", summary.contents.weight_bytes);
  if (summary.sizes.stored != 0) json.pair("weights_stored", summary.sizes.stored);
  if (summary.sizes.scratch != 0) json.pair("start_scratch", summary.sizes.scratch);
  json.pair("weights_of_fast_forms", summary.plan.fast_form_bytes);
  json.pair("code", summary.sizes.code);
  json.pair("stub", summary.sizes.stub);
  json.pair("arena", summary.arena.all());
  json.pair("arena_lower_bound", summary.contents.entries.front().arena_lower_bound);
  json.pair("temporaries", summary.arena.temporaries);
  json.pair("scratch", summary.arena.scratch);
  json.pair("tables", summary.arena.tables);
  if (summary.arena.states != 0) json.pair("states", summary.arena.states);
  json.pair("stack", summary.sizes.stack);
  json.end_object();
}

// The program names them where a run stops, for that may be why.
void write_left_out(JsonWriter& json, const std::vector<std::string>& branches) {
  if (!branches.empty()) json.pair("left_out", join(branches));
}

// What is said of the pack as a whole is of the first entry, where it is not of all; so
// each of several says it of itself, too.
void write_entries(JsonWriter& json, const Summary& summary) {
  const ImageContents& contents = summary.contents;
  json.key("entries").begin_list();
  for (const ImageEntry& entry : contents.entries) {
    json.begin_object();
    if (contents.entries.size() > 1) {
      const int pointer = summary.options.target.pointer_bits / 8;
      json.pair("name", entry.name).pair("kernels", uint64_t{launches(entry)});
      json.pair("steps", uint64_t{entry.steps.size()});
      json.pair("macs", total_flops(entry) / 2);
      json.pair("arena", arena_bytes(contents, entry, 1, pointer).all());
      json.pair("weights", weight_bytes(entry));
    }
    write_tensors(json, "inputs", callers(entry.inputs));
    write_tensors(json, "outputs", callers(entry.outputs));
    write_states(json, entry);
    write_values(json, "input_values", entry.input_values);
    write_values(json, "output_values", entry.output_values);
    json.end_object();
  }
  json.end_list();
}

void write_plan(JsonWriter& json, const Summary& summary) {
  const ImageEntry& entry = summary.contents.entries.front();
  write_model(json, summary);
  write_left_out(json, summary.front.interface.left_out);
  json.pair("target", summary.options.target.alias);
  json.key("isa").begin_list();
  for (const Level& level : summary.options.target.levels) json.value(level.name);
  json.end_list();
  write_entries(json, summary);
  json.pair("kernels", uint64_t{launches(entry)});
  json.pair("programs", uint64_t{summary.contents.programs.size()});
  json.pair("steps", uint64_t{entry.steps.size()});
  json.pair("macs", total_flops(entry) / 2);
  write_bytes(json, summary);
  json.pair("digest", summary.key.hex());
  json.key("tools").begin_object();
  json.pair("svod-pack", kVersion).end_object();
}

// Loops of kernels that multiply vectors, and those among them whose vectors are not all
// in registers.
void write_spills(JsonWriter& json, const KernelSpills& kernels) {
  toolchain::SpillFacts all;
  for (const auto& [symbol, facts] : kernels) {
    all.loops += facts.loops;
    all.spilling += facts.spilling;
  }
  json.key("spills").begin_object();
  json.pair("loops", all.loops).pair("spilling", all.spilling);
  json.key("kernels").begin_list();
  for (const auto& [symbol, facts] : kernels) {
    if (facts.spilling == 0) continue;
    json.begin_object().pair("name", symbol).pair("loops", facts.loops);
    json.pair("spilling", facts.spilling).pair("accesses", facts.accesses);
    json.pair("products", facts.products).end_object();
  }
  json.end_list().end_object();
}

// Functions of kernels that are one, and what they would take one by one.
void write_merged(JsonWriter& json, const std::vector<MergedGroup>& groups) {
  json.key("merged").begin_list();
  for (const MergedGroup& group : groups) {
    json.begin_object().key("kernels").begin_list();
    for (const std::string& kernel : group.kernels) json.value(kernel);
    json.end_list().pair("numbers", uint64_t{group.numbers});
    json.pair("bytes", group.after).pair("bytes_one_by_one", group.before).end_object();
  }
  json.end_list();
}

// In the order of the table; how a pass ended is there for those that repeat themselves.
void write_passes(JsonWriter& json, const Summary& summary) {
  json.key("passes").begin_list();
  for (const PassName& pass : pass_names()) {
    const auto found = summary.passes.find(pass.name);
    if (found == summary.passes.end()) continue;
    const PassRun& run = found->second;
    json.begin_object().pair("name", std::string(pass.name)).pair("runs", run.runs);
    json.key("ms").milliseconds(run.ms);
    if (run.end) {
      json.pair("stop_reason", std::string(reason_text(run.end->reason)));
      json.pair("rounds", run.end->rounds).pair("changes", run.end->steps);
    }
    json.end_object();
  }
  json.end_list();
}

void write_fixed_point(JsonWriter& json, const rewrite::FixedPointReport& report) {
  json.key("fixed_point").begin_object();
  json.pair("quantisations", report.quantisations).pair("in_floats", report.in_floats);
  json.key("one_step").begin_list();
  for (const std::string& node : report.one_step) json.value(node);
  json.end_list().end_object();
}

void write_device_entry(JsonWriter& json, const DeviceFacts::Entry& entry) {
  json.key("steps_on_cpu").begin_list();
  for (const DeviceFacts::Here& step : entry.here)
    json.begin_object()
        .pair("name", step.program)
        .pair("nodes", step.nodes)
        .pair("why", "C++ of its own")
        .end_object();
  json.end_list();
  if (entry.here.empty()) return;
  json.pair("graphs", entry.graphs).pair("copies", entry.copies);
  json.pair("copied_bytes", entry.copied_bytes);
  json.key("predicted_us").begin_object();
  json.key("cpu").milliseconds(entry.here_us);
  json.key("gpu").milliseconds(entry.there_us);
  json.end_object();
}

void write_device(JsonWriter& json, const DeviceFacts& device) {
  const bool mixed =
      std::ranges::any_of(device.entries, [](const DeviceFacts::Entry& entry) {
        return !entry.here.empty();
      });
  json.key("device").begin_object();
  json.pair("runs_on", !device.why.empty() ? "cpu" : mixed ? "both" : "gpu");
  if (!device.why.empty()) json.pair("why", device.why);
  json.key("entries").begin_list();
  for (const DeviceFacts::Entry& entry : device.entries) {
    json.begin_object();
    write_device_entry(json, entry);
    json.end_object();
  }
  json.end_list().end_object();
}

void write_run(JsonWriter& json, const Summary& summary) {
  json.key("command").begin_list();
  for (const std::string& word : summary.options.command) json.value(word);
  json.end_list();
  json.key("fusion").begin_object();
  json.pair("nodes_before", uint64_t{summary.front.graph.live_nodes().size()});
  json.pair("kernels_unfused", summary.plan.unfused_kernels).end_object();
  write_spills(json, summary.spills);
  write_search(json, summary.search, summary.spilled_schedules);
  write_equal(json, summary.equal);
  write_predicted(
      json, summary.plan, summary.options.target, std::max(1, summary.options.threads),
      {summary.plan, summary.options.target, summary.search, summary.front.tuning});
  if (summary.device) write_device(json, *summary.device);
  const plan::MemoryUse use = memory_use(summary.plan);
  write_memory(json, summary.plan, use);
  write_weight_list(json, summary.plan, use);
  if (!summary.merged.empty()) write_merged(json, summary.merged);
  json.key("cache").begin_object();
  json.pair("plan", std::string(summary.plan_state));
  json.pair("kernels_compiled", uint64_t{summary.compiled});
  json.pair("kernels_reused", uint64_t{summary.reused});
  if (summary.remote) write_remote(json, *summary.remote);
  json.end_object();
  json.key("time_ms").begin_object();
  for (const auto& [stage, ms] : summary.time_ms) json.key(stage).milliseconds(ms);
  json.end_object();
  write_passes(json, summary);
  if (summary.fixed_point) write_fixed_point(json, *summary.fixed_point);
  if (!summary.explanation.empty()) {
    json.key("explain").raw(summary.explanation);
    write_onnx_graph(json, summary.front.model);
  }
  if (!summary.verify.empty()) json.key("verify").raw(summary.verify);
  if (!summary.accuracy.empty()) json.key("accuracy").raw(summary.accuracy);
}

} // namespace

std::string size_text(uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB"};
  double value = static_cast<double>(bytes);
  size_t unit = 0;
  for (; value >= 1024 && unit + 1 < std::size(kUnits); unit++) value /= 1024;
  char text[32];
  std::snprintf(text, sizeof(text), unit == 0 ? "%.0f %s" : "%.1f %s", value,
                kUnits[unit]);
  return text;
}

std::string manifest_json(const Summary& summary) {
  JsonWriter json;
  json.begin_object();
  write_plan(json, summary);
  if (summary.packed) write_packed_with(json.key("packed_with"), *summary.packed);
  json.end_object();
  return json.text();
}

std::string summary_json(const Summary& summary) {
  JsonWriter json;
  json.begin_object();
  write_plan(json, summary);
  write_run(json, summary);
  json.end_object();
  return json.text();
}

std::string summary_text(const Summary& summary) {
  const ImageEntry& entry = summary.contents.entries.front();
  double total = summary.time_ms.empty() ? 0 : summary.time_ms.back().second;
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%.2f s", total / 1000);
  std::ostringstream more;
  if (summary.contents.entries.size() > 1)
    more << " in the first of " << summary.contents.entries.size() << " entries";
  std::ostringstream out;
  out << summary.options.model_name() << ": " << summary.front.model.graph.nodes.size()
      << " nodes -> " << launches(entry) << " kernels ("
      << summary.contents.programs.size() << " programs, " << total_flops(entry) / 2
      << " MACs)" << more.str() << "\n"
      << summary.options.output << ": " << size_text(summary.output) << " (weights "
      << size_text(summary.contents.weight_bytes)
      << (summary.sizes.stored != 0 ? " stored in " + size_text(summary.sizes.stored)
                                    : "")
      << ", code " << size_text(summary.sizes.code + summary.sizes.stub) << "), arena "
      << size_text(summary.arena.all()) << " (lower bound "
      << size_text(entry.arena_lower_bound) << "), " << summary.options.target.alias
      << ", " << seconds;
  if (summary.plan.fast_form_bytes != 0 && !summary.options.max_weights)
    out << "\nfast forms add " << size_text(summary.plan.fast_form_bytes)
        << " to the weights; --max-weights bounds them";
  const bool chosen = !summary.options.weights_given && summary.sizes.stored != 0;
  if (chosen)
    out << "\nentries read some weights in forms of their own, which a start makes; "
           "--weights=embed stores them";
  return out.str();
}

} // namespace svod::packager
