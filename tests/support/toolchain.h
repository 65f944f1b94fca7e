// What tests of the toolchain share: targets by name, one text compiled, programs run.
#pragma once

#include "compiler/support/target.h"
#include "compiler/toolchain/compile.h"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

namespace svod::test {

// A folder that goes away with the test.
struct Folder {
  Folder() {
    std::string name =
        (std::filesystem::temp_directory_path() / "svod-test-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()));
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string& name) const { return (path / name).string(); }
  std::filesystem::path path;
};

inline Target target_of(const std::string& name) {
  std::optional<Target> target = find_target(name);
  REQUIRE(target);
  return *target;
}

inline std::vector<std::byte> compiled(const std::string& target_name,
                                       const std::string& text,
                                       const std::string& file = "test.cpp") {
  const Target target = target_of(target_name);
  toolchain::CompileResult result =
      toolchain::Compiler().compile(target, target.levels.front(), {file, text, {}});
  INFO(result.diagnostics);
  REQUIRE(result.ok);
  return result.output;
}

// What a program says when it ends; -1 when it could not be started.
inline int run_program(const std::vector<std::string>& command) {
  const pid_t child = fork();
  if (child == 0) {
    std::vector<char*> args;
    for (const std::string& word : command)
      args.push_back(const_cast<char*>(word.c_str()));
    args.push_back(nullptr);
    execvp(args[0], args.data());
    _exit(127);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

inline bool has_program(const std::string& name) {
  return run_program({"sh", "-c", "command -v " + name + " >/dev/null"}) == 0;
}

inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

inline long resident_kilobytes() {
  std::ifstream in("/proc/self/statm");
  long pages = 0, resident = 0;
  in >> pages >> resident;
  return resident * 4;
}

inline constexpr const char* kVectorKernel = R"(
typedef float V __attribute__((ext_vector_type(16)));
extern "C" void kernel(const float* a, const float* b, float* c) {
  V sum[6] = {};
  for (int k = 0; k < 384; ++k)
    for (int i = 0; i < 6; ++i) sum[i] += *(const V*)(b + 16 * k) * a[6 * k + i];
  for (int i = 0; i < 6; ++i) *(V*)(c + 16 * i) = __builtin_elementwise_max(sum[i], (V)0);
})";

} // namespace svod::test
