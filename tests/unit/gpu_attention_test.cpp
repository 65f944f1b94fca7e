// Attention as one kernel of a GPU against the evaluator, on the executor of simt.h.
#include "compiler/ir/build.h"
#include "compiler/kernel/gpu_attention.h"
#include "compiler/kernel/text.h"
#include "compiler/pipeline.h"
#include "tests/support/random_tensor.h"
#include "tests/support/run_kernels.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace svod;
using namespace svod::test;

namespace {

// What becomes of a score before the softmax.
enum class Mask {
  None,
  Added,      // numbers for each query and key
  AddedRow,   // for each key, as BERT has them
  Lacking,    // -inf where an input says so for each query and key: rows of nothing, too
  LackingRow, // where it does for each key
  Causal,     // -inf for keys behind the query
  Emptied,    // as Lacking, and no weights where nothing is left
};

struct Case {
  DType type = DType::F32;
  int64_t batch = 1, heads = 2, queries = 20, keys = 20, size = 16, columns = 16;
  Mask mask = Mask::None;
  bool by_token = false; // heads of a token lie side by side
  bool scaled = false;   // queries and keys, before they are multiplied
  int64_t key_heads = 0; // shared by as many heads; 0: each has its own
};

class AttentionGraph {
public:
  explicit AttentionGraph(const Case& l) : l_(l) {}
  Graph make();

private:
  NodeId kept(NodeId x) { return cast(g, cast(g, x, l_.type), DType::F32); }
  NodeId number(double x) { return constant(g, DType::F32, {1}, x); }
  NodeId input(const char* name, int64_t heads, int64_t tokens, int64_t size);
  NodeId of_heads(NodeId x);
  NodeId masked(NodeId scores);
  NodeId scaled(NodeId x, double by) {
    return kept(broadcast_map(g, Op::Mul, {x, number(by)}));
  }

