// Reads, imports, and names the result by its content.
#include "packager/front.h"

#include "compiler/codegen/read_custom_ops.h"
#include "compiler/ir/digest.h"
#include "importer/check/read_model.h"
#include "importer/inputs/data_shapes.h"
#include "packager/artefact/objects.h"
#include "packager/version.h"

#include <bit>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace svod::packager {

static std::optional<std::string> read_file(const std::string& path, Diags& diags) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file || !text) {
    diags.error(Exit::File, escaped(path) + " cannot be read");
    return std::nullopt;
  }
  return text.str();
}

// The user's own operators, of all files in their order.
static std::vector<CustomOp> read_custom_files(const Options& options, Diags& diags) {
  std::vector<CustomOp> ops;
  for (const std::string& path : options.custom_ops) {
    const std::optional<std::string> text = read_file(path, diags);
    if (!text) continue;
    std::vector<std::string> faults;
    for (CustomOp& op : codegen::read_custom_ops(path, *text, faults))
      ops.push_back(std::move(op));
    for (const std::string& fault : faults) diags.error(Exit::Toolchain, fault);
  }
  return ops;
}

TuningFile read_tuning(const Options& options, Diags& diags) {
  std::error_code error;
  const bool made =
      options.tune_minutes && !std::filesystem::exists(options.tuning, error);
  if (options.tuning.empty() || made) return {};
  const std::optional<std::string> text = read_file(options.tuning, diags);
  if (!text) return {};
  TextFault fault;
  std::optional<TuningFile> file = parse_tuning_file(*text, fault);
  if (file) return std::move(*file);
  diags.error(Exit::Usage, escaped(options.tuning) + ":" + std::to_string(fault.line) +
                               ": " + escaped(fault.why, fault.why.size()));
  return {};
}

// What it is called is no matter: nothing that runs asks for it.
static void key_of(const importer::ModelPort& port, DigestWriter& key) {
  key.number(static_cast<uint64_t>(port.kind));
  key.number(port.optional);
  key.number(port.present);
  key.number(port.first);
  key.number(port.count);
  key.number(port.any_keys);
  key.number(static_cast<uint64_t>(port.onnx_type));
  key.number(port.presence ? *port.presence + 1 : 0);
  key.number(port.keys.numbers.size());
  for (int64_t number : port.keys.numbers) key.number(static_cast<uint64_t>(number));
  key.number(port.keys.texts.size());
  for (const std::string& text : port.keys.texts) key.text(text);
}

static void key_of(const Graph& graph, const importer::ModelInterface& interface,
                   bool values, DigestWriter& key) {
  key.digest(graph_digest(graph, {.weight_values = values}));
  for (const GraphInput& input : graph.inputs()) {
    const auto fixed = interface.fixed.find(input.name);
    key.number(fixed != interface.fixed.end());
    if (fixed != interface.fixed.end()) key.digest(sha256(fixed->second));
  }
  key.number(interface.extents.size());
  for (const auto& [output, extents] : interface.extents) {
    key.number(output);
    key.number(extents);
  }
  key.number(interface.open_inputs.size());
  for (const auto& [input, open] : interface.open_inputs) {
    key.number(input);
    key.number(open.extents);
    for (const std::string& name : open.dimensions) key.number(!name.empty());
    if (interface.pictures.contains(input)) key.text("picture");
    key.number(open.counter ? *open.counter + 1 : 0);
    for (const size_t axis : open.counted) key.number(axis);
  }
  key.number(interface.growing_states.size());
  for (const auto& [input, growing] : interface.growing_states) {
    key.number(input);
    key.number(static_cast<uint64_t>(growing.axis));
    key.number(growing.counter);
    key.number(static_cast<uint64_t>(interface.counters.at(growing.counter)));
  }
  for (const auto* ports : {&interface.inputs, &interface.outputs}) {
    key.number(ports->size());
    for (const importer::ModelPort& port : *ports) key_of(port, key);
  }
}

static void key_of(const Target& target, DigestWriter& key) {
  key.text(target.alias);
  key.text(target.triple);
  key.number(target.levels.size());
  for (const Level& level : target.levels) {
    key.text(level.name);
    key.text(level.machine.name);
    key.number(level.small);
    key.number(level.tf32);
    key.number(level.flags.size());
    for (const std::string& flag : level.flags) key.text(flag);
  }
}

