// The stub stands alone: what its objects leave undefined, how large they are, and a
// program of a hand-made image, with glue and kernel in C, that links and runs.
#include "compiler/toolchain/call_graph.h"
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/data_object.h"
#include "compiler/toolchain/inspect.h"
#include "compiler/toolchain/link.h"
#include "compiler/toolchain/object_facts.h"
#include "packager/artefact/image.h"
#include "packager/artefact/objects.h"
#include "packager/artefact/stub_sources.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <set>

#include <sys/wait.h>
#include <unistd.h>

using namespace svod;
using namespace svod::packager;
using namespace svod::toolchain;

namespace {

using Object = std::vector<std::byte>;

Object compile_stub(const Target& target, std::string_view name) {
  for (const StubFile& file : stub_files()) {
    if (file.name != name) continue;
    Source source{
        std::string(name), std::string(file.text), {"-Os", "-DSVOD_PREFIX=infer"}};
    CompileResult result = package_compiler().compile(target, target.levels[0], source);
    INFO(name << "\n" << result.diagnostics);
    REQUIRE(result.ok);
    return result.output;
  }
  FAIL("no stub file " << name);
  return {};
}

std::vector<Object> compile_all_of(const Target& target,
                                   const std::vector<std::string_view>& names) {
  std::vector<Object> out;
  for (std::string_view name : names) out.push_back(compile_stub(target, name));
  return out;
}

std::set<std::string> undefined(const std::vector<Object>& objects) {
  std::set<std::string> defined, used;
  for (const Object& object : objects) {
    for (const SymbolFact& symbol : symbols_of(object)) {
      (symbol.defined ? defined : used).insert(symbol.name);
    }
  }
  for (const std::string& name : defined) used.erase(name);
  return used;
}

const std::vector<std::string_view> kLibrary = {
    "runtime_stub/check_image.cpp", "runtime_stub/cpu.cpp", "runtime_stub/library.cpp",
    "runtime_stub/memory.cpp", "runtime_stub/replay.cpp"};

const char kGlue[] = R"(
#include "runtime_stub/replay.h"
extern const uint8_t svod_image[];
static int32_t double_it(uint32_t level, uint32_t program, void* const* buffers,
                         void* scratch, uint32_t chunk) {
  (void)level, (void)program, (void)scratch;
  ((float*)buffers[1])[chunk] = 2 * ((const float*)buffers[0])[chunk];
  return 0;
}
static const struct SvodLevel levels[] = {{"any", 0}};
void svod_get_model(struct SvodModel* model) {
  model->image = svod_image;
  model->image_bytes = 1u << 16;
  model->weights = 0;
  model->weight_bytes = 0;
  model->launch = double_it;
  model->levels = levels;
  model->level_count = 1;
}
)";

// Of programs that make weights: what is common, and each form.
constexpr std::string_view kMaking = "runtime_stub/program/make_weights.cpp",
                           kZstdForm = "runtime_stub/program/zstd_weights.cpp",
                           kExpandForm = "runtime_stub/program/expanded_weights.cpp";

ImageContents doubling() {
  ImageContents out;
  ImageEntry entry;
  entry.inputs = {{"x", 1, {4}, 4, 16}};
  entry.outputs = {{"y", 1, {4}, 4, 16}};
  entry.slots = {{SVOD_SLOT_INPUT, 0, 0, 16}, {SVOD_SLOT_OUTPUT, 0, 0, 16}};
  ImageStep step;
  step.args = {0, 1};
  step.chunks = 4;
  entry.steps = {step};
  out.entries = {entry};
  out.programs = {"k0"};
  return out;
}

// What a command prints on stdout; its exit code goes to `code`.
std::string output_of(const std::string& command, int& code) {
  FILE* pipe = popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe);
  std::string out;
  for (int c; (c = fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  code = WEXITSTATUS(pclose(pipe));
  return out;
}

} // namespace

TEST_CASE("a library's stub needs the glue and nothing else", "[stub][sweep]") {
  for (const char* name :
       test::swept({"x86-64", "cortex-m4", "aarch64", "riscv64", "cortex-m33"}, 2)) {
    INFO(name);
    std::vector<Object> objects = compile_all_of(*find_target(name), kLibrary);
    CHECK(undefined(objects) == std::set<std::string>{"svod_get_model"});
  }
  // Without a multiplier of 64 bits the compiler's own library is asked.
  std::set<std::string> small{"svod_get_model", "__aeabi_lmul"};
  CHECK(undefined(compile_all_of(*find_target("cortex-m0plus"), kLibrary)) == small);
}

TEST_CASE("a library's stub is small and writes no global", "[stub]") {
  uint64_t code = 0;
  for (const Object& object : compile_all_of(*find_target("cortex-m4"), kLibrary)) {
    ObjectFacts facts = object_facts(object);
    CHECK(facts.writable_bytes == 0);
    code += facts.code_bytes + facts.constant_bytes;
  }
  CHECK(code <= 8000);
}