  const Case l_;
  Graph g;
  NodeId empty_ = kNoNode;
};

// As f32 that halves are widened to.
NodeId AttentionGraph::input(const char* name, int64_t heads, int64_t tokens,
                             int64_t size) {
  if (!l_.by_token)
    return cast(g, g.add_input(name, l_.type, {l_.batch, heads, tokens, size}),
                DType::F32);
  const NodeId x = g.add_input(name, l_.type, {l_.batch, tokens, heads * size});
  return permute(g, reshape(g, cast(g, x, DType::F32), {l_.batch, tokens, heads, size}),
                 {0, 2, 1, 3});
}

// Of key heads for all that share them.
NodeId AttentionGraph::of_heads(NodeId x) {
  const Shape s = g[x].shape;
  if (s[1] == l_.heads) return x;
  const int64_t share = l_.heads / s[1];
  const NodeId apart = expand(g, reshape(g, x, {s[0], s[1], 1, s[2], s[3]}),
                              {s[0], s[1], share, s[2], s[3]});
  return reshape(g, apart, {s[0], l_.heads, s[2], s[3]});
}

NodeId AttentionGraph::masked(NodeId scores) {
  const NodeId none = number(-std::numeric_limits<double>::infinity());
  const Shape all{l_.batch, 1, l_.queries, l_.keys}, row{l_.batch, 1, 1, l_.keys};
  switch (l_.mask) {
  case Mask::None:
    return scores;
  case Mask::Added:
  case Mask::AddedRow: {
    const NodeId mask = g.add_input("mask", l_.type, l_.mask == Mask::Added ? all : row);
    return kept(broadcast_map(g, Op::Add, {scores, cast(g, mask, DType::F32)}));
  }
  case Mask::Lacking:
  case Mask::Emptied:
  case Mask::LackingRow: {
    const NodeId mask =
        g.add_input("mask", DType::Bool, l_.mask == Mask::LackingRow ? row : all);
    if (l_.mask == Mask::Emptied) empty_ = reduce(g, Op::ReduceMin, mask, {3});
    return broadcast_map(g, Op::Select, {mask, none, scores});
  }
  case Mask::Causal:
    break;
  }
  const Shape square{1, 1, l_.queries, l_.keys};
  const NodeId behind =
      map(g, Op::Less, {iota(g, DType::I64, square, 2), iota(g, DType::I64, square, 3)});
  return broadcast_map(g, Op::Select, {behind, none, scores});
}

Graph AttentionGraph::make() {
  if (is_half(l_.type)) g.keep_halves();
  const int64_t key_heads = l_.key_heads == 0 ? l_.heads : l_.key_heads;
  NodeId q = input("q", l_.heads, l_.queries, l_.size),
         k = input("k", key_heads, l_.keys, l_.size);
  NodeId v = input("v", key_heads, l_.keys, l_.columns);
  if (l_.scaled) q = scaled(q, 0.5), k = scaled(k, 0.5);
  k = of_heads(k), v = of_heads(v);
  NodeId scores = kept(matmul(g, q, permute_last_two(g, k)));
  scores = masked(scaled(scores, 1 / std::sqrt(double(l_.size))));
  const NodeId top = reduce(g, Op::ReduceMax, scores, {3}),
               e = map(g, Op::Exp, {broadcast_map(g, Op::Sub, {scores, top})}),
               all = reduce(g, Op::ReduceSum, e, {3}),
               all_shares = broadcast_map(g, Op::Div, {e, all}),
               shares =
                   empty_ == kNoNode
                       ? all_shares
                       : broadcast_map(g, Op::Select, {empty_, number(0), all_shares}),
               share = kept(shares);
  NodeId y = cast(g, matmul(g, share, v), l_.type);
  if (l_.by_token)
    y = reshape(g, permute(g, y, {0, 2, 1, 3}),
                {l_.batch, l_.queries, l_.heads * l_.columns});
  g.add_output("y", y);
  return std::move(g);
}

std::vector<Tensor> inputs_of(const Graph& g) {
  Random random(1);
  std::vector<Tensor> out;
  for (const GraphInput& input : g.inputs()) {
    const Node& node = g[input.node];
    if (node.dtype != DType::Bool) {
      out.push_back(random_tensor(random, node.shape, node.dtype));
      continue;
    }
    // Every third query has no key, others lack some: the first ones, too.
    std::vector<double> lacks;
    const int64_t keys = node.shape.back();
    for (int64_t i = 0; i < element_count(node.shape); ++i) {
      const bool nothing = node.shape[2] > 1 && i / keys % 3 == 0;
      lacks.push_back(nothing || i % keys < 40 || i % 7 == 0 ? 1 : 0);
    }
    out.push_back(make_tensor(DType::Bool, node.shape, lacks));
  }
  return out;
}

Target device(const char* name) { return *find_device(name); }

codegen::Kernels compiled(const Graph& g, const char* name, bool exact = false) {
  CompileOptions options;
  options.target = device(name);
  options.exact = exact;
  return compile(g, options);
}

int attentions(const codegen::Kernels& kernels) {
  return static_cast<int>(
      std::ranges::count_if(kernels.plan.programs, [](const ScheduledKernel& k) {
        return k.levels.back().gpu->mapping == GpuMapping::Attention;
      }));
}

double tolerance_of(DType type) {
  return type == DType::F32 ? 1e-5 : type == DType::F16 ? 2e-3 : 1.6e-2;
}

std::string wrong(const Graph& g, const codegen::Kernels& kernels, const char* name) {
  const std::vector<Tensor> inputs = inputs_of(g);
  const KernelRun run = run_kernels(kernels, device(name), inputs);
  if (!run.error.empty()) return run.error;
  if (!run.faults.empty()) return run.faults.front();
  const double tolerance = tolerance_of(run.outputs[0].dtype);
  return compare_tensors(run.outputs[0], evaluate(g, inputs).outputs[0], tolerance,
                         tolerance);
}

std::string wrong(const Case& layout, const char* name) {
  const Graph g = AttentionGraph(layout).make();
  const codegen::Kernels kernels = compiled(g, name);
  if (kernels.plan.programs.size() != 1 || attentions(kernels) != 1)
    return std::to_string(kernels.plan.programs.size()) + " kernels";
  return wrong(g, kernels, name);
}

} // namespace

