// Several sets of shapes: how a command line is read, and how their plans become one
// package.
#include "packager/shape_sets.h"

#include "compiler/ir/parse.h"
#include "compiler/pipeline.h"
#include "packager/artefact/contents.h"
#include "packager/artefact/merge_entries.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::packager;

namespace {

using Words = std::vector<std::string>;

std::vector<ShapeSet> sets_of(const Words& shapes, const Words& entries,
                              const Words& dims = {}) {
  auto read = read_shape_sets(shapes, entries, dims);
  REQUIRE(std::holds_alternative<ShapeSets>(read));
  return std::get<ShapeSets>(read).sets;
}

std::string shape_fault(const Words& shapes, const Words& entries,
                        const Words& dims = {}) {
  auto read = read_shape_sets(shapes, entries, dims);
  REQUIRE(std::holds_alternative<std::string>(read));
  return std::get<std::string>(read);
}

struct Planned {
  codegen::Kernels kernels;
  ImageContents contents;
};

// Rows plus a row that is known.
Planned planned(int64_t rows) {
  const std::string n = std::to_string(rows);
  const std::string text = "%0 = input \"x\" : f32[" + n + ",4]\n" +
                           "%1 = weight #0 {1, 2, 3, 4} : f32[1,4]\n" +
                           "%2 = expand %1 : f32[" + n + ",4]\n" +
                           "%3 = add %0 %2 : f32[" + n + ",4]\noutput \"y\" %3\n";
  Diags diags;
  std::optional<Graph> graph = parse_graph(text, diags);
  REQUIRE(graph);
  CompileOptions options;
  options.target = *find_target("x86-64-v3");
  codegen::Kernels kernels = compile(*graph, options);
  ImageContents contents = image_contents(kernels.plan, {}, {}, {});
  return {std::move(kernels), std::move(contents)};
}

std::vector<std::byte> section(const Plans& plans, const SharedWeights& shared) {
  std::vector<std::byte> out;
  produce_weights(plans, shared, [&](std::span<const std::byte> bytes) {
    out.insert(out.end(), bytes.begin(), bytes.end());
  });
  return out;
}

} // namespace

TEST_CASE("a size that a run decides is one set, with a step one for each multiple",
          "[shape_sets]") {
  const auto one = sets_of({"x=1x3"}, {}, {"seq=2..9"});
  REQUIRE(one.size() == 1);
  CHECK(one[0].sizes.at("seq").least == 2);
  CHECK(one[0].sizes.at("seq").most == 9);
  const auto steps = sets_of({}, {}, {"batch=1..2/1", "seq=1..10/4"});
  REQUIRE(steps.size() == 6);
  const auto most = [&](size_t i) {
    return std::pair{steps[i].sizes.at("batch").most, steps[i].sizes.at("seq").most};
  };
  CHECK(most(0) == std::pair<int64_t, int64_t>{1, 4});
  CHECK(most(2) == std::pair<int64_t, int64_t>{1, 10});
  CHECK(most(3) == std::pair<int64_t, int64_t>{2, 4});
  CHECK(steps[4].name == "4");
  // A cache before its first row has none; no set is for nothing else.
  const auto from_none = sets_of({}, {}, {"past=0..8/4"});
  REQUIRE(from_none.size() == 2);
  CHECK(from_none[0].sizes.at("past").least == 0);
  CHECK(from_none[0].sizes.at("past").most == 4);
  for (const char* wrong : {"seq=4", "seq=..4", "seq=0..0", "seq=5..4", "seq=1..4/0",
                            "seq=1..4/", "=1..4", "seq=1../4"})
    CHECK(shape_fault({}, {}, {wrong}).find("is not NAME=LEAST..MOST") !=
          std::string::npos);
  CHECK(shape_fault({}, {}, {"seq=1..4", "seq=1..5"}).find("twice") != std::string::npos);
  CHECK(shape_fault({}, {}, {"seq=1..1000/1"}).find("at most 64") != std::string::npos);
  CHECK(shape_fault({}, {"a:x=1"}, {"seq=1..8/4"}).find("/STEP") != std::string::npos);
}

