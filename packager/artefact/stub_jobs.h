// The stub's sources as work for the compiler, with the flags they are compiled with.
#pragma once

#include "compiler/toolchain/compile_all.h"

namespace svod::packager {

enum class StubKind : uint8_t {
  Program,
  Library,
  Firmware, // what several libraries share: each brings its own run
};

// The compiler with the stub's headers, which kernels and glue include.
toolchain::Compiler package_compiler();

// Flags of all that is compiled for a package, `extra` last.
std::vector<std::string> package_flags(std::vector<std::string> extra);
// Of what any CPU of the target must be able to run: the stub asks which level may.
std::vector<std::string> stub_flags(const Target& target, std::vector<std::string> extra);

// `prefix`: of a library's names. `self_check`: it gets the function of that name.
// `several`: it chooses among the entries of the image. `device`: of a program, it runs
// on a GPU where one is.
std::vector<toolchain::CompileJob> stub_jobs(const Target& target, StubKind kind,
                                             const std::string& prefix,
                                             bool self_check = false,
                                             bool several = false, bool device = false);

} // namespace svod::packager
