// Plans as bytes: what comes back is what was kept, under the names of the graph that
// asks; anything else is a miss.
#include "compiler/ir/evaluate.h"
#include "compiler/ir/parse.h"
#include "compiler/stored_plan.h"
#include "compiler/support/byte_form.h"

#include <catch2/catch.hpp>

using namespace svod;

namespace {

Graph parsed(const std::string& text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("text"));
  REQUIRE(graph);
  return std::move(*graph);
}

// Two nodes of two sources, and a weight; `a` and `b` are their names.
Graph layers(const std::string& a, const std::string& b, const std::string& third = "3") {
  Graph g;
  const Graph from = parsed("%0 = input \"x\" : f32[2,3]\n"
                            "%1 = weight #0 {1, 2, " +
                            third +
                            "} : f32[1,3]\n"
                            "%2 = expand %1 : f32[2,3]\n"
                            "%3 = mul %0 %2\n"
                            "%4 = sum %3 axes=[1]\n"
                            "%5 = exp %4\n"
                            "output \"y\" %5\n");
  std::vector<NodeId> to;
  for (NodeId id = 0; id < from.size(); id++) {
    Node node = from[id];
    for (NodeId& input : node.inputs) input = to[input];
    if (node.op == Op::Weight) node.payload[0] = g.add_blob(from.blob(0));
    if (id == 1) g.open_source(a);
    if (id == 5) g.open_source(b);
    to.push_back(node.op == Op::Input ? g.add_input("in " + a, node.dtype, node.shape)
                                      : g.intern(node));
  }
  g.close_source();
  g.add_output("out " + b, to.back());
  return g;
}

CompileOptions options_for(const std::string& target) { return {*find_target(target)}; }

std::vector<std::byte> kept(const Graph& graph, const std::string& key) {
  CompiledPlan plan;
  CompileOptions options = options_for("x86-64");
  options.facts = std::make_shared<ValueFacts>();
  plan.kernels = compile(graph, options);
  plan.facts = options.facts;
  const auto bytes = plan_bytes(plan, graph, key);
  REQUIRE(bytes);
  return *bytes;
}

std::string key_of(const Graph& graph, const std::string& build = "build") {
  return stored_plan_key(graph, options_for("x86-64"), build);
}

} // namespace

TEST_CASE("byte form: values come back", "[support]") {
  struct Inner {
    std::vector<std::string> texts;
    std::optional<double> number;
    bool operator==(const Inner&) const = default;
  };
  struct Outer {
    std::map<int, Inner> inner;
    std::variant<std::monostate, Inner, int64_t> any;
    std::set<Digest> digests;
    std::pair<uint8_t, std::vector<int64_t>> pair;
    bool operator==(const Outer&) const = default;
  };
  Outer value{
      {{3, {{"a", ""}, 1.5}}, {4, {}}}, Inner{{"b"}, {}}, {sha256("c")}, {7, {-1, 2}}};
  ByteWriter out;
  out.put(value);
  ByteReader in(out.bytes());
  CHECK(in.get<Outer>() == value);
  CHECK(in.at_end());
  CHECK_FALSE(in.failed());
  for (size_t size = 0; size < out.bytes().size(); size++) {
    ByteReader cut(std::span(out.bytes()).first(size));
    cut.get<Outer>();
    CHECK(cut.failed());
  }
}

TEST_CASE("a plan is read as it was kept", "[plan][cache]") {
  const Graph graph = layers("first", "second");
  const std::vector<std::byte> bytes = kept(graph, key_of(graph));
  const auto read = plan_from_bytes(bytes, graph, key_of(graph));
  REQUIRE(read);
  const codegen::Kernels want = compile(graph, options_for("x86-64"));
  CHECK(print(read->kernels.plan) == print(want.plan));
  CHECK(plan::print_programs(read->kernels.plan) == plan::print_programs(want.plan));
  REQUIRE(read->kernels.sources.size() == want.sources.size());
  for (size_t i = 0; i < want.sources.size(); i++) {
    CHECK(read->kernels.sources[i].text == want.sources[i].text);
    CHECK(read->kernels.sources[i].symbol == want.sources[i].symbol);
    CHECK(read->kernels.sources[i].prelude_bytes == want.sources[i].prelude_bytes);
  }
}

TEST_CASE("names are those of the graph that asks", "[plan][cache]") {
  const Graph graph = layers("first", "second"), other = layers("z", "a");
  CHECK(key_of(graph) == key_of(other));
  const auto read = plan_from_bytes(kept(graph, key_of(graph)), other, key_of(other));
  REQUIRE(read);
  const Graph& names = read->kernels.plan.graph;
  CHECK(names.source_names() == std::vector<std::string>{"z", "a"});
  CHECK(names.inputs()[0].name == "in z");
  CHECK(names.outputs()[0].name == "out a");
  // As if it had been planned itself.
  const codegen::Kernels own = compile(other, options_for("x86-64"));
  CHECK(print(read->kernels.plan) == print(own.plan));
}

TEST_CASE("weights are those of the graph that asks", "[plan][cache]") {
  const Graph graph = layers("first", "second"), other = layers("first", "second", "4");
  CHECK(key_of(graph) == key_of(other));
  const auto read = plan_from_bytes(kept(graph, key_of(graph)), other, key_of(other));
  REQUIRE(read);
  const codegen::Kernels own = compile(other, options_for("x86-64"));
  CHECK(print(read->kernels.plan) == print(own.plan));
  REQUIRE(read->kernels.plan.packed.size() == own.plan.packed.size());
  for (size_t i = 0; i < own.plan.packed.size(); i++) {
    const auto value = [&](const plan::Plan& plan) {
      return evaluate_known(plan.graph, plan.packed[i].source).bytes;
    };
    CHECK(value(read->kernels.plan) == value(own.plan));
  }
}

TEST_CASE("what decides a plan is in its key", "[plan][cache]") {
  const Graph graph = layers("first", "second");
  std::set<std::string> keys{key_of(graph), key_of(graph, "other build"),
                             stored_plan_key(graph, options_for("x86-64-v3"), "build"),
                             stored_plan_key(graph, options_for("aarch64"), "build")};
  const auto with = [&](auto change) {
    CompileOptions options = options_for("x86-64");
    change(options);
    keys.insert(stored_plan_key(graph, options, "build"));
  };
  with([](CompileOptions& o) { o.exact = true; });
  with([](CompileOptions& o) { o.one_thread = true; });
  with([](CompileOptions& o) { o.fusion_budget = 1; });
  with([](CompileOptions& o) { o.equal_budget = 1; });
  with([](CompileOptions& o) { o.as_written = true; });
  with([](CompileOptions& o) { o.for_speed = {sha256("k")}; });
  with([](CompileOptions& o) { o.work_for_ram = 0.5; });
  with([](CompileOptions& o) { o.most_arena = 1; });
  with([](CompileOptions& o) { o.pools = {1}; });
  with([](CompileOptions& o) { o.search_budget = 1; });
  with([](CompileOptions& o) { o.unsearched = {sha256("k")}; });
  CHECK(keys.size() == 15);
}

TEST_CASE("bytes of another key or cut are a miss", "[plan][cache]") {
  const Graph graph = layers("first", "second");
  const std::string key = key_of(graph);
  const std::vector<std::byte> bytes = kept(graph, key);
  CHECK_FALSE(plan_from_bytes(bytes, graph, key + "x"));
  for (size_t size = 0; size < bytes.size(); size += 97)
    CHECK_FALSE(plan_from_bytes(std::span(bytes).first(size), graph, key));
}
