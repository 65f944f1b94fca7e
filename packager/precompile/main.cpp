// svod-precompile OUTPUT: a step of our own build. It is the packer without its ready
// stub; it compiles that, for programs and libraries of the default target, into one
// object that the packer is linked with.
#include "compiler/toolchain/data_object.h"
#include "packager/artefact/ready_stub.h"
#include "packager/artefact/stub_jobs.h"

#include <cstdio>
#include <filesystem>
#include <set>

using namespace svod;

int main(int count, char** arguments) {
  if (count != 2) return 2;
  const Target target = default_target();
  const toolchain::Compiler compiler = packager::package_compiler();
  std::vector<std::byte> list;
  std::set<Digest> listed;
  struct Package {
    packager::StubKind kind;
    packager::StubParts parts;
  };
  constexpr auto kProgram = packager::StubKind::Program,
                 kLibrary = packager::StubKind::Library;
  // Of the parts of programs all, and none: in between two small files differ.
  const Package packages[] = {
      {kProgram, {.program = ~0u}},
      {kProgram, {}},
      {kProgram, {.several = true, .program = ~0u}},
      {kProgram, {.program = ~0u, .place = packager::WeightPlace::Zstd}},
      {kProgram, {.program = ~0u, .place = packager::WeightPlace::Expand}},
      {kLibrary, {}},
      {kLibrary, {.several = true}},
      {kLibrary, {.place = packager::WeightPlace::Expand}}};
  for (const auto& [kind, parts] : packages) {
    const auto jobs = packager::stub_jobs(target, kind, "infer", parts);
    const auto compiled = toolchain::compile_all(compiler, target, jobs);
    std::fputs(compiled.diagnostics().c_str(), stderr);
    if (!compiled.ok()) return 1;
    for (size_t i = 0; i < jobs.size(); ++i) {
      const Digest key = toolchain::object_key(compiler, target, jobs[i]);
      if (listed.insert(key).second)
        packager::append_ready(list, key, compiled.results[i].output);
    }
  }
  const auto object = toolchain::make_data_object(
      target, {".rodata.svod_ready_stub", packager::kReadySymbol},
      std::span<const std::byte>(list));
  std::error_code error;
  std::filesystem::copy_file(object.path(), arguments[1],
                             std::filesystem::copy_options::overwrite_existing, error);
  if (!error) return 0;
  std::fprintf(stderr, "%s: %s\n", arguments[1], error.message().c_str());
  return 1;
}
