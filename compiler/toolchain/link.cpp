// LLD as a function. It reads only paths, so what is in memory gets one: objects are
// gathered in one archive in a memfd (a model has hundreds of kernels, and a process has
// 1024 descriptors), weights are memfds already. LLD keeps global state: one link at a
// time.
//
// A packed program is a static PIE that nobody relocates: its image holds offsets, not
// pointers, and calls are relative. That is checked on the result, with the other
// promises of inspect.h.
//
// A start should not wait for its weights to be mapped. 176 MB in pages of 4 KB cost 17
// of resnet50's 80 ms, in pages of 2 MB one. Linux maps those where the page cache holds
// the file in pieces as large, so it is written by one call and not through a mapping,
// and where address and offset agree modulo 2 MB, which the first segment asks for. With
// a room the linker maps its output, since it then writes only what is around the room,
// and whoever fills that does so by large calls.
#include "compiler/toolchain/link.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/toolchain/archive.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/guarded.h"
#include "compiler/toolchain/inspect.h"

#include <lld/Common/Driver.h>
#include <llvm/Object/ELFTypes.h>
#include <llvm/Support/raw_ostream.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <optional>
#include <sstream>
#include <thread>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

LLD_HAS_DRIVER(elf)
LLD_HAS_DRIVER(wasm)

