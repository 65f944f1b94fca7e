// The stub's sources as work for the compiler, with the flags they are compiled with.
#pragma once

#include "compiler/toolchain/compile_all.h"
#include "packager/artefact/image.h"
#include "packager/weight_place.h"

#include <span>
#include <string_view>
#include <vector>

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

// A part of programs that --with may leave out.
struct ProgramPart {
  std::string_view word, macro;
  std::vector<std::string_view> files; // in runtime_stub/program
};
std::span<const ProgramPart> program_parts();

// What not every package has.
struct StubParts {
  bool self_check = false;             // a library has the function of that name
  bool several = false;                // it chooses among the entries of the image
  bool device = false;                 // it runs on a GPU where one is
  bool states = false;                 // tensors stay from run to run
  ImageContents::Changes changes = {}; // of a library that can leave out steps
  bool pictures = false;               // inputs of a program are picture files
  uint32_t program = 0;                // of a program, a bit for each of program_parts()
  WeightPlace place = WeightPlace::Embed;
};

// `prefix`: of a library's names.
std::vector<toolchain::CompileJob> stub_jobs(const Target& target, StubKind kind,
                                             const std::string& prefix,
                                             const StubParts& parts = {});

} // namespace svod::packager
