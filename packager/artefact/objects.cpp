// Kernels and stub go through the object cache in one batch; image and weights become
// data objects without passing a compiler. The image is built last, because its manifest
// tells sizes of all the others, and of itself: so it is built again until its size
// agrees. Firmware has no image: its run is one more source, and the manifest lies in a
// section of its own, which a linker drops unless somebody asks for it.
#include "packager/artefact/objects.h"

#include "compiler/support/check.h"
#include "compiler/support/threads.h"
#include "compiler/toolchain/call_graph.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/link.h"
#include "compiler/toolchain/link_once.h"
#include "compiler/toolchain/object_facts.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/compress_weights.h"
#include "packager/artefact/device_parts.h"
#include "packager/artefact/expand_weights.h"
#include "packager/artefact/glue.h"
#include "packager/artefact/kernel_jobs.h"
#include "packager/artefact/ready_stub.h"
#include "packager/artefact/straight_run.h"
#include "packager/artefact/weights.h"
#include "runtime_stub/checksum.h"

#include <algorithm>
#include <future>
#include <limits>

namespace svod::packager {

namespace {

struct KernelObject {
  uint64_t bytes = 0, stack = 0;          // bytes of its own
  std::map<std::string, uint64_t> shared; // with other kernels, and of other models
  toolchain::SpillFacts spills;
  std::string error;
  std::string entry = {}; // what the kernel is called, if its code says so
};

// Weights in a form of fewer bytes.
struct StoredForm {
  uint64_t bytes = 0, scratch = 0;
  std::function<void(const ByteSink&)> write;
};

template <class Form> StoredForm stored_form_of(Form form) {
  const auto shared = std::make_shared<const Form>(std::move(form));
  return {shared->bytes(), shared->scratch_bytes(),
          [shared](const ByteSink& sink) { shared->write(sink); }};
}

class ObjectBuilder {
public:
  ObjectBuilder(const Target& target, const codegen::Kernels& kernels,
                const ObjectOptions& options, ImageContents& contents)
      : target_(target), kernels_(kernels), options_(options), contents_(contents) {}

  bool compile_code(std::string& error); // and the weights
  void build_image_object(const ManifestOf& manifest);
  void build_manifest_object(const ManifestOf& manifest);
  bool compile_glue(std::string& error);
  Objects take() { return std::move(out_); }

private:
  void add_kernels();
  void add_stub();
  toolchain::CompileJob run_job(std::string text) const;
  std::string run_text() const;
  bool compile(std::string& error, bool counted);
  std::string fault_of(const toolchain::CompileAllResult& result) const;
  KernelObject finish_kernel(size_t number, const toolchain::CallGraph& stub,
                             std::map<std::string, std::string> names);
  bool finish_code(std::string& error);
  void finish_module();
  std::map<std::string, std::string> shared_names() const;
  bool share_stub(std::map<std::string, std::string> names,
                  const std::vector<KernelObject>& kernels, std::string& error);
  void count_bytes(const std::vector<KernelObject>& kernels);
  uint64_t stack_of(toolchain::CallGraph& stub,
                    const std::vector<KernelObject>& kernels) const;
  void build_weights();
  // Two libraries in one program each have theirs.
  // Code reaches 2 GiB in either direction; what is not weights is far below 1 GiB.
  bool weights_are_far() const {
    return target_.is_x86() && contents_.weight_bytes > uint64_t{1} << 30;
  }
  std::string weights_symbol() const { return options_.prefix + "_weights"; }
  bool is_compressed() const { return options_.place == WeightPlace::Zstd; }
  void produce(const ByteSink& sink) const;
  std::optional<StoredForm> stored_form(const ByteSink& seen) const;
  bool is_firmware() const { return options_.stub == StubKind::Firmware; }
  bool is_module() const { return target_.kind == TargetKind::Wasm; }

