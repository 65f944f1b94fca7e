// Kernels and stub go through the object cache in one batch; image and weights become
// data objects without passing a compiler. The image is built last, because its manifest
// tells sizes of all the others, and of itself: so it is built again until its size
// agrees.
#include "packager/artefact/objects.h"

#include "compiler/support/check.h"
#include "compiler/toolchain/call_graph.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/link.h"
#include "compiler/toolchain/object_facts.h"
#include "packager/artefact/glue.h"
#include "packager/artefact/ready_stub.h"
#include "packager/artefact/weights.h"
#include "runtime_stub/checksum.h"

#include <algorithm>

namespace svod::packager {

namespace {

class Builder {
public:
  Builder(const Target& target, const codegen::Kernels& kernels,
          const ObjectOptions& options, ImageContents& contents)
      : target_(target), kernels_(kernels), options_(options), contents_(contents) {}

  bool compile_code(std::string& error);
  void build_weights();
  void build_image_object(const ManifestOf& manifest);
  bool compile_glue(std::string& error);
  Objects take() { return std::move(out_); }

private:
  void add_kernels();
  void add_stub();
  bool compile(std::string& error, bool counted);
  bool name_kernels(std::string& error);
  // Two libraries in one program each have theirs.
  // Code reaches 2 GiB in either direction; what is not weights is far below 1 GiB.
  bool weights_are_far() const {
    return target_.is_x86() && contents_.weight_bytes > uint64_t{1} << 30;
  }
  std::string weights_symbol() const { return options_.prefix + "_weights"; }
  void measure();
  void measure_stack();

  const Target& target_;
  const codegen::Kernels& kernels_;
  const ObjectOptions& options_;
  ImageContents& contents_;
  toolchain::Compiler compiler_ = package_compiler();
  std::vector<toolchain::CompileJob> jobs_;
  Objects out_;
};

void Builder::add_kernels() {
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

void Builder::add_stub() {
  for (toolchain::CompileJob& job : stub_jobs(target_, options_.stub, options_.prefix)) {
    job.ready = ready_object(toolchain::object_key(compiler_, target_, job));
    jobs_.push_back(std::move(job));
  }
}

// Not counted is the glue, which is no kernel: it holds the image's size, and that grows
// with the names in the model.
bool Builder::compile(std::string& error, bool counted) {
  toolchain::CompileAllResult result =
      toolchain::compile_all(compiler_, target_, jobs_, options_.cache, 0,
                             counted ? options_.on_done : toolchain::OnJobDone());
  if (counted) {
    out_.compiled += result.compiled;
    out_.reused += result.reused;
  }
  if (!result.ok()) {
    error = result.diagnostics();
    return false;
  }
  for (toolchain::CompileResult& one : result.results)
    out_.code.push_back(std::move(one.output));
  return true;
}

// Every kernel is compiled as svod_kernel and named afterwards: so the cache has one
// object for equal kernels of any two models, whatever their numbers.
bool Builder::name_kernels(std::string& error) {
  const std::string name = "svod_kernel";
  for (size_t i = 0; i < kernels_.sources.size(); i++) {
    toolchain::ObjectResult named = toolchain::localize(
        out_.code[i], std::span(&name, 1), {{name, kernels_.sources[i].symbol}});
    if (!named.ok) {
      error = named.diagnostics;
      return false;
    }
    out_.code[i] = std::move(named.object);
  }
  return true;
}

// Kernels come first, then the stub.
void Builder::measure() {
  for (size_t i = 0; i < out_.code.size(); i++) {
    toolchain::ObjectFacts facts = toolchain::object_facts(out_.code[i]);
    uint64_t bytes = facts.code_bytes + facts.constant_bytes;
    if (i >= kernels_.sources.size()) {
      out_.sizes.stub += bytes;
      continue;
    }
    out_.sizes.code += bytes;
    const toolchain::SpillFacts spills = toolchain::spill_facts(target_, out_.code[i]);
    if (spills.loops > 0) out_.spills.emplace_back(kernels_.sources[i].symbol, spills);
  }
  measure_stack();
}

// The longest chain of calls from where a run begins. Two calls go through pointers: the
// replay's to svod_launch, which jumps to a kernel, and, in a program with threads, the
// pool's back to the replay.
void Builder::measure_stack() {
  // A kernel may align its frame to a vector; the glue is compiled last and holds little.
  constexpr uint64_t kAlignment = 64, kGlue = 32;
  toolchain::CallGraph stub;
  for (size_t i = kernels_.sources.size(); i < out_.code.size(); i++)
    stub.add(out_.code[i]);
  uint64_t deepest = 0;
  for (size_t i = 0; i < kernels_.sources.size(); i++) {
    toolchain::CallGraph kernel;
    kernel.add(out_.code[i]);
    for (const char* name : {"memcpy", "memmove", "memset"})
      kernel.define(name, stub.deepest(name));
    deepest = std::max(deepest, kernel.deepest("svod_kernel"));
  }
  stub.define("svod_launch", deepest + (target_.is_x86() ? kAlignment : 0) + kGlue +
                                 stub.deepest("svod_pool_run"));
  SVOD_CHECK(stub.add_call("run_chunk", "svod_launch")) << "the replay calls no kernel";
  const bool program = options_.stub == StubKind::Program;
  const std::string start = program ? "svod_start" : options_.prefix + "_run";
  out_.sizes.stack = (stub.deepest(start) + 15) / 16 * 16;
}

bool Builder::compile_code(std::string& error) {
  add_kernels();
  add_stub();
  if (!compile(error, true)) return false;
  measure();
  return name_kernels(error);
}

void Builder::build_weights() {
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

void Builder::build_image_object(const ManifestOf& manifest) {
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

bool Builder::compile_glue(std::string& error) {
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
  Builder builder(target, kernels, options, contents);
  if (!builder.compile_code(error)) return std::nullopt;
  builder.build_weights();
  builder.build_image_object(manifest);
  if (!builder.compile_glue(error)) return std::nullopt;
  return builder.take();
}

} // namespace svod::packager
