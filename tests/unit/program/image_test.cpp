// What the packager writes, the stub accepts and runs; JSON, header and glue hold hostile
// names.
#include "packager/artefact/header_file.h"
#include "packager/artefact/image.h"
#include "packager/artefact/weights.h"
#include "packager/report/json.h"
#include "runtime_stub/checksum.h"
#include "runtime_stub/replay.h"

#include <catch2/catch.hpp>

#include <cstring>

using namespace svod;
using namespace svod::packager;

namespace {

// y = x + w in two chunks, over "x", "y" f32[2,3].
ImageContents contents() {
  ImageContents out;
  ImageEntry entry;
  entry.inputs = {{"x", 1, {2, 3}, 4, 24}};
  entry.outputs = {{"y", 1, {2, 3}, 4, 24}};
  entry.slots = {{SVOD_SLOT_INPUT, 0, 0, 24},
                 {SVOD_SLOT_WEIGHT, 0, 64, 24},
                 {SVOD_SLOT_TEMPORARY, 0, 0, 24},
                 {SVOD_SLOT_OUTPUT, 0, 0, 24}};
  ImageStep launch;
  launch.args = {0, 1, 2};
  launch.chunks = 2;
  launch.sources = "a/node,b";
  ImageStep copy;
  copy.kind = SVOD_STEP_COPY;
  copy.args = {2, 3};
  entry.steps = {launch, copy};
  entry.arena_bytes = 24;
  entry.scratch_bytes = 10;
  out.entries = {entry};
  out.programs = {"k0"};
  out.manifest = "{}";
  out.weight_bytes = 88;
  return out;
}

int32_t add(uint32_t, uint32_t, void* const* buffers, void*, uint32_t chunk) {
  for (int i = 0; i < 3; i++) {
    size_t at = chunk * 3 + static_cast<size_t>(i);
    static_cast<float*>(buffers[2])[at] = static_cast<const float*>(buffers[0])[at] +
                                          static_cast<const float*>(buffers[1])[at];
  }
  return 0;
}

std::string text_at(const void* image, SvodText text) {
  return {svod_text(image, text), text.size};
}

} // namespace

TEST_CASE("a built image passes the stub's check and runs", "[image]") {
  alignas(64) float weights[32] = {};
  for (int i = 0; i < 6; i++) weights[16 + i] = static_cast<float>(100 * i);
  ImageContents c = contents();
  c.weight_checksum = svod_checksum(weights, c.weight_bytes);
  std::vector<std::byte> bytes = build_image(c);
  SvodLevel level{"base", 0};
  SvodModel model{bytes.data(), bytes.size(), weights, sizeof(weights), add, &level, 1};
  REQUIRE(svod_check_image(&model) == SVOD_OK);
  REQUIRE(svod_check_bytes(&model) == SVOD_OK);
  const void* image = bytes.data();
  const SvodEntry* entry = svod_entry(image, 0);
  CHECK(text_at(image, svod_input(image, entry, 0)->name) == "x");
  CHECK(text_at(image, svod_step(image, entry, 0)->sources) == "a/node,b");
  CHECK(text_at(image, svod_program(image, 0)->name) == "k0");
  CHECK(std::string(svod_text(image, svod_header(image)->manifest)) == "{}");
  CHECK(SVOD_ARENA_NOTES + svod_arena_bytes(image, entry, 3) ==
        arena_bytes(c, c.entries[0], 3, sizeof(void*)).all());

  alignas(64) std::byte arena[512];
  float x[6] = {1, 2, 3, 4, 5, 6}, y[6] = {};
  const void* inputs[] = {x};
  void* outputs[] = {y};
  SvodRun run{};
  run.model = &model;
  run.entry = entry;
  run.threads = 1;
  run.arena = arena;
  run.arena_bytes = sizeof(arena);
  run.inputs = inputs;
  run.outputs = outputs;
  REQUIRE(svod_replay(&run) == SVOD_OK);
  CHECK(y[5] == 506);
  CHECK(y[0] == 1);
}

TEST_CASE("equal contents give equal images, other contents other ones", "[image]") {
  CHECK(build_image(contents()) == build_image(contents()));
  ImageContents other = contents();
  other.entries[0].steps[0].chunks = 1;
  CHECK(build_image(other) != build_image(contents()));
}

TEST_CASE("JSON escapes what a name may hold", "[json]") {
  auto quoted = [](std::string_view text) {
    JsonWriter json;
    json.value(text);
    return json.text();
  };
  CHECK(quoted("a\"b\\c") == R"("a\"b\\c")");
  CHECK(quoted(std::string_view("\n\0\x7f", 3)) == R"("\u000a\u0000\u007f")");
  CHECK(quoted("\xc3\xa9") == R"("\u00e9")");
  CHECK(quoted("\xf0\x9f\x98\x80") == R"("\ud83d\ude00")");
  // Not UTF-8: a lone continuation, an overlong form, a surrogate, a cut sequence.
  CHECK(quoted("\x80") == R"("\ufffd")");
  CHECK(quoted("\xc0\xaf") == R"("\ufffd\ufffd")");
  CHECK(quoted("\xed\xa0\x80") == R"("\ufffd\ufffd\ufffd")");
  CHECK(quoted("\xe2\x82") == R"("\ufffd\ufffd")");
  JsonWriter json;
  json.begin_object().pair("a", 1).key("b").begin_list();
  json.value(uint64_t{2}).boolean(true).end_list().end_object();
  CHECK(json.text() == R"({"a": 1, "b": [2, true]})");
}

TEST_CASE("a header's names cannot leave their literal", "[header]") {
  ImageContents c = contents();
  c.entries[0].inputs[0].name = "x\"\n*/ ?"
                                "?/ \\ \xff";
  HeaderFacts facts{"net", &c, {64, 64, 64}, 1024};
  std::string text = header_text(facts);
  CHECK(
      text.find(
          R"(#define NET_INPUT_0_NAME "x\042\012\052/\040\077\077/\040\134\040\377")") !=
      std::string::npos);
  CHECK(text.find("#define NET_INPUT_0_DIMS {2, 3}") != std::string::npos);
  CHECK(text.find("#define NET_INPUT_0_COUNT 6\n") != std::string::npos);
  CHECK(text.find("int net_run(void* arena, const void* const inputs[], void* const "
                  "outputs[]);") != std::string::npos);
  for (char ch : text) REQUIRE((ch == '\n' || (ch >= 0x20 && ch < 0x7f)));
}

TEST_CASE("a packed weight is an affine view with bounds", "[weights]") {
  Tensor source{DType::F32, {2, 3}, std::vector<std::byte>(24)};
  const float values[6] = {0, 1, 2, 3, 4, 5};
  std::memcpy(source.bytes.data(), values, 24);
  PackedWeight weight;
  weight.extents = {2, 2, 2}; // columns in blocks of two, the last block padded with nine
  weight.strides = {2, 3, 1};
  weight.limits = {{0, 0, 3, {2, 0, 1}}};
  float nine = 9;
  std::memcpy(&weight.fill_bits, &nine, 4);
  std::vector<std::byte> bytes = pack_weight(weight, source);
  std::vector<float> packed(8);
  REQUIRE(bytes.size() == 32);
  std::memcpy(packed.data(), bytes.data(), 32);
  CHECK(packed == std::vector<float>{0, 1, 3, 4, 2, 9, 5, 9});
  PackedWeight plain;
  plain.extents = {2, 3};
  plain.strides = {3, 1};
  CHECK(pack_weight(plain, source) == source.bytes);
}
