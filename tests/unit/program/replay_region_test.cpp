// Loops and conditions in the stub, over an image made by hand: the right values, the
// limit, and no image that a check lets pass makes a run leave its memory.
#include "packager/artefact/image.h"
#include "runtime_stub/checksum.h"
#include "runtime_stub/replay.h"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstring>
#include <span>

using namespace svod;
using namespace svod::packager;

namespace {

enum Slots : uint32_t {
  kX,
  kCount,
  kTable,
  kY,
  kKept,
  kDone,
  kTrue,
  kPair,
  kStart,
  kIn,
  kOut,
  kItem,
  kSame,
  kAgain,
  kIteration,
  kMark,
  kMarks,
};

ImageStep launch(uint32_t program, std::vector<uint32_t> args) {
  ImageStep step;
  step.program = program;
  step.args = std::move(args);
  return step;
}

ImageStep copy(uint32_t from, uint32_t to) {
  ImageStep step = launch(0, {from, to});
  step.kind = SVOD_STEP_COPY;
  return step;
}

// state = x; for i < count, while state < 100: state += table[i], kept[i] = state,
// marks[i] = state < 100 ? i : count. Four iterations at most.
ImageContents contents() {
  ImageEntry entry;
  entry.inputs = {{"x", 7, {}, 8, 8}, {"count", 7, {}, 8, 8}, {"table", 7, {4}, 8, 32}};
  entry.outputs = {{"y", 7, {}, 8, 8},
                   {"kept", 7, {4}, 8, 32},
                   {"done", 7, {}, 8, 8},
                   {"marks", 7, {4}, 8, 32}};
  entry.slices = {{kPair, 0, ~0u, 0, 0},  {kPair, 0, 1, 0, 64},  {kPair, 0, 1, 0, -64},
                  {kTable, 0, ~0u, 0, 8}, {kKept, 0, ~0u, 0, 8}, {16, 0, ~0u, 0, 8}};
  entry.slots = {{SVOD_SLOT_INPUT, 0, 0, 8},       {SVOD_SLOT_INPUT, 1, 0, 8},
                 {SVOD_SLOT_INPUT, 2, 0, 32},      {SVOD_SLOT_OUTPUT, 0, 0, 8},
                 {SVOD_SLOT_OUTPUT, 1, 0, 32},     {SVOD_SLOT_OUTPUT, 2, 0, 8},
                 {SVOD_SLOT_WEIGHT, 0, 0, 1},      {SVOD_SLOT_TEMPORARY, 0, 0, 128},
                 {SVOD_SLOT_SLICE, 0, 0, 8},       {SVOD_SLOT_SLICE, 1, 0, 8},
                 {SVOD_SLOT_SLICE, 2, 64, 8},      {SVOD_SLOT_SLICE, 3, 0, 8},
                 {SVOD_SLOT_SLICE, 4, 0, 8},       {SVOD_SLOT_TEMPORARY, 0, 128, 1},
                 {SVOD_SLOT_TEMPORARY, 0, 192, 8}, {SVOD_SLOT_TEMPORARY, 0, 256, 8},
                 {SVOD_SLOT_OUTPUT, 3, 0, 32},     {SVOD_SLOT_SLICE, 5, 0, 8}};
  ImageStep loop = launch(0, {}), branch = launch(0, {});
  loop.kind = SVOD_STEP_LOOP;
  loop.region = {7, 0, kCount, kTrue, kAgain, kIteration, kDone, 4};
  branch.kind = SVOD_STEP_IF;
  branch.region = {1, 1, SVOD_NO_SLOT, kAgain, SVOD_NO_SLOT, SVOD_NO_SLOT, SVOD_NO_SLOT,
                   0};
  entry.steps = {copy(kX, kStart),
                 loop,
                 launch(0, {kIn, kItem, kOut}),
                 copy(kOut, kSame),
                 launch(1, {kOut, kAgain}),
                 branch,
                 copy(kIteration, kMark),
                 copy(kCount, kMark),
                 copy(kMark, 17),
                 copy(kIn, kY)};
  entry.arena_bytes = 320;
  ImageContents out;
  out.entries = {entry};
  out.programs = {"k0", "k1"};
  out.manifest = "{}";
  out.weight_bytes = 64;
  return out;
}

int32_t kernel(uint32_t, uint32_t program, void* const* buffers, void*, uint32_t) {
  int64_t a = 0, b = 0;
  std::memcpy(&a, buffers[0], 8);
  if (program == 0) {
    std::memcpy(&b, buffers[1], 8);
    a += b;
    std::memcpy(buffers[2], &a, 8);
  } else {
    *static_cast<uint8_t*>(buffers[1]) = a < 100;
  }
  return 0;
}

struct Runner {
  int64_t x = 0, count = 0, table[4] = {10, 20, 30, 40};
  int64_t y = 0, kept[4] = {}, done = -1, marks[4] = {};
  alignas(64) uint8_t weights[64] = {1};
  alignas(64) std::byte arena[1024] = {};
  uint32_t failed_step = ~0u;
  std::vector<uint32_t> told;

