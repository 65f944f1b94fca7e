// LLD as a function. It reads only paths, so what is in memory gets one: objects are
// gathered in one archive in a memfd (a model has hundreds of kernels, and a process has
// 1024 descriptors), weights are memfds already. LLD keeps global state: one link at a
// time.
//
// A packed program is a static PIE that nobody relocates: its image holds offsets, not
// pointers, and calls are relative. That is checked on the result, with the other
// promises of inspect.h.
//
// Separate pages for code and data (-z separate-code) keep constants from being mapped as
// code. They pad the small segments of a program to whole pages: 8 KB on x86-64.
#include "compiler/toolchain/link.h"

#include "compiler/toolchain/archive.h"
#include "compiler/toolchain/guarded.h"
#include "compiler/toolchain/inspect.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

#include <mutex>
#include <optional>

LLD_HAS_DRIVER(elf)

namespace svod {

static LinkResult run_lld(const std::vector<std::string>& arguments) {
  static std::mutex one_at_a_time;
  static bool usable = true; // false once LLD crashed and its state is unknown
  std::scoped_lock lock(one_at_a_time);
  LinkResult result;
  if (!usable) return {false, "the linker failed before and cannot run again\n"};
  std::vector<const char*> args{"ld.lld"};
  for (const std::string& argument : arguments) args.push_back(argument.c_str());
  llvm::raw_string_ostream messages(result.diagnostics);
  initialize_llvm();
  std::string failure = run_guarded([&] {
    lld::Result outcome =
        lld::lldMain(args, messages, messages, {{lld::Gnu, &lld::elf::link}});
    result.ok = outcome.retCode == 0;
    usable = outcome.canRunAgain;
  });
  if (!failure.empty()) {
    usable = false;
    return {false, failure + '\n'};
  }
  return result;
}

// Names of the inputs as LLD reads them; holds the archive while it does.
struct InputPaths {
  std::optional<MemoryFile> archive;
  std::vector<std::string> arguments;
};

static InputPaths paths_of(const LinkInputs& inputs) {
  InputPaths out;
  if (!inputs.objects.empty()) {
    std::vector<ArchiveMember> members;
    for (std::span<const std::byte> object : inputs.objects)
      members.push_back({"o" + std::to_string(members.size()) + ".o", object});
    out.archive = archive_in_memory(members);
    out.arguments = {"--whole-archive", out.archive->path(), "--no-whole-archive"};
  }
  for (const MemoryFile* file : inputs.files) out.arguments.push_back(file->path());
  return out;
}

static LinkResult link(const Target& target, const LinkInputs& inputs,
                       std::vector<std::string> options, const std::string& output) {
  const InputPaths paths = paths_of(inputs);
  std::vector<std::string> all{"-m", target.emulation, "-o", output, "--threads=1"};
  all.insert(all.end(), options.begin(), options.end());
  all.insert(all.end(), paths.arguments.begin(), paths.arguments.end());
  return run_lld(all);
}

static const std::vector<std::string> kHardened = {"-z",
                                                   "relro",
                                                   "-z",
                                                   "now",
                                                   "-z",
                                                   "noexecstack",
                                                   "-z",
                                                   "text",
                                                   "-z",
                                                   "separate-code",
                                                   "--gc-sections",
                                                   "--build-id=none",
                                                   "--strip-all",
                                                   "--hash-style=gnu"};

static LinkResult refuse(const Target& target, const char* what) {
  return {false, std::string(what) + " cannot be made for " + target.alias + '\n'};
}

LinkResult link_executable(const Target& target, const LinkInputs& inputs,
                           const std::string& output) {
  if (target.kind != TargetKind::Linux) return refuse(target, "an executable");
  std::vector<std::string> options = kHardened;
  options.insert(options.end(),
                 {"-static", "-pie", "--no-dynamic-linker", "-e", "_start"});
  LinkResult result = link(target, inputs, options, output);
  if (!result.ok) return result;
  const std::optional<ProgramFacts> facts = inspect_program(output);
  const std::string broken = facts ? broken_promise(*facts) : "it is not an ELF program";
  if (!broken.empty()) return {false, "the linked program is refused: " + broken + '\n'};
  return result;
}

LinkResult link_shared(const Target& target, const LinkInputs& inputs,
                       const std::string& soname, const std::string& output) {
  if (target.kind != TargetKind::Linux) return refuse(target, "a shared library");
  std::vector<std::string> options = kHardened;
  options.insert(options.end(),
                 {"-shared", "-soname", soname, "-z", "defs", "-Bsymbolic"});
  return link(target, inputs, options, output);
}

static std::vector<std::byte> contents_of(const MemoryFile& file) {
  auto buffer = llvm::MemoryBuffer::getFile(file.path(), false, false);
  if (!buffer) return {};
  const auto bytes =
      std::as_bytes(std::span((*buffer)->getBufferStart(), (*buffer)->getBufferSize()));
  return {bytes.begin(), bytes.end()};
}

ObjectResult partial_link(const Target& target, const LinkInputs& inputs) {
  if (target.elf_machine == 0) return {false, {}, "only ELF objects can be joined\n"};
  // A memfd has no folder for the temporary file that LLD would rename.
  MemoryFile output("svod-joined");
  LinkResult result =
      link(target, inputs, {"-r", "--no-mmap-output-file"}, output.path());
  if (!result.ok) return {false, {}, std::move(result.diagnostics)};
  return {true, contents_of(output), std::move(result.diagnostics)};
}

} // namespace svod