TEST_CASE("gpu attention: sizes with rests of tiles on all sides", "[sweep]") {
  for (const DType type : swept({DType::F16, DType::F32, DType::BF16}, 2))
    for (const auto& [queries, keys, size, columns] :
         swept({std::tuple(33, 70, 32, 32), std::tuple(17, 65, 20, 48),
                std::tuple(64, 64, 64, 64), std::tuple(70, 33, 40, 24),
                std::tuple(16, 130, 16, 16), std::tuple(20, 20, 128, 128)},
               2)) {
      CAPTURE(info(type).text, queries, keys, size, columns);
      CHECK(wrong(Case{type, 1, 2, queries, keys, size, columns}, "sm_80") == "");
    }
}

TEST_CASE("gpu attention: masks", "[sweep]") {
  for (const DType type : swept({DType::F16, DType::F32}, 1))
    for (const Mask mask :
         {Mask::Added, Mask::AddedRow, Mask::Lacking, Mask::LackingRow, Mask::Causal}) {
      CAPTURE(info(type).text, int(mask));
      CHECK(wrong(Case{type, 2, 2, 35, 70, 16, 16, mask}, "sm_80") == "");
    }
}

// The condition has a kernel of its own.
TEST_CASE("gpu attention: no weights where a mask leaves nothing") {
  for (const DType type : {DType::F32, DType::F16}) {
    const Graph g = AttentionGraph({type, 2, 2, 35, 70, 16, 16, Mask::Emptied}).make();
    const codegen::Kernels kernels = compiled(g, "sm_80");
    CHECK(attentions(kernels) == 1);
    CHECK(kernels.plan.programs.size() == 2);
    CHECK(wrong(g, kernels, "sm_80") == "");
  }
}

TEST_CASE("gpu attention: layouts", "[sweep]") {
  for (const DType type : swept({DType::F16, DType::F32}, 1))
    for (const int64_t key_heads : swept<int64_t>({1, 0, 2}, 2))
      for (const bool scaled : {false, true}) {
        CAPTURE(info(type).text, key_heads, scaled);
        CHECK(wrong(Case{type, 2, 4, 30, 37, 32, 32, Mask::AddedRow, true, scaled,
                         key_heads},
                    "sm_80") == "");
      }
}

TEST_CASE("gpu attention: without tensor cores and copies") {
  for (const DType type : {DType::F32, DType::F16})
    CHECK(wrong(Case{type, 1, 2, 40, 70, 32, 32, Mask::Causal, true}, "sm_75") == "");
}

namespace {

// What goes wrong with the kernel of a graph by this schedule.
std::string wrong_with(const Graph& g, codegen::Kernels kernels,
                       const GpuSchedule& schedule, const char* name) {
  ScheduledKernel& k = kernels.plan.programs.at(0);
  if (std::string why = gpu_misfit(k, schedule); !why.empty()) return why;
  k.levels.back().gpu = schedule;
  return wrong(g, codegen::emit(std::move(kernels.plan), device(name)), name);
}

GpuSchedule chosen(const codegen::Kernels& kernels) {
  return *kernels.plan.programs.at(0).levels.back().gpu;
}

struct Tile {
  int queries, keys, part_queries, part_keys, ahead;
};

} // namespace

TEST_CASE("gpu attention: tiles of all forms compute the same", "[long]") {
  const Case halves{DType::F16, 1, 2, 50, 75, 32, 48, Mask::Added, true},
      floats{DType::F32, 1, 2, 50, 75, 32, 48, Mask::Added, true};
  for (const auto& [layout, tiles] :
       {std::pair(halves, std::vector<Tile>{{32, 32, 16, 32, 0},
                                            {32, 16, 32, 16, 1},
                                            {64, 64, 32, 64, 2},
                                            {48, 48, 16, 48, 3}}),
        std::pair(floats, std::vector<Tile>{{16, 32, 1, 2, 0},
                                            {32, 64, 4, 8, 1},
                                            {64, 32, 8, 4, 2},
                                            {32, 32, 4, 2, 1},
                                            {64, 64, 4, 16, 0}})}) {
    const Graph g = AttentionGraph(layout).make();
    const codegen::Kernels kernels = compiled(g, "sm_80");
    for (const Tile& tile : tiles)
      for (const bool near : {false, true}) {
        CAPTURE(info(layout.type).text, tile.queries, tile.keys, tile.ahead, near);
        GpuSchedule s = chosen(kernels);
        REQUIRE(s.mapping == GpuMapping::Attention);
        AttentionTile& t = s.attention;
        t.block_queries = tile.queries, t.block_keys = tile.keys;
        t.part_queries = tile.part_queries, t.part_keys = tile.part_keys;
        t.ahead = tile.ahead;
        s.threads = threads_of(t);
        if (!near)
          for (FactorTile* f : {&t.queries, &t.keys, &t.values})
            f->near = 1, f->by_steps = !f->by_steps;
        CHECK(wrong_with(g, kernels, s, "sm_80") == "");
      }
  }
}

