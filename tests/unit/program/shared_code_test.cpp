// Code that --verify runs in the packer's own process: data, zeros, pointers and names
// are where the code expects them.
#include "compiler/toolchain/compile.h"
#include "packager/verify/shared_code.h"

#include <catch2/catch.hpp>

#include <utility>

namespace svod::packager {

namespace {

SharedCode load(const std::string& text) {
  const Target target = default_target();
  const toolchain::CompileResult result = toolchain::Compiler().compile(
      target, target.levels.front(), {"code.cpp", text, {}});
  REQUIRE(result.ok);
  toolchain::LinkInputs inputs;
  inputs.objects.emplace_back(result.output);
  return {target, inputs};
}

constexpr const char* kText = R"(
#define DOOR extern "C" __attribute__((visibility("default")))
static int count;                                   // in .bss
static int large[100000];
static int start = 40;                              // in .data
static const char* const words[] = {"zero", "one"}; // pointers that are relocated, then read-only
static int two() { return 2; }
static int (*volatile function)() = two;
DOOR int next() { return start + ++count; }
DOOR int at(int i) { return large[i]++; }
DOOR const char* word(int i) { return words[i]; }
DOOR int call() { return function(); }
DOOR int value = 7;
)";

} // namespace

TEST_CASE("loaded code finds its data, zeros, pointers and functions", "[verify]") {
  SharedCode loaded = load(kText);
  INFO(loaded.diagnostics());
  SharedCode code = std::move(loaded);
  auto* const next = code.find<int()>("next");
  auto* const at = code.find<int(int)>("at");
  auto* const word = code.find<const char*(int)>("word");
  REQUIRE((next != nullptr && at != nullptr && word != nullptr));
  CHECK(next() == 41);
  CHECK(next() == 42);
  for (int i : {0, 1023, 1024, 50000, 99999}) CHECK(at(i) == 0);
  CHECK(at(1024) == 1);
  CHECK(std::string(word(1)) == "one");
  CHECK(code.find<int()>("call")() == 2);
  CHECK(*code.find<int>("value") == 7);
  CHECK(code.find<int()>("nothing") == nullptr);
}

TEST_CASE("code that needs a dynamic linker is not run", "[verify]") {
  const SharedCode code =
      load("volatile int seed = 3; int held = seed; // set before main by a C library\n"
           "extern \"C\" __attribute__((visibility(\"default\"))) int get() { return "
           "held; }\n");
  CHECK(code.find<int()>("get") == nullptr);
  CHECK(code.diagnostics().find("dynamic linker") != std::string::npos);
}

} // namespace svod::packager
