// C++ text to an object, in this process and in memory: no compiler is started, no file
// is written, no header of this machine is seen. Same text, target and version: same
// bytes.
#pragma once

#include "compiler/support/freestanding.h"
#include "compiler/support/target.h"

#include <cstddef>
#include <span>
#include <string>
#include <vector>

namespace svod::toolchain {

struct Source {
  std::string name = "kernel.cpp"; // *.c is compiled as C11, else C++20
  std::string text;
  std::vector<std::string> flags; // after ours, so they win
  // Of the text: its beginning, which sources with the same flags share.
  size_t prelude_bytes = 0;
  // Emitted text, which may compute and nothing else: what check_cpp finds is an error.
  bool only_computes = false;
};

enum class Emit : uint8_t { Object, Assembly };

struct CompileResult {
  bool ok = false;
  std::vector<std::byte> output; // the object, or the assembly as text
  std::string diagnostics;       // the compiler's, also for a crash inside it
  std::string remedy = {};       // what was left out, where the first try crashed
};

// Thread-safe: one Compiler may serve many threads.
class Compiler {
public:
  // `headers` can be included by every source, by their names. stdint.h and stddef.h
  // are there without being listed; nothing else is.
  explicit Compiler(std::vector<SourceFile> headers = {});

  CompileResult compile(const Target& target, const Level& level, const Source& source,
                        Emit emit = Emit::Object) const;

  // Version of the compiler and digest of the headers: part of every cache key.
  std::string identity() const;

  // The full flag list of one compile: what `compile` uses and cache keys hold.
  static std::vector<std::string> flags(const Target& target, const Level& level,
                                        const Source& source);

private:
  CompileResult compile_with(const std::vector<std::string>& arguments,
                             const Source& source, Emit emit, bool& crashed) const;

  std::vector<SourceFile> headers_;
  std::string identity_;
};

} // namespace svod::toolchain