// Keys and values that are copied as they lie, with rows of more than 128 bytes, too, and
// keys that go through registers.
TEST_CASE("gpu attention: groups of warps compute the same", "[long]") {
  for (const Case& layout :
       {Case{DType::F16, 1, 2, 70, 150, 64, 64, Mask::Added, true},
        Case{DType::BF16, 2, 1, 64, 128, 32, 48}, Case{DType::F16, 1, 1, 65, 70, 40, 72},
        Case{DType::F16, 1, 2, 80, 100, 128, 128, Mask::LackingRow, true},
        Case{DType::F16, 1, 4, 64, 77, 64, 64, Mask::Causal, true, true, 2}}) {
    const Graph g = AttentionGraph(layout).make();
    const codegen::Kernels kernels = compiled(g, "sm_90a");
    for (const Tile& tile : {Tile{64, 64, 64, 64, 1}, Tile{128, 64, 64, 64, 2},
                             Tile{64, 32, 64, 32, 0}, Tile{128, 128, 64, 128, 1}}) {
      CAPTURE(info(layout.type).text, layout.queries, tile.queries, tile.keys,
              tile.ahead);
      GpuSchedule s = chosen(kernels);
      REQUIRE(s.mapping == GpuMapping::Attention);
      AttentionTile& t = s.attention;
      t.by = Multiplier::Group;
      t.block_queries = tile.queries, t.block_keys = tile.keys;
      t.part_queries = tile.part_queries, t.part_keys = tile.part_keys;
      t.ahead = tile.ahead;
      s.threads = threads_of(t);
      CHECK(wrong_with(g, kernels, s, "sm_90a") == "");
    }
  }
}

// Scores that nobody has waited for are no scores yet.
TEST_CASE("gpu attention: the executor finds products that are not waited for") {
  const Graph g = AttentionGraph({DType::F16, 1, 1, 64, 192, 64, 64}).make();
  codegen::Kernels kernels = compiled(g, "sm_90a");
  GpuSchedule s = chosen(kernels);
  s.attention.by = Multiplier::Group;
  s.attention.block_queries = s.attention.part_queries = 64;
  s.attention.block_keys = s.attention.part_keys = 64;
  s.attention.ahead = 1;
  s.threads = threads_of(s.attention);
  kernels.plan.programs[0].levels.back().gpu = s;
  kernels = codegen::emit(std::move(kernels.plan), device("sm_90a"));
  std::string& text = kernels.sources[0].text;
  const std::string wait = "wait_for_products<0>";
  REQUIRE(text.rfind(wait) != std::string::npos);
  text.replace(text.rfind(wait), wait.size(), "wait_for_products<1>");
  CHECK(wrong(g, kernels, "sm_90a") != "");
}

TEST_CASE("gpu attention: schedules that do not fit") {
  const codegen::Kernels kernels =
      compiled(AttentionGraph({DType::F16, 1, 2, 50, 75, 32, 48}).make(), "sm_80");
  const ScheduledKernel& k = kernels.plan.programs.at(0);
  const GpuSchedule fits = chosen(kernels);
  CHECK(gpu_misfit(k, fits) == "");
  auto refuses = [&](auto change) {
    GpuSchedule s = fits;
    change(s.attention);
    return !gpu_misfit(k, s).empty();
  };
  CHECK(refuses([](AttentionTile& t) { t.block_queries = 0; }));
  CHECK(refuses([](AttentionTile& t) { t.block_keys = 40; }));
  CHECK(refuses([](AttentionTile& t) { t.part_queries = 24; }));
  CHECK(refuses([](AttentionTile& t) { t.queries.near = 32; }));
  CHECK(refuses([](AttentionTile& t) { t.values.axes = t.queries.axes; }));
  CHECK(refuses([](AttentionTile& t) { t.ahead = -1; }));
}