// `values`: of weights, too.
static Digest untuned_key(const Front& front, const Options& options, bool values) {
  DigestWriter key;
  key.text("svod key 4"); // of this layout
  key.text(kVersion);
  key.text(package_compiler().identity());
  key_of(front.graph, front.interface, values, key);
  key_of(options.target, key);
  key.number(options.device.has_value());
  if (options.device) key_of(*options.device, key);
  key.number(static_cast<uint64_t>(options.level));
  key.number(static_cast<uint64_t>(options.accuracy));
  key.number(options.search_budget);
  key.number(options.cut_budget);
  key.number(options.equal_budget);
  key.number(static_cast<uint64_t>(options.threads));
  key.number(static_cast<uint64_t>(options.emit));
  key.number(options.portable);
  key.number(static_cast<uint64_t>(options.weights));
  key.text(options.name);
  key.number(!options.schedule.empty());
  if (!options.schedule.empty()) key.text(front.schedules);
  key.number(options.self_check);
  key.number(options.skip_unchanged);
  key.number(options.parts);
  // Limits choose between plans and between kernels.
  for (const std::optional<uint64_t>& limit : {options.max_ram, options.max_flash}) {
    key.number(limit.has_value());
    key.number(limit.value_or(0));
  }
  key.number(options.max_weights.has_value());
  const WeightBound bound = options.max_weights.value_or(WeightBound());
  key.number(bound.bytes);
  key.number(std::bit_cast<uint64_t>(bound.factor));
  key.number(options.pools.size());
  for (const Options::Pool& pool : options.pools) {
    key.text(pool.name);
    key.number(pool.bytes);
  }
  key.number(front.kernel_texts.size());
  for (const auto& [symbol, text] : front.kernel_texts) {
    key.text(symbol);
    key.text(text);
  }
  return key.finish();
}

static Digest subject_of(const Front& front, const Options& options) {
  DigestWriter key;
  key.text("svod subject 1"); // of this layout
  key_of(front.graph, front.interface, false, key);
  key.number(static_cast<uint64_t>(options.accuracy));
  return key.finish();
}

std::optional<Front> read_front(const Options& options, Diags& diags) {
  auto start = std::chrono::steady_clock::now();
  importer::ImportOptions import = options.import;
  import.exact = options.exact();
  import.custom_ops = read_custom_files(options, diags);
  std::string schedules;
  if (!options.schedule.empty())
    schedules = read_file(options.schedule, diags).value_or("");
  TuningFile tuning = read_tuning(options, diags);
  std::map<std::string, std::string> kernel_texts;
  for (const auto& [symbol, path] : options.kernel_files)
    kernel_texts[symbol] = read_file(path, diags).value_or("");
  if (diags.failed()) return std::nullopt;
  std::future<Digest> digest;
  std::optional<importer::Model> model =
      importer::read_model(options.model, import.limits, diags, &digest);
  if (!model) return std::nullopt;
  if (!options.shape_from.empty()) {
    auto set = importer::read_data_set(options.shape_from, *model, import.limits, diags);
    if (!set) return std::nullopt;
    import.data_shapes = std::move(set->shapes);
    import.data_values = std::move(set->values);
    import.data_ports = std::move(set->ports);
  }
  importer::ModelInterface interface;
  import.keep_halves = options.target.kind == TargetKind::Gpu;
  std::optional<Graph> graph = importer::import_model(*model, import, diags, &interface);
  if (!graph) return std::nullopt;
  std::optional<Graph> device_graph;
  if (options.device) {
    import.keep_halves = true;
    Diags said; // the same again
    device_graph = importer::import_model(*model, import, said);
  }
  model->digest = digest.get();
  std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  Front out{std::move(*model),
            std::move(*graph),
            std::move(device_graph),
            std::move(interface),
            std::move(schedules),
            std::move(tuning),
            std::move(kernel_texts),
            {},
            {},
            {},
            took.count()};
  out.untuned_key = untuned_key(out, options, true);
  out.structure_key = untuned_key(out, options, false);
  out.subject = subject_of(out, options);
  return out;
}

Digest plan_key(const Front& front, const ScheduleFile& tuned, const PlanChoice& choice) {
  if (tuned.empty() && choice == PlanChoice()) return front.untuned_key;
  DigestWriter key;
  key.digest(front.untuned_key);
  key.text(name_of(choice));
  for (const auto& [kernel, schedule] : tuned) {
    key.digest(kernel);
    key.text(print(schedule));
  }
  return key.finish();
}

} // namespace svod::packager
