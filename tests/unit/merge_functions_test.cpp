// Kernels that differ in numbers alone: what is marked, which are one function, and with
// what they call it.
#include "compiler/codegen/marked_text.h"
#include "compiler/codegen/merge_functions.h"
#include "compiler/ir/build.h"
#include "compiler/pipeline.h"

#include <catch2/catch.hpp>

#include <set>

using namespace svod;
using namespace svod::codegen;

namespace {

// tanh of the sums of the rows of each matrix: kernels too long to be joined.
Graph tall_sums(const std::vector<Shape>& shapes) {
  Graph g;
  for (size_t i = 0; i < shapes.size(); ++i) {
    const std::string number = std::to_string(i);
    const NodeId x = g.add_input("x" + number, DType::F32, shapes[i]);
    const NodeId sums = reduce(g, Op::ReduceSum, x, {1});
    g.add_output("y" + number, map(g, Op::Tanh, {sums}));
  }
  return g;
}

Kernels small_kernels(const Graph& graph, const char* target = "cortex-m4") {
  CompileOptions options;
  options.target = for_size(*find_target(target));
  options.exact = true;
  options.one_thread = true;
  return compile(graph, options);
}

std::set<std::string> own_texts(const Kernels& kernels) {
  std::set<std::string> out;
  for (const KernelSource& source : kernels.sources) out.insert(source.text);
  return out;
}

} // namespace

TEST_CASE("a marked number reads as it would without its mark", "[codegen]") {
  const auto read = [](NumberForm form, std::vector<MarkedTerm> terms) {
    return "x" + plain_text_of(marked(form, std::move(terms)));
  };
  CHECK(read(NumberForm::Plain, {{1, -3}}) == "x-3");
  CHECK(read(NumberForm::Factor, {{1, 16}}) == "x * 16");
  CHECK(read(NumberForm::Factor, {{1, 1}}) == "x");
  CHECK(read(NumberForm::Addend, {{1, 8}, {2, 16}}) == "x + 40");
  CHECK(read(NumberForm::Addend, {{1, -8}}) == "x - 8");
  CHECK(read(NumberForm::Addend, {{1, 16}, {-1, 16}}) == "x");
}

TEST_CASE("a marked number may come from outside", "[codegen]") {
  const std::string text = "a" + marked(NumberForm::Addend, {{1, 8}, {2, 16}});
  MarkedReader reader;
  reader.number = [](size_t place) { return place == 1 ? "n" : ""; };
  const std::vector<MarkedSection> sections = read_marked(text);
  REQUIRE(sections.size() == 1);
  CHECK(plain_text_of(sections[0].pieces, reader) == "a + n * 2 + 8");
}

TEST_CASE("kernels of several sizes are one function with their numbers", "[codegen]") {
  const Graph graph = tall_sums({{60, 400}, {100, 560}, {140, 880}});
  Kernels kernels = small_kernels(graph);
  REQUIRE(kernels.sources.size() == 3);
  CHECK(own_texts(kernels).size() == 3);
  for (const KernelSource& source : kernels.sources)
    CHECK(source.text.find_first_of("\1\2\3\4\5\6") == std::string::npos);

  const std::vector<MergeGroup> groups = merge_groups(kernels, true);
  REQUIRE(groups.size() == 1);
  REQUIRE(groups[0].members.size() == 3);
  merge_functions(kernels, groups);
  CHECK(own_texts(kernels).size() == 1);
  std::set<std::vector<int64_t>> numbers;
  for (const KernelSource& source : kernels.sources) {
    CHECK(source.passing != NumberPassing::None);
    CHECK(source.numbers.size() == groups[0].members[0].numbers.size());
    numbers.insert(source.numbers);
  }
  CHECK(numbers.size() == 3);
}

TEST_CASE("what differs in more than numbers is not merged", "[codegen]") {
  Graph graph = tall_sums({{60, 400}});
  const NodeId x = graph.add_input("x", DType::F32, {100, 560});
  graph.add_output("y", map(graph, Op::Sigmoid, {reduce(graph, Op::ReduceSum, x, {1})}));
  CHECK(merge_groups(small_kernels(graph), true).empty());
}

TEST_CASE("kernels for speed, and those that a program launches, have no marks",
          "[codegen]") {
  const Graph graph = tall_sums({{60, 400}, {100, 560}});
  CompileOptions fast;
  fast.target = *find_target("cortex-m4");
  for (const Kernels& kernels : {compile(graph, fast), small_kernels(graph, "aarch64")}) {
    CHECK(merge_groups(kernels, true).empty());
    for (const KernelSource& source : kernels.sources) CHECK(source.marked.empty());
  }
}
