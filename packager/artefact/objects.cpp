// Kernels and stub go through the object cache in one batch; image and weights become
// data objects without passing a compiler. The image is built last, because its manifest
// tells sizes of all the others, and of itself: so it is built again until its size
// agrees.
#include "packager/artefact/objects.h"

#include "compiler/support/check.h"
#include "compiler/support/threads.h"
#include "compiler/toolchain/call_graph.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/link.h"
#include "compiler/toolchain/object_facts.h"
#include "packager/artefact/compile_faults.h"
#include "packager/artefact/glue.h"
#include "packager/artefact/ready_stub.h"
#include "packager/artefact/weights.h"
#include "runtime_stub/checksum.h"

#include <algorithm>
#include <future>

namespace svod::packager {

namespace {

struct KernelObject {
  uint64_t bytes = 0, stack = 0;
  toolchain::SpillFacts spills;
  std::string error;
};

class ObjectBuilder {
public:
  ObjectBuilder(const Target& target, const codegen::Kernels& kernels,
                const ObjectOptions& options, ImageContents& contents)
      : target_(target), kernels_(kernels), options_(options), contents_(contents) {}

  bool compile_code(std::string& error); // and the weights
  void build_image_object(const ManifestOf& manifest);
  bool compile_glue(std::string& error);
  Objects take() { return std::move(out_); }

private:
  void add_kernels();
  void add_stub();
  bool compile(std::string& error, bool counted);
  std::string fault_of(const toolchain::CompileAllResult& result) const;
  KernelObject finish_kernel(size_t number, const toolchain::CallGraph& stub);
  bool finish_code(std::string& error);
  uint64_t stack_of(toolchain::CallGraph& stub, uint64_t kernels) const;
  void build_weights();
  // Two libraries in one program each have theirs.
  // Code reaches 2 GiB in either direction; what is not weights is far below 1 GiB.
  bool weights_are_far() const {
    return target_.is_x86() && contents_.weight_bytes > uint64_t{1} << 30;
  }
  std::string weights_symbol() const { return options_.prefix + "_weights"; }

  const Target& target_;
  const codegen::Kernels& kernels_;
  const ObjectOptions& options_;
  ImageContents& contents_;
  toolchain::Compiler compiler_ = package_compiler();
  std::vector<toolchain::CompileJob> jobs_;
  Objects out_;
};

void ObjectBuilder::add_kernels() {
  for (const codegen::KernelSource& kernel : kernels_.sources) {
    auto level = std::ranges::find(target_.levels, kernel.level, &Level::suffix);
    SVOD_CHECK(level != target_.levels.end()) << "kernel of unknown level";
    toolchain::Source source;
    source.text = kernel.text;
    source.flags = options_.flags;
    source.flags.insert(source.flags.end(), kernel.flags.begin(), kernel.flags.end());
    source.flags = package_flags(std::move(source.flags));
    source.prelude_bytes = kernel.prelude_bytes;
    source.only_computes = true;
    jobs_.push_back({&*level, std::move(source), kernel.symbol});
  }
}

void ObjectBuilder::add_stub() {
  for (toolchain::CompileJob& job : stub_jobs(target_, options_.stub, options_.prefix)) {
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
KernelObject ObjectBuilder::finish_kernel(size_t number,
                                          const toolchain::CallGraph& stub) {
  const std::string name = "svod_kernel";
  std::vector<std::byte>& code = out_.code[number];
  const toolchain::ObjectFacts facts = toolchain::object_facts(code);
  toolchain::CallGraph calls;
  calls.add(code);
  for (const char* copier : {"memcpy", "memmove", "memset"})
    calls.define(copier, stub.deepest(copier));
  KernelObject out{facts.code_bytes + facts.constant_bytes, calls.deepest(name),
                   toolchain::spill_facts(target_, code), ""};
  toolchain::ObjectResult named = toolchain::localize(
      code, std::span(&name, 1), {{name, kernels_.sources[number].symbol}});
  if (!named.ok)
    out.error = named.diagnostics;
  else
    code = std::move(named.object);
  return out;
}

// The longest chain of calls from where a run begins. Two calls go through pointers: the
// replay's to svod_launch, which jumps to a kernel, and, in a program with threads, the
// pool's back to the replay.
uint64_t ObjectBuilder::stack_of(toolchain::CallGraph& stub, uint64_t kernels) const {
  // A kernel may align its frame to a vector; the glue is compiled last and holds little.
  constexpr uint64_t kAlignment = 64, kGlue = 32;
  stub.define("svod_launch", kernels + (target_.is_x86() ? kAlignment : 0) + kGlue +
                                 stub.deepest("svod_pool_run"));
  SVOD_CHECK(stub.add_call("run_chunk", "svod_launch")) << "the replay calls no kernel";
  const bool program = options_.stub == StubKind::Program;
  const std::string start = program ? "svod_start" : options_.prefix + "_run";
  return (stub.deepest(start) + 15) / 16 * 16;
}

// Kernels come first, then the stub.
bool ObjectBuilder::finish_code(std::string& error) {
  toolchain::CallGraph stub;
  for (size_t i = kernels_.sources.size(); i < out_.code.size(); i++) {
    const toolchain::ObjectFacts facts = toolchain::object_facts(out_.code[i]);
    out_.sizes.stub += facts.code_bytes + facts.constant_bytes;
    stub.add(out_.code[i]);
  }
  std::vector<KernelObject> kernels(kernels_.sources.size());
  run_on_threads(kernels.size(), 0,
                 [&](size_t i) { kernels[i] = finish_kernel(i, stub); });
  uint64_t deepest = 0;
  for (size_t i = 0; i < kernels.size(); i++) {
    if (!kernels[i].error.empty()) {
      error = kernels[i].error;
      return false;
    }
    out_.sizes.code += kernels[i].bytes;
    deepest = std::max(deepest, kernels[i].stack);
    if (kernels[i].spills.loops > 0)
      out_.spills.emplace_back(kernels_.sources[i].symbol, kernels[i].spills);
  }
  out_.sizes.stack = stack_of(stub, deepest);
  return true;
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

void ObjectBuilder::build_weights() {
  SvodChecksum checksum;
  auto produce = [&](const toolchain::ByteSink& sink) {
    produce_weights(kernels_.plan, [&](std::span<const std::byte> bytes) {
      checksum.add(bytes.data(), bytes.size());
      sink(bytes);
    });
  };
  if (contents_.weight_bytes != 0 && options_.weights_embedded) {
    const char* section =
        weights_are_far() ? ".lrodata.svod_weights" : ".rodata.svod_weights";
    out_.weights = toolchain::make_data_object(
        target_, {section, weights_symbol(), SVOD_ALIGN, weights_are_far()}, produce);
  } else if (contents_.weight_bytes != 0) {
    out_.weight_file.emplace("weights");
    produce([&](std::span<const std::byte> bytes) { out_.weight_file->append(bytes); });
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

bool ObjectBuilder::compile_glue(std::string& error) {
  GlueData data{out_.sizes.image, contents_.weight_bytes,
                out_.weights ? weights_symbol() : "", weights_are_far()};
  toolchain::Source source;
  source.name = "glue.cpp";
  source.text = glue_text(target_, kernels_, data);
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
  builder.build_image_object(manifest);
  if (!builder.compile_glue(error)) return std::nullopt;
  return builder.take();
}

} // namespace svod::packager
