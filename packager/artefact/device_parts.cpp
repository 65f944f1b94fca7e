#include "packager/artefact/device_parts.h"

#include "compiler/plan/place_steps.h"
#include "compiler/support/bytes.h"
#include "compiler/support/join.h"
#include "compiler/support/threads.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/ptx.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/machine_code.h"
#include "packager/artefact/stub_jobs.h"
#include "packager/artefact/weights.h"
#include "runtime_stub/checksum.h"
#include "runtime_stub/device_format.h"

#include <algorithm>
#include <charconv>
#include <cstring>

namespace svod::packager {

std::string nodes_of(const plan::Plan& plan, const plan::Step& step) {
  return join(plan.graph.names_of(step.sources));
}

// The programs of the plan that the processor runs.
static ProcessorCalls calls_of(const plan::Plan& plan) {
  ProcessorCalls out;
  for (const plan::Step& step : plan.steps)
    if (step.is_here) out.emplace(step.program, plan.programs[step.program]);
  return out;
}

// Two plans of one model hand one function the same tensors.
static bool is_same_call(const ScheduledKernel& a, const ScheduledKernel& b) {
  return b.call() != nullptr && a.call()->digest == b.call()->digest &&
         a.call()->tensors == b.call()->tensors;
}

ProgramsHere programs_here(const ProcessorCalls& calls, const plan::Plan& here) {
  ProgramsHere out;
  for (const auto& [number, kernel] : calls)
    for (uint32_t p = 0; p < here.programs.size(); p++)
      if (is_same_call(kernel, here.programs[p])) {
        out.emplace_back(number, p);
        break;
      }
  return out;
}

std::string device_fault(const plan::Plan& plan, const plan::Plan& here) {
  auto of = [&](const plan::Step& step) {
    const std::string nodes = nodes_of(plan, step);
    return nodes.empty() ? "" : " (" + nodes + ")";
  };
  bool any_there = false;
  for (const plan::Step& step : plan.steps) {
    if (step.kind == plan::StepKind::Loop)
      return "it has a loop whose length the run decides" + of(step);
    if (step.kind == plan::StepKind::If)
      return "it has a condition that the run decides" + of(step);
    any_there |= step.kind == plan::StepKind::LaunchProgram && !step.is_here;
  }
  const auto calls = calls_of(plan);
  if (calls.empty()) return "";
  if (!any_there) return "all that it computes is C++ of its own";
  for (const plan::Step& step : plan.steps)
    if (step.is_here &&
        programs_here({{step.program, plan.programs[step.program]}}, here).empty())
      return "the processor calls its C++ with other tensors than a GPU's plan would" +
             of(step);
  return "";
}

std::string ptx_text(const Target& device, const codegen::Kernels& kernels,
                     const codegen::KernelSource& kernel, std::string& error) {
  const auto level = std::ranges::find(device.levels, kernel.level, &Level::suffix);
  toolchain::Source source;
  source.text = kernel.text;
  source.flags = kernel.flags;
  source.flags.push_back("-Dsvod_kernel=" + kernel.symbol);
  static const toolchain::Compiler compiler = package_compiler();
  toolchain::CompileResult result =
      compiler.compile(device, *level, source, toolchain::Emit::Assembly);
  if (!result.ok) error = compile_fault(kernels, kernel, result.diagnostics);
  const auto number = static_cast<size_t>(level - device.levels.begin());
  const ScheduledKernel& program = kernels.plan.programs[kernel.program];
  return toolchain::with_block_threads(std::string(text_of(result.output)),
                                       program.levels[number].gpu->threads);
}

namespace {

// Texts and code behind the tables, each text with a zero byte at its end.
class Blob {
public:
  explicit Blob(size_t tables) : bytes_(tables) {}
  uint32_t add(const std::string& text) {
    return add(std::as_bytes(std::span(text.c_str(), text.size() + 1)));
  }
  uint32_t add(std::span<const std::byte> bytes) {
    const auto at = static_cast<uint32_t>(bytes_.size());
    bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
    return at;
  }
  void align(size_t bytes) { bytes_.resize((bytes_.size() + bytes - 1) / bytes * bytes); }
  template <class T> void put(size_t at, const T& value) {
    std::memcpy(bytes_.data() + at, &value, sizeof value);
  }
  std::vector<std::byte>& bytes() { return bytes_; }

private:
  std::vector<std::byte> bytes_;
};

uint32_t architecture(const Level& level) {
  constexpr std::string_view kBegin = "sm_";
  uint32_t out = 0;
  const char* const end = level.name.data() + level.name.size();
  const char* const rest =
      std::from_chars(level.name.data() + kBegin.size(), end, out).ptr;
  return rest == end ? out : out | SVOD_ONLY_THIS;
}

bool runs_here(const codegen::Kernels& kernels, const codegen::KernelSource& kernel) {
  return kernels.plan.programs[kernel.program].call() != nullptr;
}

// One of nothing where no step is the GPU's.
uint32_t graphs_of(const plan::Plan& plan) {
  return static_cast<uint32_t>(std::max<int64_t>(plan::crossings_of(plan).graphs, 1));
}

SvodLaunchShape shape_of(const ScheduledKernel& program, size_t level) {
  const GpuSchedule& gpu = *program.levels[level].gpu;
  SvodLaunchShape shape{};
  shape.blocks = static_cast<uint32_t>(block_count(program, gpu));
  shape.threads = static_cast<uint32_t>(gpu.threads);
  shape.scratch_bytes = static_cast<uint64_t>(scratch_of_launch(program, gpu));
  shape.shared_bytes = static_cast<uint32_t>(shared_of_launch(program, gpu));
  shape.counters = static_cast<uint32_t>(counters_of_launch(program, gpu));
  return shape;
}

std::vector<std::byte> blob_of(const Target& device, const codegen::Kernels& kernels,
                               const std::vector<std::string>& texts,
                               const std::vector<std::vector<std::byte>>& codes) {
  const plan::Plan& plan = kernels.plan;
  const size_t levels = device.levels.size(), programs = plan.programs.size();
  const size_t first = (sizeof(SvodDeviceHeader) + levels * sizeof(uint32_t) + 7) / 8 * 8;
  const size_t first_place = first + levels * programs * sizeof(SvodLaunchShape);
  const size_t first_code = first_place + plan.slots.size() * sizeof(uint64_t);
  Blob blob(first_code + levels * sizeof(uint32_t));
  for (size_t i = 0; i < kernels.sources.size(); i++) {
    const codegen::KernelSource& kernel = kernels.sources[i];
    const auto level = static_cast<size_t>(
        std::ranges::find(device.levels, kernel.level, &Level::suffix) -
        device.levels.begin());
    const ScheduledKernel& program = plan.programs[kernel.program];
    SvodLaunchShape shape{};
    if (runs_here(kernels, kernel)) {
      shape.name = blob.add(kernel.symbol.substr(0, kernel.symbol.find('_')));
      for (size_t l = 0; l < levels; l++)
        blob.put(first + (l * programs + kernel.program) * sizeof shape, shape);
      continue;
    }
    shape = shape_of(program, level);
    shape.name = blob.add(kernel.symbol);
    shape.ptx = blob.add(texts[i]);
    blob.put(first + (level * programs + kernel.program) * sizeof shape, shape);
  }
  for (size_t i = 0; i < levels; i++) {
    if (codes[i].empty()) continue;
    blob.align(SVOD_ALIGN);
    blob.put(first_code + i * sizeof(uint32_t), blob.add(codes[i]));
  }
  for (size_t i = 0; i < levels; i++)
    blob.put(sizeof(SvodDeviceHeader) + i * sizeof(uint32_t),
             architecture(device.levels[i]));
  SvodDeviceHeader header{};
  std::memcpy(header.magic, "SVODPTX", sizeof header.magic);
  header.version = SVOD_DEVICE_VERSION;
  header.bytes = static_cast<uint32_t>(blob.bytes().size());
  header.architectures = static_cast<uint32_t>(levels);
  header.programs = static_cast<uint32_t>(programs);
  header.first_launch = static_cast<uint32_t>(first);
  header.first_code = static_cast<uint32_t>(first_code);
  header.first_place = static_cast<uint32_t>(first_place);
  for (size_t i = 0; i < plan.slots.size(); i++)
    blob.put(first_place + i * sizeof(uint64_t),
             plan.slots[i].here.value_or(SVOD_NO_PLACE));
  header.graphs = graphs_of(plan);
  header.here_bytes = plan.here_bytes;
  blob.put(0, header);
  SvodChecksum sum;
  sum.add(blob.bytes().data(), blob.bytes().size());
  header.checksum = sum.finish();
  blob.put(0, header);
  return std::move(blob.bytes());
}

// By level; empty where there is no ptxas, or where it refuses.
std::vector<std::vector<std::byte>> assemble_all(const std::string& ptxas,
                                                 const Target& device,
                                                 const codegen::Kernels& kernels,
                                                 const std::vector<std::string>& texts) {
  std::vector<std::vector<std::byte>> out(device.levels.size());
  for (size_t level = 0; level < out.size() && !ptxas.empty(); level++) {
    std::vector<toolchain::PtxText> own;
    for (size_t i = 0; i < texts.size(); i++)
      if (kernels.sources[i].level == device.levels[level].suffix && !texts[i].empty())
        own.push_back({texts[i], kernels.sources[i].symbol});
    out[level] = assemble(ptxas, device.levels[level].name, own);
  }
  return out;
}

// Adds the parts of an entry but the weights.
class DeviceBuilder {
public:
  DeviceBuilder(const Target& host, const Target& device, const std::string& ptxas)
      : host_(host), device_(device), ptxas_(ptxas) {}
  bool add_entry(const codegen::Kernels& kernels, const ImageContents& contents,
                 std::string& error);
  void add_weights(const Plans& plans, const SharedWeights& weights);
  DeviceParts finish() { return std::move(out_); }

private:
  toolchain::DataObject section(const std::string& name) const {
    return {".rodata.svod_device_" + name, "svod_device_" + name, SVOD_ALIGN};
  }
  void note_assembled(const std::vector<std::vector<std::byte>>& codes);
  void add_room(const ImageContents& contents, uint32_t graphs);

