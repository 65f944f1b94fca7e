// Weights of 4 bits times activations that may be rounded to 8: the sum over a block is
// taken on integers inside the sum over blocks, in one kernel that reads the packed
// bytes.
#include "compiler/fuse.h"
#include "compiler/rewrite/integer_contractions.h"
#include "compiler/rewrite/simplify.h"
#include "importer/operators/onnx_ops.h"
#include "tests/support/check_kernels.h"
#include "tests/support/run_rule.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::importer;
using namespace svod::test;

namespace {

constexpr int64_t kRows = 2, kColumns = 80, kOutputs = 700, kBlock = 32;

Tensor drawn(Random& random, DType dtype, const Shape& shape, int64_t low, int64_t high) {
  std::vector<double> values(static_cast<size_t>(element_count(shape)));
  for (double& v : values) v = double(random.between(low, high));
  return make_tensor(dtype, shape, values);
}

// Scales are powers of two and the largest number of each block is 127, so that rounding
// to 8 bits changes nothing and all sums are exact.
RandomGraph product(uint64_t seed, int64_t bits, bool exact) {
  Random random(seed);
  RandomGraph out;
  Graph& g = out.graph;
  const auto known = [&](Tensor t) {
    return weight(g, t.dtype, t.shape, g.add_blob(std::move(t.bytes)));
  };
  const int64_t blocks = (kColumns + kBlock - 1) / kBlock, each = 8 / bits;
  Tensor a = drawn(random, DType::F32, {kRows, kColumns}, -127, 127);
  auto* numbers = reinterpret_cast<float*>(a.bytes.data());
  for (int64_t i = 0; i < kRows * kColumns; i += 16) numbers[i] = 127;
  ModelNode node;
  node.op_type = "MatMulNBits", node.domain = "com.microsoft";
  node.attributes = {
      rule_test::attribute("K", kColumns), rule_test::attribute("N", kOutputs),
      rule_test::attribute("bits", bits), rule_test::attribute("block_size", kBlock),
      rule_test::attribute("accuracy_level", int64_t{4})};
  node.inputs = {"a", "b", "scales", "zero_points"}, node.outputs = {"y"};
  const std::vector<NodeId> inputs = {
      g.add_input("a", DType::F32, {kRows, kColumns}),
      known(drawn(random, DType::U8, {kOutputs, blocks, kBlock / each}, 0, 255)),
      known(drawn(random, DType::F32, {kOutputs * blocks}, 1, 2)),
      known(drawn(random, DType::U8, {kOutputs, (blocks + each - 1) / each}, 0, 255))};
  const OnnxForm* row = find_onnx_form("com.microsoft", "MatMulNBits", 1);
  NodeImport import(g, node, 1, inputs, row->attributes);
  import.exact = exact;
  row->rule(import);
  g.add_output("y", import.results().at(0));
  out.inputs = {std::move(a)};
  out.tolerance.assign(g.size(), 1e-5);
  return out;
}

// Kernels that sum bytes within another sum, and what they multiply at once.
int nested_kernels(const Graph& g, const Target& target, int64_t& weight_bytes) {
  FusedGraph fused = fuse(rewrite::simplify(rewrite::integer_contractions(g)), target);
  int count = 0;
  for (const ScheduledKernel& k : fused.kernels) {
    if (!k.stages[0].nested) continue;
    ++count;
    CHECK(k.stages[0].dtype == DType::I32);
    CHECK(k.has_dot_axis());
    for (const Argument& a : k.arguments)
      if (a.kind == Argument::Kind::Packed && a.dtype == DType::U8)
        weight_bytes += fused.packed[a.id].bytes();
  }
  return count;
}

} // namespace

TEST_CASE("weights of few bits meet bytes in one kernel", "[fuse][quantised]") {
  const Target target = *target_for({"x86-64-v3"});
  int64_t four = 0, eight = 0;
  CHECK(nested_kernels(product(1, 4, false).graph, target, four) == 1);
  CHECK(nested_kernels(product(1, 8, false).graph, target, eight) == 1);
  // The packed bytes themselves are read.
  CHECK(four < eight * 2 / 3);
  CHECK(nested_kernels(product(1, 4, true).graph, target, four) == 0);
}

TEST_CASE("weights of few bits give what the evaluator gives",
          "[kernels][quantised][sweep]") {
  for (int64_t bits : {2, 4, 8})
    for (const char* level : swept({"native", "x86-64-v2", "x86-64-v3"}, 1))
      for (bool exact : {false, true}) {
        INFO(bits << " bits, " << level << (exact ? ", exact" : ""));
        auto target = target_for({level});
        if (target)
          CHECK(check_kernels(product(uint64_t(bits), bits, exact), *target).empty());
      }
}
