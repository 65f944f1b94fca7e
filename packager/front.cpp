// Reads, imports, and names the result by its content.
#include "packager/front.h"

#include "compiler/codegen/read_custom_ops.h"
#include "compiler/ir/digest.h"
#include "importer/check/read_model.h"
#include "importer/inputs/data_shapes.h"
#include "packager/artefact/objects.h"
#include "packager/version.h"

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

static void key_of(const importer::ModelPort& port, DigestWriter& key) {
  key.text(port.name);
  key.number(static_cast<uint64_t>(port.kind));
  key.number(port.optional);
  key.number(port.present);
  key.number(port.count);
  key.number(port.any_keys);
  key.number(port.keys.numbers.size());
  for (int64_t number : port.keys.numbers) key.number(static_cast<uint64_t>(number));
  key.number(port.keys.texts.size());
  for (const std::string& text : port.keys.texts) key.text(text);
}

static Digest untuned_key(const Front& front, const Options& options) {
  DigestWriter key;
  key.text(kVersion);
  key.text(package_compiler().identity());
  key.digest(front.model.digest);
  key.digest(graph_digest(front.graph));
  for (const GraphInput& input : front.graph.inputs()) key.text(input.name);
  for (const GraphOutput& output : front.graph.outputs()) key.text(output.name);
  key.number(front.interface.fixed.size());
  for (const auto& [name, bytes] : front.interface.fixed) {
    key.text(name);
    key.digest(sha256(bytes));
  }
  for (const auto* ports : {&front.interface.inputs, &front.interface.outputs})
    for (const importer::ModelPort& port : *ports) key_of(port, key);
  key.text(options.target.triple);
  for (const Level& level : options.target.levels) {
    key.text(level.name);
    for (const std::string& flag : level.flags) key.text(flag);
  }
  key.number(static_cast<uint64_t>(options.level));
  key.number(options.target.is_small());
  key.number(options.exact);
  key.number(options.search_budget);
  key.number(options.cut_budget);
  key.number(options.equal_budget);
  key.number(static_cast<uint64_t>(options.threads));
  key.number(static_cast<uint64_t>(options.emit));
  key.number(static_cast<uint64_t>(options.weights));
  key.text(options.name);
  if (!options.schedule.empty()) key.text(front.schedules);
  if (options.self_check) key.text("self-check");
  if (options.device)
    for (const Level& level : options.device->levels) key.text(level.name);
  // Limits choose between plans and between kernels of firmware.
  for (const auto& [word, limit] :
       {std::pair{"max-ram", options.max_ram}, {"max-flash", options.max_flash}}) {
    if (!limit || !options.emits_run()) continue;
    key.text(word);
    key.number(*limit);
  }
  for (const Options::Pool& pool : options.pools) {
    key.text(pool.name);
    key.number(pool.bytes);
  }
  for (const auto& [symbol, text] : front.kernel_texts) {
    key.text(symbol);
    key.text(text);
  }
  return key.finish();
}

std::optional<Front> read_front(const Options& options, Diags& diags) {
  auto start = std::chrono::steady_clock::now();
  importer::ImportOptions import = options.import;
  import.exact = options.exact;
  import.custom_ops = read_custom_files(options, diags);
  std::string schedules;
  if (!options.schedule.empty())
    schedules = read_file(options.schedule, diags).value_or("");
  TuningFile tuning = read_tuning(options, diags);
  std::map<std::string, std::string> kernel_texts;
  for (const auto& [symbol, path] : options.kernel_files)
    kernel_texts[symbol] = read_file(path, diags).value_or("");
  if (diags.failed()) return std::nullopt;
  std::optional<importer::Model> model =
      importer::read_model(options.model, import.limits, diags);
  if (!model) return std::nullopt;
  if (!options.shape_from.empty()) {
    auto set = importer::read_data_set(options.shape_from, *model, import.limits, diags);
    if (!set) return std::nullopt;
    import.data_shapes = std::move(set->shapes);
    import.data_values = std::move(set->values);
    import.data_ports = std::move(set->ports);
  }
  importer::ModelInterface interface;
  std::optional<Graph> graph = importer::import_model(*model, import, diags, &interface);
  if (!graph) return std::nullopt;
  std::chrono::duration<double, std::milli> took =
      std::chrono::steady_clock::now() - start;
  Front out{std::move(*model),
            std::move(*graph),
            std::move(interface),
            std::move(schedules),
            std::move(tuning),
            std::move(kernel_texts),
            {},
            took.count()};
  out.untuned_key = untuned_key(out, options);
  return out;
}

Digest plan_key(const Front& front, const ScheduleFile& tuned) {
  if (tuned.empty()) return front.untuned_key;
  DigestWriter key;
  key.digest(front.untuned_key);
  for (const auto& [kernel, schedule] : tuned) {
    key.digest(kernel);
    key.text(print(schedule));
  }
  return key.finish();
}

} // namespace svod::packager
