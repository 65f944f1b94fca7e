// All of a package is built as for a library, but for one source more: it hands out what
// the stub keeps to itself. So weights and the choice of the CPU level are the package's.
#include "packager/verify/loaded_kernels.h"

#include "packager/artefact/link_output.h"

#include <algorithm>

namespace svod::packager {

namespace {

constexpr const char* kDoors =
    R"(#include "runtime_stub/cpu.h"
#define DOOR extern "C" __attribute__((visibility("default")))
static SvodModel model() {
  SvodModel out;
  svod_get_model(&out);
  return out;
}
DOOR int32_t svod_level() {
  const SvodModel here = model();
  return svod_choose_level(&here);
}
DOOR const void* svod_weights() { return model().weights; }
DOOR int32_t svod_call_kernel(uint32_t level, uint32_t program, void* const* buffers,
                              void* scratch, uint32_t chunk) {
  return model().launch(level, program, buffers, scratch, chunk);
}
)";

std::optional<Objects> build(const Target& target, const codegen::Kernels& kernels,
                             const ObjectOptions& options, ImageContents& contents,
                             std::string& error) {
  contents.programs.clear();
  for (size_t i = 0; i < kernels.plan.programs.size(); ++i)
    contents.programs.push_back("k" + std::to_string(i));
  ObjectOptions as_library = options;
  as_library.stub = StubKind::Library;
  as_library.place = WeightPlace::Embed;
  const auto no_manifest = [](const SizeFacts&) { return std::string("{}"); };
  return build_objects(target, kernels, as_library, contents, no_manifest, error);
}

} // namespace

LoadedKernels::LoadedKernels(const plan::Plan& plan) : plan_(plan) {
  const auto programs = static_cast<uint32_t>(plan.programs.size());
  for (uint32_t i = 0; i < programs; ++i) {
    names_.push_back("k" + std::to_string(i));
    whole_.push_back(i);
  }
  for (uint32_t i = 0; i < programs; ++i) {
    first_part_.push_back(static_cast<uint32_t>(plan_.programs.size()));
    const std::span<const ScheduledKernel> parts = plan.programs[i].parts();
    for (size_t p = 0; p < parts.size(); ++p) {
      plan_.programs.push_back(parts[p]);
      names_.push_back(names_[i] + ", part " + std::to_string(p));
      whole_.push_back(i);
    }
  }
}

bool LoadedKernels::link(const Target& target, const Objects& objects,
                         std::string& error) {
  const toolchain::CompileResult doors = package_compiler().compile(
      target, target.levels.front(), {"doors.cpp", kDoors, {}});
  error = doors.diagnostics;
  if (!doors.ok) return false;
  toolchain::LinkInputs inputs = link_inputs(objects, true);
  inputs.objects.push_back(doors.output);
  code_.emplace(target, inputs);
  error = code_->diagnostics();
  launch_ = code_->find<Launch>("svod_call_kernel");
  auto* const level = code_->find<int32_t()>("svod_level");
  auto* const weights = code_->find<const void*()>("svod_weights");
  if (launch_ == nullptr || level == nullptr || weights == nullptr) return false;
  level_ = level();
  weights_ = static_cast<const std::byte*>(weights());
  return true;
}

std::unique_ptr<LoadedKernels> LoadedKernels::load(const Target& target,
                                                   const codegen::Kernels& kernels,
                                                   const ObjectOptions& options,
                                                   ImageContents contents,
                                                   std::string& error) {
  std::unique_ptr<LoadedKernels> out(new LoadedKernels(kernels.plan));
  codegen::Kernels all = codegen::emit(out->plan_, target);
  // Sources begin with those of the package, some of which the user may have replaced.
  std::ranges::copy(kernels.sources, all.sources.begin());
  const std::optional<Objects> objects = build(target, all, options, contents, error);
  if (!objects || !out->link(target, *objects, error)) return nullptr;
  return out;
}

} // namespace svod::packager