TEST_CASE("a name that comes again begins the next set of shapes", "[shape_sets]") {
  const auto one = sets_of({"x=1x3", "batch=2"}, {});
  REQUIRE(one.size() == 1);
  CHECK(one[0].shapes.at("x") == Shape{1, 3});
  const auto two = sets_of({"x=1x3", "y=5", "x=8x3", "x=9x3", "y=6"}, {});
  REQUIRE(two.size() == 3);
  CHECK(two[1].name == "1");
  CHECK(two[1].shapes.at("x") == Shape{8, 3});
  CHECK(two[1].shapes.at("y") == Shape{5}); // of the first
  CHECK(two[2].shapes.at("y") == Shape{6});
  CHECK(sets_of({}, {}).size() == 1);
}

TEST_CASE("entries have names, and --shape says what all of them have", "[shape_sets]") {
  const auto sets = sets_of({"y=5"}, {"small:x=1x3", "large:x=8x3,y=6"});
  REQUIRE(sets.size() == 2);
  CHECK(sets[0].name == "small");
  CHECK(sets[0].shapes.at("y") == Shape{5});
  CHECK(sets[1].shapes.at("y") == Shape{6});
  CHECK(shape_fault({"x=1", "x=2"}, {"a:x=3"}).find("all of them by --entry") !=
        std::string::npos);
  CHECK(shape_fault({}, {"x=3"}).find("is not NAME:") != std::string::npos);
  CHECK(shape_fault({}, {"1:x=3"}).find("is a letter") != std::string::npos);
  CHECK(shape_fault({}, {"a:x=3,x=4"}).find("twice in a") != std::string::npos);
  CHECK(shape_fault({}, {"a:x=3,"}).find("is not NAME=AxBxC") != std::string::npos);
  CHECK(shape_fault({"x=1x"}, {}).find("a number is missing") != std::string::npos);
  CHECK(shape_fault({"x=1x-2"}, {}).find("'-2' is no number") != std::string::npos);
}

TEST_CASE("equal kernels and weights of several plans are there once", "[shape_sets]") {
  Planned first = planned(4);
  const Planned same = planned(4), more = planned(64);
  const size_t programs = first.kernels.plan.programs.size();
  const uint64_t bytes = first.contents.weight_bytes;
  const MergedEntries merged =
      merge_entries(first.kernels, first.contents,
                    {{&same.kernels, &same.contents}, {&more.kernels, &more.contents}});
  CHECK(first.contents.entries.size() == 3);
  CHECK(first.contents.weight_bytes == bytes);
  CHECK(merged.programs[0] == std::vector<uint32_t>{0});
  CHECK(merged.programs[1] == std::vector<uint32_t>{static_cast<uint32_t>(programs)});
  CHECK(first.contents.programs.size() == programs + 1);
  CHECK(first.kernels.sources.back().symbol == "k1_v3");
  const Plans all{&first.kernels.plan, &same.kernels.plan, &more.kernels.plan};
  const std::vector<std::byte> packed = section(all, merged.weights);
  CHECK(packed.size() == bytes);
  std::vector<std::byte> alone;
  produce_weights(more.kernels.plan, [&](std::span<const std::byte> part) {
    alone.insert(alone.end(), part.begin(), part.end());
  });
  CHECK(packed == alone);
}

TEST_CASE("entries differ in the shapes of the same inputs alone", "[shape_sets]") {
  const Planned a = planned(4), b = planned(8);
  ImageEntry four = a.contents.entries[0], eight = b.contents.entries[0];
  four.name = "four", eight.name = "eight";
  CHECK(entries_fault({&four, &eight}).empty());
  CHECK(entries_fault({&four, &four}).find("the same shapes") != std::string::npos);
  eight.inputs[0].name = "z";
  CHECK(entries_fault({&four, &eight}).find("other inputs") != std::string::npos);
}