TEST_CASE("the stack is the longest chain of calls", "[stub]") {
  constexpr char kCalls[] = R"(
__attribute__((noinline)) static int leaf(volatile char* p) { char room[300]; p[1] = ((volatile char*)room)[*p] = 1; return *p; }
__attribute__((noinline)) int other(volatile char* p) { char room[700]; p[1] = ((volatile char*)room)[*p] = 2; return *p + outer(p); }
__attribute__((noinline)) int deep(volatile char* p) { char room[500]; p[1] = ((volatile char*)room)[*p] = 3; return leaf(p) + *p; }
int run(volatile char* p, int (*f)(volatile char*)) { return deep(p) + f(p); }
)";
  for (const char* name : {"x86-64", "aarch64", "riscv64", "armv7", "cortex-m4"}) {
    INFO(name);
    const Target target = *find_target(name);
    const std::string text = std::string("int outer(volatile char*);\n") + kCalls;
    const Source source{"calls.c", text, {"-O2", "-fstack-size-section"}};
    const CompileResult result =
        package_compiler().compile(target, target.levels[0], source);
    INFO(result.diagnostics);
    REQUIRE(result.ok);
    CallGraph graph;
    graph.add(result.output);
    const uint64_t leaf_and_deep = graph.deepest("deep"), all = graph.deepest("run");
    CHECK(leaf_and_deep >= 800);
    CHECK(leaf_and_deep <= 960);
    CHECK(all > leaf_and_deep);
    CHECK(all <= leaf_and_deep + 100);
    const uint64_t alone = graph.deepest("other");
    graph.define("outer", 5000);
    CHECK(graph.deepest("other") == alone + 5000);
    CHECK(graph.add_call("run", "other"));
    CHECK(graph.deepest("run") == all - leaf_and_deep + alone + 5000);
    CHECK_FALSE(graph.add_call("nobody", "other"));
    CHECK(graph.deepest("nobody") == 0);
  }
}

TEST_CASE("what makes weights needs nothing but memory functions and the stub",
          "[stub][sweep]") {
  const std::vector<std::vector<std::string_view>> forms = {
      {"zstd.c", kMaking, kZstdForm},
      {"runtime_stub/expansion.cpp", kMaking, kExpandForm}};
  for (const auto& files : forms)
    for (const char* alias :
         test::swept({"armv7", "x86-64", "aarch64", "riscv64", "i686"}, 1)) {
      const Target target = *find_target(alias);
      std::set<std::string> needed = undefined(compile_all_of(target, files));
      for (const char* has :
           {"memcpy", "memmove", "memset", "memcmp", "svod_allocate", "svod_unmap",
            "svod_want_large_pages", "svod_cpu_count", "svod_pool_bytes",
            "svod_pool_make", "svod_pool_run", "svod_pool_end", "svod_get_stored"})
        needed.erase(has);
      // Of other parts of the program, and what a compiler for 32 bits takes for granted,
      // which the stub has for Arm and x86.
      std::erase_if(needed, [](const std::string& name) {
        return name.starts_with("_ZN6packed") || name.starts_with("__aeabi_") ||
               name == "__udivdi3" || name == "_GLOBAL_OFFSET_TABLE_";
      });
      INFO(alias << " " << files.front());
      CHECK(needed == std::set<std::string>{});
    }
}

TEST_CASE("the stub links alone and runs a hand-made image", "[stub]") {
  Target target = default_target();
  std::vector<std::string_view> names;
  for (const StubFile& file : stub_files()) {
    bool source = file.name.ends_with(".cpp") && file.name != "runtime_stub/library.cpp";
    // Sources of programs for GPUs have another Session and call the system's loader.
    const bool device =
        file.name.find("device") != file.name.npos || file.name.ends_with("/driver.cpp");
    const bool makes =
        file.name == kMaking || file.name == kZstdForm || file.name == kExpandForm;
    if (source && !device && !makes) names.push_back(file.name);
  }
  std::vector<Object> objects = compile_all_of(target, names);
  CHECK(undefined(objects) == std::set<std::string>{"svod_get_model"});
  Source glue{"glue.c", kGlue, {}};
  CompileResult compiled = package_compiler().compile(target, target.levels[0], glue);
  INFO(compiled.diagnostics);
  REQUIRE(compiled.ok);
  objects.push_back(compiled.output);
  std::vector<std::byte> image = build_image(doubling());
  MemoryFile data = make_data_object(target, {".rodata.image", "svod_image", 64},
                                     std::span<const std::byte>(image));
  LinkInputs inputs;
  for (const Object& object : objects) inputs.objects.push_back(object);
  inputs.files = {&data};
  std::string program = "/tmp/svod-stub-test-" + std::to_string(getpid());
  LinkResult linked = link_executable(target, inputs, program);
  INFO(linked.diagnostics);
  REQUIRE(linked.ok);
  int code = -1;
  CHECK(output_of(program + " --input 'x=4xf32=[1 -2 3.5 1e10]'", code) ==
        "y: 4xf32=[2 -4 7 20000000000]\n");
  CHECK(code == 0);
  CHECK(output_of(program + " --threads 3 x=zeros", code) == "y: 4xf32=[0 0 0 0]\n");
  output_of(program + " --self-check", code);
  CHECK(code == 0);
  output_of(program + " 'x=3xf32=[1 2 3]'", code);
  CHECK(code == 1);
  output_of(program, code);
  CHECK(code == 2);
  output_of(program + " /nonexistent.npy", code);
  CHECK(code == 4);
  unlink(program.c_str());
}
