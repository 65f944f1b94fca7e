// The digest: stable, blind to names and to the order of building, and nothing else.
#include "compiler/ir/build.h"
#include "compiler/ir/digest.h"
#include "compiler/ir/parse.h"
#include "tests/support/random_graph.h"
#include "tests/support/sweep.h"

#include <catch2/catch.hpp>

#include <set>

using namespace svod;
using namespace svod::test;

namespace {

Graph parsed(const std::string& text) {
  Diags diags;
  auto graph = parse_graph(text, diags);
  INFO(diags.text("text"));
  REQUIRE(graph);
  return std::move(*graph);
}

std::string digest_of(const std::string& text) {
  return graph_digest(parsed(text)).hex();
}

// The graph with one node changed as `change` says, not necessarily a valid one.
template <class F> Graph with_change(const Graph& from, NodeId at, F change) {
  Graph out;
  std::vector<NodeId> to;
  for (NodeId id = 0; id < from.size(); ++id) {
    Node node = from[id];
    for (NodeId& input : node.inputs) input = to[input];
    if (node.op == Op::Weight)
      node.payload[0] = out.add_blob(from.blob(static_cast<uint32_t>(node.payload[0])));
    if (id == at) change(node, out);
    to.push_back(node.op == Op::Input ? out.add_input("x", node.dtype, node.shape)
                                      : out.intern(node));
  }
  for (const GraphOutput& output : from.outputs()) out.add_output("y", to[output.node]);
  return out;
}

} // namespace

TEST_CASE("the digest of a fixed graph never changes", "[ir][digest]") {
  // A change of this value makes every plan cache miss: it wants a new version in
  // digest.cpp.
  CHECK(digest_of("%0 = input \"x\" : f32[2,3]\n"
                  "%1 = weight #0 {1, 2, 3} : f32[1,3]\n"
                  "%2 = expand %1 : f32[2,3]\n"
                  "%3 = mul %0 %2\n"
                  "%4 = sum %3 axes=[1]\n"
                  "output \"y\" %4\n") ==
        "0d95348cffbf79fa6d90356a11b9f7ab0ee320bbc36c848748ca0b2565e59710");
}

TEST_CASE("names and the order of building do not matter", "[ir][digest]") {
  std::string a = "%0 = input \"x\" : f32[2]\n%1 = exp %0\n%2 = neg %0\n%3 = sub %1 %2\n"
                  "output \"y\" %3\n";
  std::string b = "%0 = input \"data\" : f32[2]\n%9 = sin %0\n%2 = neg %0\n%1 = exp %0\n"
                  "%3 = sub %1 %2\noutput \"result\" %3\n";
  CHECK(digest_of(a) == digest_of(b));
  std::string swapped =
      "%0 = input \"x\" : f32[2]\n%1 = exp %0\n%2 = neg %0\n%3 = sub %2 %1\n"
      "output \"y\" %3\n";
  CHECK(digest_of(a) != digest_of(swapped));
}

TEST_CASE("inputs and outputs matter", "[ir][digest]") {
  std::string one = "%0 = input \"x\" : f32[2]\n%1 = exp %0\n";
  std::set<std::string> seen;
  seen.insert(digest_of(one + "output \"y\" %1\n"));
  seen.insert(digest_of(one + "output \"y\" %0\n"));
  seen.insert(digest_of(one + "output \"y\" %1\noutput \"z\" %1\n"));
  seen.insert(digest_of(one + "output \"y\" %1\noutput \"z\" %0\n"));
  seen.insert(digest_of(one + "output \"y\" %0\noutput \"z\" %1\n"));
  seen.insert(digest_of(one + "%2 = input \"unused\" : f32[2]\noutput \"y\" %1\n"));
  seen.insert(digest_of(one + "%2 = input \"unused\" : f32[3]\noutput \"y\" %1\n"));
  CHECK(seen.size() == 7);
}

TEST_CASE("weights matter, or only which are shared", "[ir][digest]") {
  auto graph = [](const std::string& a, const std::string& b) {
    return parsed("%0 = weight #0 {" + a + "} : f32[2]\n%1 = weight #1 {" + b +
                  "} : f32[2]\n%2 = add %0 %1\noutput %2\n");
  };
  Graph first = graph("1, 2", "3, 4"), second = graph("5, 6", "7, 8"),
        tied = graph("1, 2", "1, 2");
  CHECK(graph_digest(first) != graph_digest(second));
  GraphDigestOptions plan{.weight_values = false};
  CHECK(graph_digest(first, plan) == graph_digest(second, plan));
  CHECK(graph_digest(first, plan) != graph_digest(tied, plan));
  CHECK(graph_digest(first, plan) != graph_digest(first));
}

TEST_CASE("any change to a live node changes the digest",
          "[ir][digest][property][sweep]") {
  for (uint64_t seed = 1; seed <= swept(120, 30); ++seed) {
    Graph graph = random_graph(seed).graph;
    Digest before = graph_digest(graph);
    REQUIRE(graph_digest(with_change(graph, kNoNode, [](Node&, Graph&) {})) == before);
    for (NodeId id : graph.live_nodes()) {
      auto check = [&](auto change) {
        INFO("seed " << seed << ' ' << info(graph[id].op).text);
        CHECK(graph_digest(with_change(graph, id, change)) != before);
      };
      for (size_t i = 0; i < graph[id].shape.size(); ++i)
        check([i](Node& node, Graph&) { node.shape[i] += 1000; });
      check([](Node& node, Graph&) { node.shape.push_back(1); });
      check([](Node& node, Graph&) {
        node.dtype = node.dtype == DType::I16 ? DType::F64 : DType::I16;
      });
      if (graph[id].op == Op::Input) continue;
      if (graph[id].op == Op::Weight) {
        check([](Node& node, Graph& g) {
          node.payload[0] = g.add_blob(std::vector<std::byte>(3, std::byte{0x5a}));
        });
        continue;
      }
      for (size_t i = 0; i < graph[id].payload.size(); ++i)
        check([i](Node& node, Graph&) { node.payload[i] += 1000; });
    }
  }
}
