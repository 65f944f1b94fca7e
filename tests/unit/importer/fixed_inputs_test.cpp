// Inputs that are packed for one value: which are fixed, what the error says without a
// value, and that a run with another value is refused.
#include "importer/inputs/value_text.h"

#include "packager/artefact/header_file.h"
#include "packager/artefact/image.h"
#include "runtime_stub/replay.h"
#include "tests/support/import_model.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::packager;
using namespace svod::import_test;

namespace {

// Sums over axes that are an input; `side` is a small input no shape depends on.
std::string sum_over_input() {
  return model(
      {{node("ReduceSum", {"x", "axes"}, {"s"}, {attribute("keepdims", int64_t{0})}),
        node("Add", {"s", "side"}, {"y"})},
       {value("x", {2, 2, 2}), value("axes", {""}, kI64), value("side", {1})},
       {value("y", {"", ""})},
       {}});
}

ModelTensor small_ints(const std::string& name, const std::vector<int64_t>& values) {
  const auto bytes = std::make_shared<std::vector<int64_t>>(values);
  return {name,
          kI64,
          {static_cast<int64_t>(values.size())},
          std::as_bytes(std::span(*bytes)),
          bytes,
          {}};
}

Imported import_fixed(const std::string& bytes, const ImportOptions& options,
                      ModelInterface& interface) {
  Imported result;
  const auto read = read_model_bytes(bytes, options.limits, result.diags);
  REQUIRE(read);
  result.graph = import_model(*read, options, result.diags, &interface);
  return result;
}

} // namespace

TEST_CASE("without a value the error names the input and the option", "[fixed]") {
  refused(sum_over_input(), Exit::Unsupported, "use --value axes=N");
}

TEST_CASE("a value given fixes an input and its length", "[fixed]") {
  ImportOptions options;
  options.values["axes"] = "0,-1";
  ModelInterface interface;
  const Imported result = import_fixed(sum_over_input(), options, interface);
  INFO(result.text());
  REQUIRE(result.graph);
  CHECK(interface.fixed.at("axes").size() == 16);
  CHECK(interface.fixed.size() == 1);
  const Graph& g = *result.graph;
  CHECK(g.inputs().size() == 3); // still in the interface
  CHECK(g[g.inputs()[1].node].shape == Shape{2});
  CHECK(g[g.outputs()[0].node].shape == Shape{2});
  CHECK(result.text().find("packed for axes = [0, -1]") != std::string::npos);
}

TEST_CASE("a data set fixes what a shape needs and nothing else", "[fixed]") {
  ImportOptions options;
  options.data_shapes["axes"] = {1};
  options.data_values["axes"] = small_ints("axes", {1});
  options.data_values["side"] = small_ints("side", {7});
  ModelInterface interface;
  const Imported result = import_fixed(sum_over_input(), options, interface);
  INFO(result.text());
  REQUIRE(result.graph);
  CHECK(interface.fixed.size() == 1);
  CHECK(interface.fixed.contains("axes"));
}

TEST_CASE("a value that depends on data fixes nothing", "[fixed]") {
  // The axis is computed from x, which is no small input.
  const std::string bytes =
      model({{node("ReduceMax", {"x"}, {"m"}, {attribute("keepdims", int64_t{0})}),
              node("Cast", {"m"}, {"i"}, {attribute("to", int64_t{kI64})}),
              node("Add", {"i", "axes"}, {"a"}),
              node("ReduceSum", {"x", "a"}, {"y"}, {attribute("keepdims", int64_t{0})})},
             {value("x", {8, 16}), value("axes", {1}, kI64)},
             {value("y", {""})},
             {}},
            13);
  ImportOptions options;
  options.data_values["axes"] = small_ints("axes", {0});
  const Imported result = import(bytes, options);
  CHECK_FALSE(result.graph);
  CHECK(result.text().find("--value") == std::string::npos);
}

TEST_CASE("values that do not fit are usage errors", "[fixed]") {
  ImportOptions options;
  options.values["axes"] = "1,x";
  refused(sum_over_input(), Exit::Usage, "'x' is no i64", options);
  options.values["axes"] = "1";
  options.shapes["axes"] = {2};
  refused(sum_over_input(), Exit::Usage, "it has 2 elements, given are 1", options);
  options.values = {{"none", "1"}};
  refused(sum_over_input(), Exit::Usage, "the model has no input 'none'", options);
  std::string error;
  CHECK(value_from_text("true,false", DType::Bool, 2, error));
  CHECK_FALSE(value_from_text("2", DType::Bool, 1, error));
  CHECK_FALSE(value_from_text("300", DType::I8, 1, error));
}

namespace {

int32_t no_kernel(uint32_t, uint32_t, void* const*, void*, uint32_t) { return 0; }

ImageContents one_input() {
  ImageContents contents;
  ImageEntry entry;
  entry.inputs = {{"n", kI32, {2}, 4, 8}};
  const int32_t packed[2] = {3, 4};
  entry.inputs[0].fixed.assign(reinterpret_cast<const char*>(packed), sizeof(packed));
  contents.entries = {entry};
  contents.manifest = "{}";
  return contents;
}

} // namespace

TEST_CASE("a run with another value than the packed one is refused", "[fixed]") {
  const std::vector<std::byte> bytes = build_image(one_input());
  const SvodLevel level{"base", 0};
  const SvodModel packed{bytes.data(), bytes.size(), nullptr, 0, no_kernel, &level, 1};
  REQUIRE(svod_check_image(&packed) == SVOD_OK);
  alignas(64) std::byte arena[64];
  int32_t n[2] = {3, 4};
  const void* inputs[] = {n};
  SvodRun run{};
  run.model = &packed;
  run.entry = svod_entry(packed.image, 0);
  run.threads = 1;
  run.arena = arena;
  run.arena_bytes = sizeof(arena);
  run.inputs = inputs;
  CHECK(svod_replay(&run) == SVOD_OK);
  n[1] = 5;
  CHECK(svod_replay(&run) == SVOD_BAD_ARGUMENT);
  ImageContents contents = one_input();
  const std::string header = header_text({"net", &contents, 64, 64});
  CHECK(header.find("#define NET_INPUT_0_FIXED_BYTES {3, 0, 0, 0, 4, 0, 0, 0}") !=
        std::string::npos);
}

TEST_CASE("an image whose extents are no int64 per axis is refused", "[fixed]") {
  ImageContents contents;
  ImageEntry entry;
  entry.outputs = {{"y", kF32, {4, 2}, 4, 32}, {"y.shape", kI64, {2}, 8, 16}};
  entry.outputs[0].shape_output = 2;
  entry.outputs[1].role = SVOD_ROLE_SHAPE;
  contents.entries = {entry};
  contents.manifest = "{}";
  const auto check = [&] {
    const std::vector<std::byte> bytes = build_image(contents);
    const SvodLevel level{"base", 0};
    const SvodModel packed{bytes.data(), bytes.size(), nullptr, 0, no_kernel, &level, 1};
    return svod_check_image(&packed);
  };
  CHECK(check() == SVOD_OK);
  contents.entries[0].outputs[1].dims = {3};
  CHECK(check() == SVOD_CORRUPT);
  contents.entries[0].outputs[1].dims = {2};
  contents.entries[0].outputs[0].shape_output = 3;
  CHECK(check() == SVOD_CORRUPT);
}