  const Target& host_;
  const Target& device_;
  const std::string& ptxas_;
  DeviceParts out_;
};

// An architecture whose code ptxas makes for some entries alone is in both lists.
void DeviceBuilder::note_assembled(const std::vector<std::vector<std::byte>>& codes) {
  for (size_t i = 0; i < codes.size() && !ptxas_.empty(); i++) {
    const std::string& name = device_.levels[i].name;
    std::vector<std::string>& list = codes[i].empty() ? out_.refused : out_.assembled;
    if (std::ranges::find(list, name) == list.end()) list.push_back(name);
  }
}

void DeviceBuilder::add_room(const ImageContents& contents, uint32_t graphs) {
  const ImageEntry& entry = contents.entries.front();
  size_t buffers = 0;
  for (const ImageStep& step : entry.steps) buffers = std::max(buffers, step.args.size());
  if (out_.arena_bytes == 0) out_.arena_bytes = SVOD_DEVICE_LINE;
  out_.arena_bytes +=
      SVOD_DEVICE_SEAT + svod_device_bytes(entry.inputs.size(), entry.outputs.size(),
                                           contents.programs.size(), buffers, graphs);
}

bool DeviceBuilder::add_entry(const codegen::Kernels& kernels,
                              const ImageContents& contents, std::string& error) {
  std::vector<std::string> texts(kernels.sources.size()), errors(texts.size());
  run_on_threads(texts.size(), 0, [&](size_t i) {
    if (!runs_here(kernels, kernels.sources[i]))
      texts[i] = ptx_text(device_, kernels, kernels.sources[i], errors[i]);
  });
  for (const std::string& one : errors)
    if (!one.empty()) error = one;
  if (!error.empty()) return false;
  const auto codes = assemble_all(ptxas_, device_, kernels, texts);
  note_assembled(codes);
  const std::string number = std::to_string(out_.sizes.size());
  const std::vector<std::byte> image = build_image(contents),
                               blob = blob_of(device_, kernels, texts, codes);
  out_.objects.push_back(
      toolchain::make_data_object(host_, section("image_" + number), image));
  out_.objects.push_back(
      toolchain::make_data_object(host_, section("programs_" + number), blob));
  out_.sizes.push_back({image.size(), contents.weight_bytes, blob.size()});
  out_.calls.push_back(calls_of(kernels.plan));
  add_room(contents, graphs_of(kernels.plan));
  return true;
}

void DeviceBuilder::add_weights(const Plans& plans, const SharedWeights& weights) {
  if (weights.bytes == 0) return;
  out_.objects.push_back(toolchain::make_data_object(
      host_, section("weights"),
      [&](const toolchain::ByteSink& sink) { produce_weights(plans, weights, sink); }));
}

// The contents with weights where all entries have them.
ImageContents with_weights(ImageContents contents, uint64_t bytes,
                           const std::map<uint64_t, SharedWeights::Place>& places) {
  contents.manifest = "{}";
  contents.weight_bytes = bytes;
  for (SvodSlot& slot : contents.entries.front().slots)
    if (slot.slot_class == SVOD_SLOT_WEIGHT) slot.offset = places.at(slot.offset).offset;
  return contents;
}

} // namespace

std::optional<DeviceParts> build_device(const Target& host, const Target& device,
                                        const std::vector<DeviceEntry>& entries,
                                        const std::string& ptxas, std::string& error) {
  Plans plans;
  for (const DeviceEntry& entry : entries) plans.push_back(&entry.kernels.plan);
  const SharedWeights weights =
      plans.size() == 1 ? weights_of_one(*plans.front()) : share_weights(plans);
  DeviceBuilder builder(host, device, ptxas);
  for (size_t i = 0; i < entries.size(); i++)
    if (!builder.add_entry(
            entries[i].kernels,
            with_weights(entries[i].contents, weights.bytes, weights.places[i]), error))
      return std::nullopt;
  builder.add_weights(plans, weights);
  return builder.finish();
}

} // namespace svod::packager
