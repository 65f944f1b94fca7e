// LLD as a function. It reads only paths, so what is in memory gets one: objects are
// gathered in one archive in a memfd (a model has hundreds of kernels, and a process has
// 1024 descriptors), weights are memfds already. LLD keeps global state: one link at a
// time.
//
// A packed program is a static PIE that nobody relocates: its image holds offsets, not
// pointers, and calls are relative. That is checked on the result, with the other
// promises of inspect.h.
#include "compiler/toolchain/link.h"

#include "compiler/support/check.h"
#include "compiler/toolchain/archive.h"
#include "compiler/toolchain/guarded.h"
#include "compiler/toolchain/inspect.h"

#include <lld/Common/Driver.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <cstring>
#include <mutex>
#include <optional>
#include <thread>

#include <fcntl.h>
#include <unistd.h>

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
  std::vector<std::string> all = target.linker_flags;
  all.insert(all.end(), {"-o", output, "--threads=1"});
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

// LLD writes a file beside its output and renames it, which needs a folder; into a pipe
// it writes at once. The other end must be read meanwhile: a pipe holds 64 KB.
class OutputPipe {
public:
  OutputPipe() {
    SVOD_CHECK(pipe2(ends_, O_CLOEXEC) == 0) << std::strerror(errno);
    reader_ = std::thread([this] { read_all(); });
  }
  ~OutputPipe() {
    if (reader_.joinable()) take();
  }
  std::string path() const { return "/proc/self/fd/" + std::to_string(ends_[1]); }

  // What was written, when nobody writes any more.
  std::vector<std::byte> take() {
    close(ends_[1]);
    reader_.join();
    close(ends_[0]);
    return std::move(bytes_);
  }

private:
  void read_all() {
    std::byte buffer[1 << 16];
    for (ssize_t got; (got = read(ends_[0], buffer, sizeof buffer)) > 0;)
      bytes_.insert(bytes_.end(), buffer, buffer + got);
  }

  int ends_[2] = {-1, -1};
  std::vector<std::byte> bytes_;
  std::thread reader_;
};

ObjectResult partial_link(const Target& target, const LinkInputs& inputs) {
  if (target.elf_machine == 0) return {false, {}, "only ELF objects can be joined\n"};
  OutputPipe output;
  LinkResult result = link(target, inputs, {"-r"}, output.path());
  std::vector<std::byte> object = output.take();
  if (!result.ok) object.clear();
  return {result.ok, std::move(object), std::move(result.diagnostics)};
}

} // namespace svod
