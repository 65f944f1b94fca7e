// Kernels of whole models under AddressSanitizer, for
// tests/conformance/sanitized_kernels.py, which preloads its runtime: run_kernels.cpp
// then compiles kernels for it.
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace svod;
using namespace svod::test;

namespace {

// Numbers in [-1, 1]; integers, which may be positions of something, are zeros.
std::vector<Tensor> inputs_of(const Graph& g) {
  Random random(1);
  std::vector<Tensor> inputs;
  for (const GraphInput& in : g.inputs()) {
    const Node& node = g[in.node];
    inputs.push_back(node.dtype == DType::F32
                         ? random_tensor(random, node.shape)
                         : Tensor{node.dtype, node.shape,
                                  std::vector<std::byte>(
                                      static_cast<size_t>(element_count(node.shape)) *
                                      static_cast<size_t>(byte_size(node.dtype)))});
  }
  return inputs;
}

} // namespace

// The model that SVOD_MODEL names. A status is an answer: the inputs mean nothing.
TEST_CASE("the kernels of a model stay within their buffers", "[.model]") {
  const char* path = std::getenv("SVOD_MODEL");
  if (path == nullptr) return;
  Diags diags;
  const importer::ImportOptions importing;
  const auto model = importer::read_model(path, importing.limits, diags);
  const auto graph =
      model ? importer::import_model(*model, importing, diags) : std::nullopt;
  if (!graph) {
    WARN("refused");
    return;
  }
  CompileOptions options;
  options.target = *find_target("native");
  const KernelRun run =
      run_kernels(compile(*graph, options), options.target, inputs_of(*graph));
  CHECK(run.error == "");
  WARN("status " << run.status);
}

// What the test above would not find if kernels were not watched.
TEST_CASE("a kernel that writes one element too many", "[.overrun]") {
  if (!kernels_are_watched()) return;
  CompileOptions options;
  options.target = *find_target("native");
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4096});
  g.add_output("y", map(g, Op::Exp, {x}));
  codegen::Kernels kernels = compile(g, options);
  const std::string begin = "i32 bad = 0;";
  for (codegen::KernelSource& source : kernels.sources)
    source.text.replace(source.text.rfind(begin), begin.size(), begin + " a1[4096] = 0;");
  Random random(1);
  run_kernels(kernels, options.target, {random_tensor(random, {4096})});
}
