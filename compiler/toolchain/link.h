// Objects to executables, libraries and archives, in this process. Inputs are in memory;
// an output is a path that the caller renames when all went well. Thread-safe.
#pragma once

#include "compiler/support/target.h"
#include "compiler/toolchain/memory_file.h"

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace svod::toolchain {

// A section of a room object (data_object.h).
struct Room {
  std::string section;
  uint64_t bytes = 0;
};

// What is linked, in this order: small objects as bytes, large ones (weights) as files.
struct LinkInputs {
  std::vector<std::span<const std::byte>> objects;
  std::vector<const MemoryFile*> files;
  std::optional<Room> room = {}; // of an executable, in one of the files
};

struct LinkResult {
  bool ok = false;
  std::string diagnostics; // the linker's
  uint64_t room_at = 0;    // where it lies in the output: a hole of the file
};

// Hardened static PIE without libc; the entry point is _start. Linux targets.
[[nodiscard]] LinkResult link_executable(const Target& target, const LinkInputs& inputs,
                                         const std::string& output);

// The same for a program that opens libraries of its machine by dlopen and dlsym: its
// loader starts it, with the system's C library, whichever that is.
[[nodiscard]] LinkResult link_hosted(const Target& target, const LinkInputs& inputs,
                                     const std::string& output);

// A shared object that needs no other but, where it `opens_others` at run time, the
// system's loader; exports the symbols of default visibility.
[[nodiscard]] LinkResult link_shared(const Target& target, const LinkInputs& inputs,
                                     const std::string& soname, const std::string& output,
                                     bool opens_others = false);

// A WebAssembly module that exports its memory, __heap_base and these functions. Its
// stack lies below all data, so that one too deep traps.
[[nodiscard]] LinkResult link_module(const Target& target, const LinkInputs& inputs,
                                     const std::vector<std::string>& exports,
                                     uint64_t stack_bytes, const std::string& output);

// An image for a device, laid out by `script`; `libraries` are paths of archives behind
// the inputs.
[[nodiscard]] LinkResult link_image(const Target& target, const LinkInputs& inputs,
                                    const std::string& script,
                                    const std::vector<std::string>& libraries,
                                    const std::string& output);

struct ObjectResult {
  bool ok = false;
  std::vector<std::byte> object;
  std::string diagnostics;
};

// All inputs as one relocatable object, its sections still separate for a later
// --gc-sections. Meant for code; weights stay an archive member of their own.
[[nodiscard]] ObjectResult partial_link(const Target& target, const LinkInputs& inputs);

// Makes every defined symbol local but the `keep` ones, then renames by `rename`, so that
// two libraries of ours can stand in one program. `keep` has the names from before
// renaming; undefined symbols stay global and may be renamed as well. `also`: local names
// of what a section begins with, for readers of listings.
[[nodiscard]] ObjectResult localize(std::span<const std::byte> object,
                                    std::span<const std::string> keep,
                                    const std::map<std::string, std::string>& rename,
                                    const std::map<std::string, std::string>& also = {});

// Those that other objects see, in the object's order.
std::vector<std::string> defined_symbols(std::span<const std::byte> object);
// Of these, the weak ones.
std::vector<std::string> weak_symbols(std::span<const std::byte> object);

struct ArchiveMember {
  std::string name;
  std::span<const std::byte> bytes; // or, when empty,
  const MemoryFile* file = nullptr;
};

// A static library with a symbol table; no times, owners or paths in it.
[[nodiscard]] LinkResult write_archive(const std::string& output,
                                       std::span<const ArchiveMember> members);

} // namespace svod::toolchain