namespace svod::toolchain {

// LLD is the linker that its name says.
static LinkResult run_lld(const char* name, const std::vector<std::string>& arguments) {
  static std::mutex one_at_a_time;
  static bool usable = true; // false once LLD crashed and its state is unknown
  std::scoped_lock lock(one_at_a_time);
  LinkResult result;
  if (!usable) return {false, "the linker failed before and cannot run again\n"};
  std::vector<const char*> args{name};
  for (const std::string& argument : arguments) args.push_back(argument.c_str());
  llvm::raw_string_ostream messages(result.diagnostics);
  initialize_llvm();
  std::string failure = run_guarded([&] {
    lld::Result outcome =
        lld::lldMain(args, messages, messages,
                     {{lld::Gnu, &lld::elf::link}, {lld::Wasm, &lld::wasm::link}});
    result.ok = outcome.retCode == 0;
    usable = outcome.canRunAgain;
  });
  if (!failure.empty()) {
    usable = false;
    return {false, failure + '\n'};
  }
  return result;
}

namespace {

// Names of the inputs as LLD reads them; holds the archive while it does.
struct InputPaths {
  std::optional<MemoryFile> archive;
  std::vector<std::string> arguments;
};

} // namespace

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
  return run_lld(target.kind == TargetKind::Wasm ? "wasm-ld" : "ld.lld", all);
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

// Gives the first segment its alignment. In front of it there are only headers, so its
// offset is 0 as its address is.
template <class Headers> static bool align_first_segment(int file, uint64_t page) {
  typename Headers::Ehdr header;
  if (pread(file, &header, sizeof header, 0) != sizeof header) return false;
  for (size_t i = 0; i < header.e_phnum; ++i) {
    typename Headers::Phdr segment;
    const auto at = static_cast<off_t>(header.e_phoff + i * sizeof segment);
    if (pread(file, &segment, sizeof segment, at) != sizeof segment) return false;
    if (segment.p_type != llvm::ELF::PT_LOAD) continue;
    if (segment.p_offset != 0 || segment.p_vaddr != 0) break;
    segment.p_align = static_cast<typename Headers::uint>(page);
    return pwrite(file, &segment, sizeof segment, at) == sizeof segment;
  }
  return true;
}

static bool complete_large_program(const std::string& program, uint64_t page) {
  const int file = open(program.c_str(), O_RDWR | O_CLOEXEC);
  if (file < 0) return false;
  unsigned char ident[llvm::ELF::EI_NIDENT];
  bool done = pread(file, ident, sizeof ident, 0) == sizeof ident;
  done = done && (ident[llvm::ELF::EI_CLASS] == llvm::ELF::ELFCLASS64
                      ? align_first_segment<llvm::object::ELF64LE>(file, page)
                      : align_first_segment<llvm::object::ELF32LE>(file, page));
  // Written like this it has no permission to run yet: who may read it may do so.
  struct stat found{};
  done = done && fstat(file, &found) == 0 &&
         fchmod(file, found.st_mode | (found.st_mode & 0444) >> 2) == 0;
  close(file);
  return done;
}

static uint64_t bytes_of(const LinkInputs& inputs) {
  uint64_t bytes = 0;
  for (std::span<const std::byte> object : inputs.objects) bytes += object.size();
  for (const MemoryFile* file : inputs.files) bytes += file->size();
  return bytes + (inputs.room ? inputs.room->bytes : 0);
}

namespace {

// LLD writes a file beside its output and renames it, which needs a folder, and tries so
// for its map; into a pipe it writes at once. The other end must be read meanwhile: a
// pipe holds 64 KB.
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

} // namespace

// The offset of a section in the first segment, where addresses are offsets, by the
// linker's map: "    2a40     2a40  27d6b000    64         FILE:(SECTION)".
static std::optional<uint64_t> place_in_map(const std::vector<std::byte>& map,
                                            const std::string& section) {
  std::istringstream in{std::string(text_of(map))};
  for (std::string line; std::getline(in, line);)
    if (line.ends_with(":(" + section + ")")) return std::stoull(line, nullptr, 16);
  return std::nullopt;
}

// What is mapped as it lies in the file.
static LinkResult link_segments(const Target& target, const LinkInputs& inputs,
                                std::vector<std::string> options,
                                const std::string& output) {
  const auto page = static_cast<uint64_t>(target.machine().large_page);
  const bool large = page != 0 && bytes_of(inputs) > 2 * page;
  std::optional<OutputPipe> map;
  if (inputs.room) {
    map.emplace();
    options.push_back("-Map=" + map->path());
  } else if (large) {
    options.emplace_back("--no-mmap-output-file");
  }
  LinkResult result = link(target, inputs, std::move(options), output);
  if (!result.ok) return result;
  if (map) {
    const std::optional<uint64_t> at = place_in_map(map->take(), inputs.room->section);
    SVOD_CHECK(at.has_value()) << "the linker has lost " << inputs.room->section;
    result.room_at = *at;
    const uint64_t end = *at + inputs.room->bytes;
    SVOD_CHECK(end <= std::filesystem::file_size(output)) << "no room in " << output;
  }
  if (!large || complete_large_program(output, page)) return result;
  return {false, output + ": " + std::strerror(errno) + '\n'};
}

static LinkResult refuse(const Target& target, const char* what) {
  return {false, std::string(what) + " cannot be made for " + target.alias + '\n'};
}

LinkResult link_executable(const Target& target, const LinkInputs& inputs,
                           const std::string& output) {
  if (target.kind != TargetKind::Linux) return refuse(target, "an executable");
  std::vector<std::string> options = kHardened;
  options.insert(options.end(),
                 {"-static", "-pie", "--no-dynamic-linker", "-e", "_start"});
  LinkResult result = link_segments(target, inputs, options, output);
  if (!result.ok) return result;
  const std::optional<ProgramFacts> facts = inspect_program(output);
  const std::string broken = facts ? broken_promise(*facts) : "it is not an ELF program";
  if (!broken.empty()) return {false, "the linked program is refused: " + broken + '\n'};
  return result;
}

// Where the loader lies by the ABI of each architecture. Its two functions have been in a
// library of their own until glibc 2.34, which since then is there and empty.
static const char* loader_of(const Target& target) {
  return target.is_x86() ? "/lib64/ld-linux-x86-64.so.2" : nullptr;
}

// A library that defines what is looked up in others of its names at run time.
static LinkResult link_stand_in(const Target& target, const std::string& soname,
                                const std::string& output) {
  std::vector<std::string> options{"-shared", "-soname", soname, "--defsym=dlopen=0",
                                   "--defsym=dlsym=0"};
  const std::byte zero{};
  const MemoryFile some =
      make_data_object(target, {".rodata.stand_in", "stand_in", 1}, std::span(&zero, 1));
  return link(target, {{}, {&some}}, options, output);
}

// Links what opens libraries at run time by the system's own C library.
static LinkResult link_with_loader(const Target& target, const LinkInputs& inputs,
                                   std::vector<std::string> options,
                                   const std::string& output) {
  options.emplace_back("--no-as-needed");
  std::vector<std::string> stand_ins;
  LinkResult result{true, ""};
  for (const char* soname : {"libc.so.6", "libdl.so.2"}) {
    stand_ins.push_back(output + "." + soname);
    options.push_back(stand_ins.back());
    if (result.ok) result = link_stand_in(target, soname, stand_ins.back());
  }
  if (result.ok) result = link_segments(target, inputs, std::move(options), output);
  for (const std::string& path : stand_ins) unlink(path.c_str());
  return result;
}

LinkResult link_hosted(const Target& target, const LinkInputs& inputs,
                       const std::string& output) {
  const char* loader = loader_of(target);
  if (loader == nullptr) return refuse(target, "a program for a GPU");
  std::vector<std::string> options = kHardened;
  options.insert(options.end(), {"-pie", "--dynamic-linker", loader, "-e", "_start"});
  return link_with_loader(target, inputs, std::move(options), output);
}

LinkResult link_shared(const Target& target, const LinkInputs& inputs,
                       const std::string& soname, const std::string& output,
                       bool opens_others) {
  if (target.kind != TargetKind::Linux) return refuse(target, "a shared library");
  std::vector<std::string> options = kHardened;
  options.insert(options.end(),
                 {"-shared", "-soname", soname, "-z", "defs", "-Bsymbolic"});
  return opens_others ? link_with_loader(target, inputs, std::move(options), output)
                      : link_segments(target, inputs, std::move(options), output);
}

LinkResult link_image(const Target& target, const LinkInputs& inputs,
                      const std::string& script,
                      const std::vector<std::string>& libraries,
                      const std::string& output) {
  MemoryFile file("svod-script");
  file.append(std::as_bytes(std::span(script)));
  std::vector<std::string> options{"--gc-sections", "-T", file.path()};
  const InputPaths paths = paths_of(inputs);
  options.insert(options.begin(), target.linker_flags.begin(), target.linker_flags.end());
  options.insert(options.end(), {"-o", output, "--threads=1"});
  options.insert(options.end(), paths.arguments.begin(), paths.arguments.end());
  options.insert(options.end(), libraries.begin(), libraries.end());
  return run_lld("ld.lld", options);
}

LinkResult link_module(const Target& target, const LinkInputs& inputs,
                       const std::vector<std::string>& exports, uint64_t stack_bytes,
                       const std::string& output) {
  if (target.kind != TargetKind::Wasm) return refuse(target, "a module");
  std::vector<std::string> options{"--no-entry",
                                   "--gc-sections",
                                   "--strip-all",
                                   "--stack-first",
                                   "--export=__heap_base",
                                   "-z",
                                   "stack-size=" + std::to_string(stack_bytes)};
  for (const std::string& name : exports) options.push_back("--export=" + name);
  return link(target, inputs, options, output);
}

ObjectResult partial_link(const Target& target, const LinkInputs& inputs) {
  if (target.elf_machine == 0) return {false, {}, "only ELF objects can be joined\n"};
  OutputPipe output;
  LinkResult result = link(target, inputs, {"-r"}, output.path());
  std::vector<std::byte> object = output.take();
  if (!result.ok) object.clear();
  return {result.ok, std::move(object), std::move(result.diagnostics)};
}

} // namespace svod::toolchain