  int32_t run(const std::vector<std::byte>& image, bool check_only = false) {
    static constexpr SvodLevel kLevel{"any", 0};
    SvodModel model{image.data(), image.size(), weights, sizeof weights,
                    kernel,       &kLevel,      1};
    int32_t status = svod_check_image(&model);
    if (status != SVOD_OK || check_only) return status;
    const void* inputs[] = {&x, &count, table};
    void* outputs[] = {&y, kept, &done, marks};
    SvodRun run{};
    run.model = &model;
    run.entry = svod_entry(image.data(), 0);
    run.threads = 1;
    run.arena = arena;
    run.arena_bytes = sizeof arena;
    run.inputs = inputs;
    run.outputs = outputs;
    run.listener = &told;
    run.step_done = [](void* listener, uint32_t step) {
      static_cast<std::vector<uint32_t>*>(listener)->push_back(step);
    };
    status = svod_replay(&run);
    failed_step = run.failed_step;
    return status;
  }
};

void seal(std::vector<std::byte>& image) {
  auto* header = reinterpret_cast<SvodHeader*>(image.data());
  header->image_checksum = 0;
  header->image_checksum = svod_checksum(image.data(), image.size());
}

// What a kernel reads and writes through its arguments is its own to know, so a check of
// the image cannot see that these are too few or too small.
bool kernels_fit(const std::vector<std::byte>& image) {
  static constexpr uint64_t kBytes[2][3] = {{8, 8, 8}, {8, 1, 0}};
  const SvodHeader* header = svod_header(image.data());
  const SvodEntry* entry = svod_entry(image.data(), 0);
  for (uint32_t i = 0; i < entry->step_count; i++) {
    const SvodStep& step = *svod_step(image.data(), entry, i);
    if (step.kind != SVOD_STEP_LAUNCH) continue;
    const uint32_t wanted = step.program == 0 ? 3 : 2;
    if (step.arg_count < wanted) return false;
    for (uint32_t j = 0; j < wanted; j++) {
      const uint32_t number =
          *svod_at<uint32_t>(header, header->args, step.first_arg + j);
      const auto* slot =
          svod_at<SvodSlot>(header, header->slots, entry->first_slot + number);
      if (slot->bytes < kBytes[step.program == 0 ? 0 : 1][j]) return false;
    }
  }
  return true;
}

template <class T> std::span<T> entries(std::vector<std::byte>& image, SvodTable table) {
  return {reinterpret_cast<T*>(image.data() + table.offset), table.count};
}

// A flipped bit may ask for so many iterations or chunks that the test would take hours.
void limit_work(std::vector<std::byte>& image) {
  const SvodHeader& header = *svod_header(image.data());
  for (auto& region : entries<SvodRegion>(image, header.regions))
    region.limit = std::min(region.limit, 1000u);
  for (auto& step : entries<SvodStep>(image, header.steps))
    step.chunks = std::min(step.chunks, 1000u);
  seal(image);
}

} // namespace

