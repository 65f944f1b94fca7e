// What is read of a user's C++ file, and the call as a node: its text form, its digest,
// and that no pass takes it for a value it could compute.
#include "compiler/codegen/read_custom_ops.h"
#include "compiler/fuse.h"
#include "compiler/ir/build.h"
#include "compiler/ir/custom_op.h"
#include "compiler/ir/digest.h"
#include "compiler/ir/evaluate.h"
#include "compiler/ir/parse.h"
#include "compiler/ir/print.h"
#include "compiler/ir/region.h"
#include "compiler/ir/verify.h"
#include "compiler/pipeline.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/verify.h"
#include "compiler/rewrite/simplify.h"
#include "packager/artefact/glue.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::packager;
using Kind = CustomParameter::Kind;

namespace {

NodeId call_of(Graph& g, const std::string& text, NodeId x) {
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const auto blob = g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
  return rebuild(g, {Op::Call, DType::F32, {4}, {blob, 0, 16}, {x}});
}

// Two outputs of a call on a known tensor: f32[4] and u8[2].
Graph call_graph(const std::string& text, bool both) {
  Graph g;
  const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
  const auto blob = g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end()));
  const NodeId x = tensor_f32(g, {4}, std::vector<float>{1, 2, 3, 4});
  const NodeId first = rebuild(g, {Op::Call, DType::F32, {4}, {blob, 0, 16, 2}, {x}});
  const NodeId second = rebuild(g, {Op::Call, DType::U8, {2}, {blob, 1, 16, 2}, {x}});
  if (both) g.add_output("a", map(g, Op::Neg, {first}));
  g.add_output("b", second);
  return g;
}

} // namespace

TEST_CASE("a function's parameters say what they are", "[custom_op]") {
  std::vector<std::string> faults;
  const std::vector<CustomOp> ops = codegen::read_custom_ops("some/folder/op.cpp", R"cpp(
#include <stdint.h>
namespace a { namespace b {
[[clang::annotate("svod::op", "ai.onnx", "Roll", "same(1)")]]
void roll(const _Float16* x, const int64_t* n, int64_t n_size, const int64_t* x_dims,
          bool* y, uint8_t* z, int64_t z_rank, double scale, unsigned flags = 7,
          [[clang::annotate("svod::attribute")]] const float* taps = nullptr,
          int64_t taps_size = 0, float x_sizes = -0.5f) {}
}
}
)cpp",
                                                             faults);
  CHECK(faults == std::vector<std::string>{});
  REQUIRE(ops.size() == 1);
  const CustomOp& op = ops[0];
  CHECK(op.place() == "op.cpp:5");
  CHECK(op.domain == "");
  CHECK(op.function == "::a::b::roll");
  CHECK(op.shapes == std::vector<std::string>{"same(1)", "declared"});
  const Kind kinds[] = {Kind::Input,  Kind::Input,   Kind::Size, Kind::Dims,
                        Kind::Output, Kind::Output,  Kind::Rank, Kind::Number,
                        Kind::Number, Kind::Numbers, Kind::Size, Kind::Number};
  REQUIRE(op.parameters.size() == std::size(kinds));
  for (size_t i = 0; i < std::size(kinds); ++i) CHECK(op.parameters[i].kind == kinds[i]);
  CHECK(op.parameters[0].dtype == DType::F16);
  CHECK(op.parameters[1].type == "int64_t");
  CHECK(op.parameters[3].of == 0);
  CHECK(op.parameters[4].dtype == DType::Bool);
  CHECK(op.parameters[7].fallback == std::nullopt);
  CHECK(op.parameters[8].fallback == 7.0);
  CHECK(op.parameters[10].of == 9);
  // x_sizes measures nothing: it is an attribute.
  CHECK(op.parameters[11].fallback == -0.5);
}

TEST_CASE("a file's faults are all found, with their lines", "[custom_op]") {
  std::vector<std::string> faults;
  codegen::read_custom_ops("op.cpp", R"cpp([[clang::annotate("svod::op", "d", "A")]]
void a(const float* x, float* y, void* z) {}
[[clang::annotate("svod::op", "d")]]
void b(const float* x, float* y) {}
struct S {
  [[clang::annotate("svod::op", "d", "C")]] static void c(const float* x, float* y) {}
};
[[clang::annotate("svod::op", "d", "D")]]
void d(const float* x, float* y, int32_t x_size);
namespace { [[clang::annotate("svod::op", "d", "E")]] void e(const float* x, float* y) {} }
)cpp",
                           faults);
  std::string all;
  for (const std::string& fault : faults) all += fault + "\n";
  INFO(all);
  CHECK(all.find("op.cpp:2:40: parameter 'z' points to 'void'") != std::string::npos);
  CHECK(all.find("op.cpp:3:") != std::string::npos);
  CHECK(all.find("op.cpp:6:") != std::string::npos);
  CHECK(all.find("unknown type name 'int32_t'") != std::string::npos);
  CHECK(all.find("op.cpp:10:") != std::string::npos);
}

