// What can be seen of an ELF program from outside: the promises that every executable of
// ours is held to before it is handed out.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace svod::toolchain {

struct ProgramFacts {
  bool position_independent = false;
  bool relro = false;    // has a segment that becomes read-only
  bool bind_now = false; // nothing is resolved later
  bool stack_not_executable = false;
  bool writable_code = false; // a segment that is both
  bool interpreter = false;   // needs a dynamic loader
  size_t needed_libraries = 0;
  size_t relocations = 0; // to be done at start; there is nobody to do them
};

// Of an ELF executable or shared object; none when it is not one.
std::optional<ProgramFacts> inspect_program(const std::string& path);

// Which promise of a static, hardened executable is broken; empty when none is.
std::string broken_promise(const ProgramFacts& facts);

struct SymbolFact {
  std::string name;
  bool defined = false;
  bool global = false;
  auto operator<=>(const SymbolFact&) const = default;
};

// The named symbols of an ELF object, sorted; sections and files left out.
std::vector<SymbolFact> symbols_of(std::span<const std::byte> object);

} // namespace svod::toolchain