TEST_CASE("a loop and an if run as the image says", "[stub][region]") {
  const std::vector<std::byte> image = build_image(contents());
  Runner r;
  r.x = 1, r.count = 3;
  REQUIRE(r.run(image) == SVOD_OK);
  CHECK(r.y == 61);
  CHECK(r.done == 3);
  CHECK(std::vector<int64_t>(r.kept, r.kept + 4) == std::vector<int64_t>{11, 31, 61, 0});
  CHECK(std::vector<int64_t>(r.marks, r.marks + 4) == std::vector<int64_t>{0, 1, 2, 0});
  CHECK(std::count(r.told.begin(), r.told.end(), 2u) == 3);
  CHECK(std::count(r.told.begin(), r.told.end(), 1u) == 1);
  CHECK(std::count(r.told.begin(), r.told.end(), 7u) == 0);

  Runner ends; // by its condition, in the second iteration
  ends.x = 75, ends.count = 1000;
  REQUIRE(ends.run(image) == SVOD_OK);
  CHECK(ends.y == 105);
  CHECK(ends.done == 2);
  CHECK(ends.marks[1] == 1000);

  Runner never;
  never.x = 5, never.count = -1;
  REQUIRE(never.run(image) == SVOD_OK);
  CHECK(never.y == 5);
  CHECK(never.done == 0);
}

TEST_CASE("a loop stops at its limit", "[stub][region]") {
  const std::vector<std::byte> image = build_image(contents());
  Runner r;
  r.x = -1000, r.count = 5;
  CHECK(r.run(image) == SVOD_LIMIT);
  CHECK(r.failed_step == 1);
  Runner fits;
  fits.x = -1000, fits.count = 4;
  CHECK(fits.run(image) == SVOD_OK);
  CHECK(fits.y == -900);
}

TEST_CASE("ranges and slices that do not fit are refused", "[stub][region]") {
  auto refuses = [](auto&& damage) {
    ImageContents c = contents();
    damage(c.entries[0]);
    return Runner().run(build_image(c), true) == SVOD_CORRUPT;
  };
  CHECK_FALSE(refuses([](ImageEntry&) {}));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.steps = 9; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.steps = ~0u; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.else_steps = 1; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.steps = 2; })); // an item outside
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.limit = 5; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.count = kAgain; })); // too short
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.count = SVOD_NO_SLOT; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.iteration = kX; })); // an input
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.done = kTrue; }));   // a weight
  CHECK(refuses([](ImageEntry& e) { e.steps[1].region.again = 18; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[5].region.else_steps = 3; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[1].stride = 128; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[1].mask = 3; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[3].stride = -8; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[3].stride = INT64_MIN; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[3].depth = 1; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[3].parent = kItem; }));
  CHECK(refuses([](ImageEntry& e) { e.slices[1].depth = SVOD_MAX_NESTING; }));
  CHECK(refuses([](ImageEntry& e) { e.steps[9] = copy(kX, kItem); })); // not in the loop
  CHECK(refuses([](ImageEntry& e) { // nested too deeply
    ImageStep loop = e.steps[1];
    loop.region.steps = 0;
    for (uint32_t i = 0; i <= SVOD_MAX_NESTING; i++) {
      e.steps.push_back(loop);
      for (uint32_t j = 0; j < i; j++) e.steps[10 + j].region.steps++;
    }
  }));
}

TEST_CASE("flipped bits of regions stay within the memory of a run", "[stub][region]") {
  const std::vector<std::byte> image = build_image(contents());
  int refused = 0, ran = 0;
  for (size_t bit = 0; bit < image.size() * 8; bit++) {
    std::vector<std::byte> flipped = image;
    flipped[bit / 8] ^= std::byte(1u << bit % 8);
    seal(flipped);
    Runner r;
    r.count = 4;
    if (r.run(flipped, true) != SVOD_OK) {
      refused++;
      continue;
    }
    limit_work(flipped);
    const SvodEntry* entry = svod_entry(flipped.data(), 0);
    const bool same_io = entry->input_count <= 3 && entry->output_count <= 4 &&
                         entry->first_input == 0 && entry->first_output == 3;
    bool fits = svod_arena_bytes(flipped.data(), entry, 1) <= sizeof r.arena;
    if (same_io && fits && kernels_fit(flipped)) {
      (void)r.run(flipped);
      ran++;
    }
  }
  CHECK(refused > 1000);
  CHECK(ran > 1000);
}