TEST_CASE("a call keeps its text form and its digest", "[custom_op][ir]") {
  const Graph g = call_graph("void f();", true);
  CHECK(verify(g).empty());
  const std::string text = print_graph(g);
  Diags diags;
  const std::optional<Graph> again = parse_graph(text, diags, &g);
  INFO(diags.text("graph"));
  REQUIRE(again);
  CHECK(print_graph(*again) == text);
  CHECK(graph_digest(*again) == graph_digest(g));
  CHECK(graph_digest(call_graph("void g();", true)) != graph_digest(g));
}

TEST_CASE("no pass computes a call", "[custom_op]") {
  const Graph g = call_graph("void f();", true);
  CHECK(evaluate(g, {}).failed != kNoNode);
  CHECK(g.depends_on_input(g.outputs()[0].node));
  const Graph simple = rewrite::simplify(g, {});
  CHECK(verify(simple).empty());
  // One kernel gives both outputs, from a plain weight.
  const FusedGraph fused = fuse(simple, *find_target("native"), false);
  REQUIRE(fused.kernels.size() == 2);
  REQUIRE(fused.kernels[0].call());
  CHECK(fused.kernels[0].call()->tensors == std::vector<int64_t>{0, 1, 2});
  CHECK(fused.kernels[0].arguments[0].kind == Argument::Kind::Packed);
  // The output that nobody reads goes to the scratch memory.
  const FusedGraph single =
      fuse(call_graph("void f();", false), *find_target("native"), false);
  REQUIRE(single.kernels.size() == 1);
  CHECK(single.kernels[0].call()->tensors == std::vector<int64_t>{0, -1, 1});
  CHECK(single.kernels[0].scratch_bytes == 64);
}

TEST_CASE("much memory of a call is there once, not for each thread", "[custom_op]") {
  constexpr int64_t kMuch = int64_t{3} << 20;
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4});
  const NodeId once = call_of(g, "void f();", x);
  Payload payload = g[once].payload;
  payload.push_back(kMuch);
  g.add_output("y", rebuild(g, {Op::Call, DType::F32, {4}, payload, {x}}));
  const Target target = *find_target("native");
  const plan::Plan planned = plan::plan(fuse(g, target, false), target.machine());
  plan::verify(planned);
  CHECK(planned.scratch_bytes == 0);
  CHECK(planned.arena_bytes == static_cast<uint64_t>(kMuch));
}

TEST_CASE("a call without use for vectors has one kernel for all levels", "[custom_op]") {
  const Target target = *find_target("x86-64");
  REQUIRE(target.levels.size() > 1);
  const auto emitted = [&](const std::string& text) {
    const Graph g = call_graph(text, true);
    return codegen::emit(
        schedule(plan::plan(fuse(g, target, false), target.machine()), target).plan,
        target);
  };
  for (const bool is_scalar : {false, true}) {
    const codegen::Kernels kernels =
        emitted(std::string(is_scalar ? kScalarText : "") + "void f();");
    const auto calls =
        std::ranges::count_if(kernels.sources, [](const codegen::KernelSource& s) {
          return s.text.find("svod_call") != std::string::npos;
        });
    CHECK(static_cast<size_t>(calls) == (is_scalar ? 1 : target.levels.size()));
    CHECK(std::ranges::count(kernels.sources, true, &codegen::KernelSource::serves_all) ==
          (is_scalar ? 1 : 0));
    const std::string glue = glue_text(target, kernels, {});
    for (size_t level = 0; level < target.levels.size(); ++level) {
      const size_t number = level * kernels.plan.programs.size();
      CHECK(glue.find("case " + std::to_string(number) + ":") != std::string::npos);
    }
  }
}

TEST_CASE("a loop's body calls its own function", "[custom_op][region]") {
  Graph body;
  body.add_input("i", DType::I64, {});
  body.add_output("y",
                  call_of(body, "void inner();", body.add_input("x", DType::F32, {4})));
  Graph g;
  const NodeId count = g.add_input("count", DType::I64, {});
  const NodeId x = call_of(g, "void outer();", g.add_input("x", DType::F32, {4}));
  LoopSpec spec;
  spec.body = g.add_body(std::make_shared<const Graph>(std::move(body)));
  spec.carried = 1, spec.limit = 9;
  const NodeId start = constant_int(g, DType::Bool, {}, 1);
  g.add_output("y", result(g, loop(g, spec, {count, start, x}), 0));
  REQUIRE(verify(g).empty());
  const Target target = *find_target("native");
  const plan::Plan planned =
      schedule(
          plan::plan(fuse(rewrite::simplify(g, {}), target, false), target.machine()),
          target)
          .plan;
  verify(planned);
  const codegen::Kernels kernels = codegen::emit(planned, target);
  REQUIRE(planned.programs.size() == 2);
  for (const codegen::KernelSource& source : kernels.sources) {
    INFO(source.text);
    CHECK(
        source.text.starts_with(source.program == 0 ? "void outer();" : "void inner();"));
  }
}