TEST_CASE("gpu attention: schedules are read back as they are printed") {
  for (const DType type : {DType::F16, DType::F32}) {
    const codegen::Kernels kernels = compiled(
        AttentionGraph({type, 1, 2, 50, 75, 32, 48, Mask::None, true}).make(), "sm_80");
    const ScheduledKernel& k = kernels.plan.programs.at(0);
    TextFault fault;
    const auto read = parse_schedule(print(static_cast<const KernelSchedule&>(k)), fault);
    CAPTURE(fault.why, print(static_cast<const KernelSchedule&>(k)));
    REQUIRE(read);
    CHECK(read->levels == k.levels);
  }
}

// Without the wait of its text that is named, of several the last one.
TEST_CASE("gpu attention: the executor finds waits that are missing") {
  struct Wait {
    DType type;
    std::string text;
  };
  for (const auto& [type, text] : {Wait{DType::F16, "wait_for_block();"},
                                   {DType::F16, "wait_for_copies<"},
                                   {DType::F32, "wait_for_block();"},
                                   {DType::F32, "wait_for_copies<"}}) {
    CAPTURE(info(type).text, text);
    const Graph g = AttentionGraph({type, 1, 1, 40, 150, 32, 32}).make();
    codegen::Kernels kernels = compiled(g, "sm_80");
    REQUIRE(attentions(kernels) == 1);
    std::string& source = kernels.sources[0].text;
    const size_t at = source.rfind(text);
    REQUIRE(at != std::string::npos);
    source.erase(at, source.find(';', at) + 1 - at);
    CHECK(wrong(g, kernels, "sm_80") != "");
  }
}

TEST_CASE("gpu attention: exact results keep three kernels") {
  const Graph g = AttentionGraph({DType::F16, 1, 2, 50, 75, 32, 48}).make();
  CHECK(attentions(compiled(g, "sm_80", true)) == 0);
}

// A query for each head: blocks of them would be nearly empty.
TEST_CASE("gpu attention: one query keeps three kernels") {
  const Graph g = AttentionGraph({DType::F16, 1, 12, 1, 4096, 64, 64}).make();
  CHECK(attentions(compiled(g, "sm_80")) == 0);
}

TEST_CASE("gpu attention: scores that others need keep three kernels") {
  Graph g = AttentionGraph({DType::F16, 1, 2, 50, 75, 32, 48}).make();
  const NodeId softmax = [&] {
    for (NodeId n : g.live_nodes())
      if (g[n].op == Op::Div && g[n].shape == Shape{1, 2, 50, 75}) return n;
    return kNoNode;
  }();
  REQUIRE(softmax != kNoNode);
  g.add_output("softmax", softmax);
  CHECK(attentions(compiled(g, "sm_80")) == 0);
}

// BERT has a mask for each key, ViT scales queries and keys by themselves and has 197
// tokens, GPT looks at no later ones.
TEST_CASE("gpu attention: that of BERT, ViT and GPT is one kernel") {
  for (const DType type : {DType::F16, DType::F32})
    for (const Case& layout :
         {Case{type, 8, 12, 128, 128, 64, 64, Mask::AddedRow, true},
          Case{type, 8, 12, 197, 197, 64, 64, Mask::None, true, true},
          Case{type, 8, 12, 256, 256, 64, 64, Mask::Causal, true}})
      for (const char* name : {"sm_80", "sm_90"}) {
        CAPTURE(info(type).text, layout.queries, name);
        const codegen::Kernels kernels = compiled(AttentionGraph(layout).make(), name);
        CHECK(kernels.plan.programs.size() == 1);
        CHECK(attentions(kernels) == 1);
      }
}