  const Target& target_;
  const codegen::Kernels& kernels_;
  const ObjectOptions& options_;
  ImageContents& contents_;
  toolchain::Compiler compiler_ = package_compiler();
  std::vector<toolchain::CompileJob> jobs_;
  Objects out_;
};

void ObjectBuilder::add_kernels() {
  for (const codegen::KernelSource& kernel : kernels_.sources)
    jobs_.push_back(kernel_job(target_, kernel, options_.flags));
}

toolchain::CompileJob ObjectBuilder::run_job(std::string text) const {
  toolchain::Source run;
  run.name = "run.cpp";
  run.text = std::move(text);
  run.flags = stub_flags(target_, {});
  return {&target_.levels.front(), std::move(run), "run.cpp"};
}

// Launches are calls or words, whichever is shorter. Code for speed has words only where
// reading them does not show.
std::string ObjectBuilder::run_text() const {
  StraightRun run{.prefix = options_.prefix,
                  .kernels = kernels_,
                  .contents = contents_,
                  .profile = options_.profile};
  const std::string calls = straight_run_text(run);
  if (target_.kind != TargetKind::Bare || run.profile) return calls;
  constexpr double kShare = 0.005;
  run.words = target_.is_small() ? std::numeric_limits<double>::infinity() : kShare;
  const std::string words = straight_run_text(run);
  if (words == calls) return calls;
  const std::vector<toolchain::CompileJob> jobs{run_job(calls), run_job(words)};
  const toolchain::CompileAllResult result =
      toolchain::compile_all(compiler_, target_, jobs, options_.cache);
  if (!result.ok()) return calls;
  const auto bytes = [&](size_t i) {
    const toolchain::ObjectFacts facts =
        toolchain::object_facts(result.results[i].output);
    return facts.code_bytes + facts.constant_bytes;
  };
  return bytes(1) < bytes(0) ? words : calls;
}

void ObjectBuilder::add_stub() {
  if (is_firmware()) jobs_.push_back(run_job(run_text()));
  const StubParts parts{.self_check = options_.self_check,
                        .several = contents_.entries.size() > 1,
                        .device = options_.device != nullptr,
                        .states = !contents_.entries.front().states.empty(),
                        .changes = contents_.changes,
                        .pictures = std::ranges::any_of(contents_.entries.front().inputs,
                                                        [](const ImageTensor& input) {
                                                          return input.role ==
                                                                 SVOD_ROLE_PICTURE;
                                                        }),
                        .program = options_.parts,
                        .place = options_.place};
  for (toolchain::CompileJob& job :
       stub_jobs(target_, options_.stub, options_.prefix, parts)) {
    job.ready = ready_object(toolchain::object_key(compiler_, target_, job));
    jobs_.push_back(std::move(job));
  }
}

// Not counted is the glue, which is no kernel: it holds the image's size, and that grows
// with the names in the model.
bool ObjectBuilder::compile(std::string& error, bool counted) {
  toolchain::CompileAllResult result =
      toolchain::compile_all(compiler_, target_, jobs_, options_.cache, 0,
                             counted ? options_.on_done : toolchain::OnJobDone());
  if (counted) {
    out_.compiled += result.compiled;
    out_.reused += result.reused;
  }
  if (!result.ok()) {
    error = fault_of(result);
    return false;
  }
  const size_t kernels = counted ? kernels_.sources.size() : 0;
  for (size_t i = 0; i < kernels; i++)
    if (!result.results[i].remedy.empty())
      out_.remedies.push_back("kernel " + kernel_in_model(kernels_, kernels_.sources[i]) +
                              " " + result.results[i].remedy);
  for (toolchain::CompileResult& one : result.results)
    out_.code.push_back(std::move(one.output));
  return true;
}

// The first kernel's fault, with its place in the model: those of the others are mostly
// the same.
std::string ObjectBuilder::fault_of(const toolchain::CompileAllResult& result) const {
  const bool kernels = jobs_.size() > kernels_.sources.size();
  for (size_t i = 0; kernels && i < kernels_.sources.size(); i++)
    if (!result.results[i].ok)
      return compile_fault(kernels_, kernels_.sources[i], result.diagnostics());
  return result.diagnostics();
}

// Every kernel is compiled as svod_kernel and named afterwards: so the cache has one
// object for equal kernels of any two models, whatever their numbers.
KernelObject ObjectBuilder::finish_kernel(size_t number, const toolchain::CallGraph& stub,
                                          std::map<std::string, std::string> names) {
  const std::string name = "svod_kernel";
  std::vector<std::byte>& code = out_.code[number];
  const toolchain::ObjectFacts facts = toolchain::object_facts(code);
  toolchain::CallGraph calls;
  calls.add(code);
  for (const char* copier : {"memcpy", "memmove", "memset"})
    calls.define(copier, stub.deepest(copier));
  KernelObject out{facts.code_bytes + facts.constant_bytes,
                   calls.deepest(name),
                   {},
                   toolchain::spill_facts(target_, code),
                   ""};
  const std::string& symbol = kernels_.sources[number].symbol;
  names[name] = symbol;
  std::vector<std::string> keep{name};
  for (const toolchain::LinkOnce& function : toolchain::link_once_functions(code)) {
    keep.push_back(function.symbol);
    names[function.symbol] = function.name;
    out.shared[function.name] = function.bytes;
    out.bytes -= function.bytes;
  }
  std::map<std::string, std::string> also;
  if (names[name] != symbol) {
    out.entry = names[name];
    also[symbol] = ".text." + name;
  }
  toolchain::ObjectResult named = toolchain::localize(code, keep, names, also);
  if (!named.ok)
    out.error = named.diagnostics;
  else
    code = std::move(named.object);
  return out;
}

// The longest chain of calls from where a run begins. Firmware calls each kernel by name.
// Elsewhere two calls go through pointers: the replay's to svod_launch, which jumps to a
// kernel, and, in a program with threads, the pool's back to the replay.
uint64_t ObjectBuilder::stack_of(toolchain::CallGraph& stub,
                                 const std::vector<KernelObject>& kernels) const {
  // A kernel may align its frame to a vector; the glue is compiled last and holds little.
  constexpr uint64_t kAlignment = 64, kGlue = 32, kWord = 8, kFrame = 16;
  if (is_firmware()) {
    // The ABI aligns frames to a word of eight bytes, a kernel with vectors its own to
    // one.
    const uint64_t vector = std::max(contents_.align, kWord) - kWord;
    for (size_t i = 0; i < kernels.size(); i++)
      stub.define(kernels_.sources[i].symbol, kernels[i].stack + vector);
    stub.define("svod_profile", 0); // of the test that measures
    const char* start = contents_.pools.empty() ? "_run_sized" : "_run_pools";
    return (stub.deepest(options_.prefix + start) + kWord - 1) / kWord * kWord;
  }
  uint64_t deepest = 0;
  for (const KernelObject& kernel : kernels) deepest = std::max(deepest, kernel.stack);
  stub.define("svod_launch", deepest + (target_.is_x86() ? kAlignment : 0) + kGlue +
                                 stub.deepest("svod_pool_run"));
  SVOD_CHECK(stub.add_call("run_chunk", "svod_launch")) << "the replay calls no kernel";
  const bool program = options_.stub == StubKind::Program;
  const char* run = contents_.entries.size() > 1 ? "_run_entry" : "_run";
  const std::string start = program ? "svod_start" : options_.prefix + run;
  return (stub.deepest(start) + kFrame - 1) / kFrame * kFrame;
}

// Behind the run, which follows the kernels, stands what several libraries share. It is
// told apart from functions of the same names that the program may have.
std::map<std::string, std::string> ObjectBuilder::shared_names() const {
  std::map<std::string, std::string> out;
  if (!is_firmware()) return out;
  for (size_t i = kernels_.sources.size() + 1; i < out_.code.size(); i++)
    for (const std::string& name : toolchain::defined_symbols(out_.code[i]))
      if (!name.starts_with("svod_")) out[name] = "svod_" + name;
  return out;
}

bool ObjectBuilder::share_stub(std::map<std::string, std::string> names,
                               const std::vector<KernelObject>& kernels,
                               std::string& error) {
  const size_t run = kernels_.sources.size();
  for (size_t i = 0; i < run; i++)
    if (!kernels[i].entry.empty()) names[kernels_.sources[i].symbol] = kernels[i].entry;
  for (size_t i = run; i < out_.code.size(); i++) {
    toolchain::ObjectResult named = toolchain::localize(
        out_.code[i], toolchain::defined_symbols(out_.code[i]), names);
    error = named.diagnostics;
    if (!named.ok) return false;
    if (i == run)
      out_.code[i] = std::move(named.object);
    else
      out_.shared.push_back(std::move(named.object));
  }
  out_.code.resize(run + 1);
  return true;
}

// Symbols of a module are named before it is compiled, and end with the link; its stack
// is LLVM's secret.
void ObjectBuilder::finish_module() {
  constexpr uint64_t kStack = 1 << 20;
  for (size_t i = 0; i < out_.code.size(); i++) {
    const toolchain::ObjectFacts facts = toolchain::object_facts(out_.code[i]);
    (i < kernels_.sources.size() ? out_.sizes.code : out_.sizes.stub) +=
        facts.code_bytes + facts.constant_bytes;
  }
  out_.sizes.stack = kStack;
}

// Kernels come first, then the stub.
bool ObjectBuilder::finish_code(std::string& error) {
  if (is_module()) {
    finish_module();
    return true;
  }
  toolchain::CallGraph stub;
  for (size_t i = kernels_.sources.size(); i < out_.code.size(); i++) {
    const toolchain::ObjectFacts facts = toolchain::object_facts(out_.code[i]);
    out_.sizes.stub += facts.code_bytes + facts.constant_bytes;
    stub.add(out_.code[i]);
  }
  const std::map<std::string, std::string> names = shared_names();
  std::vector<KernelObject> kernels(kernels_.sources.size());
  run_on_threads(kernels.size(), 0,
                 [&](size_t i) { kernels[i] = finish_kernel(i, stub, names); });
  for (size_t i = 0; i < kernels.size(); i++) {
    if (!kernels[i].error.empty()) {
      error = kernels[i].error;
      return false;
    }
    if (kernels[i].spills.loops > 0)
      out_.spills.emplace_back(kernels_.sources[i].symbol, kernels[i].spills);
  }
  count_bytes(kernels);
  out_.sizes.stack = stack_of(stub, kernels);
  return !is_firmware() || share_stub(names, kernels, error);
}

// What computes is a kernel's own, in equal shares where it is several kernels'.
void ObjectBuilder::count_bytes(const std::vector<KernelObject>& kernels) {
  std::map<std::string, uint64_t> sharers;
  for (const KernelObject& kernel : kernels) {
    out_.sizes.code += kernel.bytes;
    for (const auto& [name, bytes] : kernel.shared)
      if (sharers[name]++ == 0) out_.sizes.code += bytes;
  }
  for (const KernelObject& kernel : kernels) {
    uint64_t own = kernel.bytes;
    for (const auto& [name, bytes] : kernel.shared)
      if (toolchain::is_kernel(name)) own += bytes / sharers.at(name);
    out_.kernel_bytes.push_back(own);
  }
}

// Nothing of the weights waits for code.
bool ObjectBuilder::compile_code(std::string& error) {
  std::future<void> weights = std::async(std::launch::async, [&] { build_weights(); });
  add_kernels();
  add_stub();
  const bool compiled = compile(error, true) && finish_code(error);
  weights.get();
  return compiled;
}

// Another form of the section, which programs make the section of.
std::optional<StoredForm> ObjectBuilder::stored_form(const ByteSink& seen) const {
  if (is_compressed())
    return stored_form_of(
        CompressedWeights(contents_.weight_bytes, [&](const ByteSink& to) {
          produce([&](std::span<const std::byte> bytes) { seen(bytes), to(bytes); });
        }));
  if (options_.place != WeightPlace::Expand) return std::nullopt;
  return stored_form_of(
      options_.shared
          ? ExpandedWeights(options_.plans, *options_.shared, seen)
          : ExpandedWeights({&kernels_.plan}, weights_of_one(kernels_.plan), seen));
}

void ObjectBuilder::produce(const ByteSink& sink) const {
  if (options_.shared)
    produce_weights(options_.plans, *options_.shared, sink);
  else
    produce_weights(kernels_.plan, sink);
}

void ObjectBuilder::build_weights() {
  constexpr size_t kFirst = 4096; // enough to tell them from other bytes
  SvodChecksum checksum;
  const ByteSink seen = [&](std::span<const std::byte> bytes) {
    checksum.add(bytes.data(), bytes.size());
    const size_t more = std::min(bytes.size(), kFirst - out_.first_weights.size());
    out_.first_weights.insert(out_.first_weights.end(), bytes.begin(),
                              bytes.begin() + static_cast<std::ptrdiff_t>(more));
  };
  const bool any = contents_.weight_bytes != 0;
  if (any && options_.place != WeightPlace::File) {
    const char* section = is_firmware()       ? ".rodata.svod.weights"
                          : weights_are_far() ? ".lrodata.svod_weights"
                                              : ".rodata.svod_weights";
    if (options_.leaves_room && !weights_are_far()) {
      out_.weights = toolchain::make_room_object(
          target_, {section, weights_symbol(), contents_.align}, contents_.weight_bytes);
      out_.room = {section, contents_.weight_bytes};
      contents_.weight_checksum = 0;
      return;
    }
    const std::optional<StoredForm> form = stored_form(seen);
    if (form) out_.sizes.stored = form->bytes, out_.sizes.scratch = form->scratch;
    out_.weights = toolchain::make_data_object(
        target_, {section, weights_symbol(), contents_.align, weights_are_far()},
        [&](const toolchain::ByteSink& sink) {
          if (form) return form->write(sink);
          produce([&](std::span<const std::byte> bytes) { seen(bytes), sink(bytes); });
        });
  } else if (any) {
    out_.weight_file.emplace("weights");
    produce([&](std::span<const std::byte> bytes) {
      seen(bytes);
      out_.weight_file->append(bytes);
    });
  }
  contents_.weight_checksum = checksum.finish();
  if (!out_.weight_file) return;
  const SvodWeightsEnd end = weights_end(contents_);
  out_.weight_file->append(std::as_bytes(std::span(&end, 1)));
}

void ObjectBuilder::build_image_object(const ManifestOf& manifest) {
  std::vector<std::byte> image;
  // The size has only so many digits: this settles in two or three rounds.
  for (int round = 0; image.empty() || image.size() != out_.sizes.image; round++) {
    SVOD_CHECK(round < 10) << "the image's size does not settle";
    out_.sizes.image = image.size();
    contents_.manifest = manifest(out_.sizes);
    image = build_image(contents_);
  }
  out_.image = toolchain::make_data_object(
      target_, {".rodata.svod_image", "svod_image", SVOD_ALIGN},
      std::span<const std::byte>(image));
}

// A zero byte follows it.
void ObjectBuilder::build_manifest_object(const ManifestOf& manifest) {
  contents_.manifest = manifest(out_.sizes);
  const std::string symbol = options_.prefix + "_manifest";
  out_.image = toolchain::make_data_object(
      target_, {".rodata.svod_manifest", symbol, 1},
      std::as_bytes(
          std::span(contents_.manifest.c_str(), contents_.manifest.size() + 1)));
}

bool ObjectBuilder::compile_glue(std::string& error) {
  if (is_firmware() && !options_.self_check) return true;
  GlueData data{out_.sizes.image, contents_.weight_bytes,
                out_.weights ? weights_symbol() : "", weights_are_far()};
  if (is_made_at_start(options_.place)) data.stored = out_.sizes.stored;
  if (contents_.entries.size() > 1 && options_.stub == StubKind::Program)
    for (const ImageEntry& entry : contents_.entries) data.entries.push_back(entry.name);
  if (options_.device != nullptr) {
    data.devices = options_.device->sizes;
    for (const ProcessorCalls& calls : options_.device->calls) {
      data.programs_here.push_back(programs_here(calls, kernels_.plan));
      SVOD_CHECK(data.programs_here.back().size() == calls.size())
          << "the processor lacks a kernel that it runs for a GPU";
    }
    for (const toolchain::MemoryFile& part : options_.device->objects)
      out_.device.push_back(&part);
  }
  toolchain::Source source;
  source.name = "glue.cpp";
  source.text = is_firmware() ? self_check_text(options_.prefix, contents_)
                              : glue_text(target_, kernels_, data);
  source.flags = stub_flags(target_, {});
  jobs_ = {{&target_.levels.front(), std::move(source)}};
  return compile(error, false);
}

} // namespace

std::optional<Objects> build_objects(const Target& target,
                                     const codegen::Kernels& kernels,
                                     const ObjectOptions& options,
                                     ImageContents& contents, const ManifestOf& manifest,
                                     std::string& error) {
  ObjectBuilder builder(target, kernels, options, contents);
  if (!builder.compile_code(error)) return std::nullopt;
  if (options.stub == StubKind::Firmware)
    builder.build_manifest_object(manifest);
  else
    builder.build_image_object(manifest);
  if (!builder.compile_glue(error)) return std::nullopt;
  return builder.take();
}

} // namespace svod::packager
