// The stub over a hand-made image: the right sums, and a refusal (never a read outside
// the image, never a crash) for every truncation and every flipped bit.
#include "runtime_stub/checksum.h"
#include "runtime_stub/cpu.h"
#include "runtime_stub/pool.h"
#include "runtime_stub/replay.h"

#include <catch2/catch.hpp>

#include <atomic>
#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace {

// y = (x + w) + (x + w), x and w f32[4]; the first step in four chunks, then a copy, then
// the sum over x + w and its copy. "x", "y" and "k0" are the names.
struct Image {
  SvodHeader header{};
  SvodEntry entry{};
  SvodTensor tensors[2]{};
  int64_t dims[2] = {4, 4};
  SvodSlot slots[5]{};
  SvodStep steps[3]{};
  uint32_t args[8] = {0, 1, 3, 3, 4, 3, 4, 2};
  SvodProgram programs[1]{};
  char text[8] = {'x', 'y', 'k', '0', '{', '}', 0, 0};
};

uint32_t at(const Image& image, const void* field) {
  return static_cast<uint32_t>(static_cast<const char*>(field) -
                               reinterpret_cast<const char*>(&image));
}

void seal(Image& image) {
  image.header.image_checksum = 0;
  image.header.image_checksum = svod_checksum(&image, sizeof(image));
}

std::unique_ptr<Image> make_image() {
  auto owner = std::make_unique<Image>();
  Image& i = *owner;
  std::memcpy(i.header.magic, "SVODIMG", 8);
  i.header.version = SVOD_FORMAT_VERSION;
  i.header.image_bytes = sizeof(Image);
  i.header.weight_bytes = 16;
  i.header.entries = {at(i, &i.entry), 1};
  i.header.tensors = {at(i, i.tensors), 2};
  i.header.dims = {at(i, i.dims), 2};
  i.header.slots = {at(i, i.slots), 5};
  i.header.steps = {at(i, i.steps), 3};
  i.header.args = {at(i, i.args), 8};
  i.header.programs = {at(i, i.programs), 1};
  i.header.text = {at(i, i.text), 8};
  i.header.manifest = {at(i, i.text) + 4, 2};
  i.header.max_buffers = 3;
  i.entry = {{}, 0, 1, 1, 1, 0, 5, 0, 3, 0, 0, 0, 0, 0, 0, 32, 64, 32};
  i.tensors[0] = {{at(i, i.text), 1}, 1, 1, 0, 4, 4, 16, {}, 0, 0, 0, 0};
  i.tensors[1] = {{at(i, i.text) + 1, 1}, 1, 1, 1, 4, 4, 16, {}, 0, 0, 0, 0};
  i.slots[0] = {SVOD_SLOT_INPUT, 0, 0, 16};
  i.slots[1] = {SVOD_SLOT_WEIGHT, 0, 0, 16};
  i.slots[2] = {SVOD_SLOT_OUTPUT, 0, 0, 16};
  i.slots[3] = {SVOD_SLOT_TEMPORARY, 0, 0, 16};
  i.slots[4] = {SVOD_SLOT_TEMPORARY, 0, 16, 16};
  i.steps[0] = {SVOD_STEP_LAUNCH, 0, 0, 3, 4, 0, 4, 48, {}};
  i.steps[1] = {SVOD_STEP_COPY, 0, 3, 2, 1, 0, 0, 32, {}};
  i.steps[2] = {SVOD_STEP_LAUNCH, 0, 5, 3, 4, 0, 4, 48, {}};
  i.programs[0] = {{at(i, i.text) + 2, 2}};
  static const float kWeights[4] = {1, 2, 3, 4};
  i.header.weight_checksum = svod_checksum(kWeights, sizeof(kWeights));
  seal(i);
  return owner;
}

alignas(64) const float kWeights[16] = {1, 2, 3, 4};

int32_t add(uint32_t level, uint32_t program, void* const* buffers, void* scratch,
            uint32_t chunk) {
  if (level != 0 || program != 0 || scratch == nullptr) return SVOD_INDEX;
  auto a = static_cast<const float*>(buffers[0]);
  auto b = static_cast<const float*>(buffers[1]);
  static_cast<float*>(buffers[2])[chunk] = a[chunk] + b[chunk];
  return a[chunk] < -100 ? SVOD_INDEX : 0;
}

const SvodLevel kLevels[] = {{"any", 0}, {"none", 1u << 31}};

SvodModel model_of(const void* image, uint64_t bytes) {
  return {image, bytes, kWeights, sizeof(float[4]), add, kLevels, 2};
}

struct Runner {
  SvodModel model;
  SvodRun run{};
  std::vector<std::byte> memory;
  alignas(16) float x[4] = {10, 20, 30, 40};
  alignas(16) float y[4] = {};
  const void* inputs[1] = {x};
  void* outputs[1] = {y};

  explicit Runner(const SvodModel& of, uint32_t threads = 1) : model(of) {
    run.model = &model;
    run.entry = svod_entry(model.image, 0);
    run.threads = threads;
    run.arena_bytes = svod_arena_bytes(model.image, run.entry, threads);
    memory.resize(run.arena_bytes + 128);
    uintptr_t address = reinterpret_cast<uintptr_t>(memory.data());
    run.arena = memory.data() + (64 - address % 64) % 64;
    run.inputs = inputs;
    run.outputs = outputs;
  }
};

} // namespace

TEST_CASE("checksum is XXH64 as published", "[stub]") {
  CHECK(svod_checksum("", 0) == 0xef46db3751d8e999u);
  CHECK(svod_checksum("abc", 3) == 0x44bc2cf5ad770999u);
  std::string text = "Nobody inspects the spammish repetition";
  CHECK(svod_checksum(text.data(), text.size()) == 0xfbcea83c8a378bf1u);
  SvodChecksum pieces;
  for (char c : text) pieces.add(&c, 1);
  CHECK(pieces.finish() == 0xfbcea83c8a378bf1u);
}

TEST_CASE("an image runs", "[stub]") {
  auto image = make_image();
  SvodModel model = model_of(image.get(), sizeof(Image));
  REQUIRE(svod_check_image(&model) == SVOD_OK);
  REQUIRE(svod_check_bytes(&model) == SVOD_OK);
  CHECK(svod_choose_level(&model) == 0);
  Runner runner(model);
  std::vector<uint32_t> steps;
  runner.run.listener = &steps;
  runner.run.step_done = [](void* listener, uint32_t step) {
    static_cast<std::vector<uint32_t>*>(listener)->push_back(step);
  };
  REQUIRE(svod_replay(&runner.run) == SVOD_OK);
  CHECK(std::vector<float>(runner.y, runner.y + 4) == std::vector<float>{22, 44, 66, 88});
  CHECK(steps == std::vector<uint32_t>{0, 1, 2});
}

// y = (x + w) + w in a chain of two: x + w is one number, in the scratch memory.
static std::unique_ptr<Image> make_chain() {
  auto owner = make_image();
  Image& i = *owner;
  i.entry.step_count = 2;
  i.slots[3] = {SVOD_SLOT_PART, 0, 16, 4};
  i.steps[0].followers = 1;
  i.steps[1] = {SVOD_STEP_LAUNCH, 0, 3, 3, 4, 0, 4, 48, {}};
  const uint32_t args[] = {0, 1, 3, 3, 1, 2};
  std::copy(std::begin(args), std::end(args), i.args);
  seal(i);
  return owner;
}

TEST_CASE("a chain runs chunk by chunk", "[stub]") {
  auto image = make_chain();
  SvodModel model = model_of(image.get(), sizeof(Image));
  REQUIRE(svod_check_image(&model) == SVOD_OK);
  Runner runner(model);
  std::vector<uint32_t> steps;
  runner.run.listener = &steps;
  runner.run.step_done = [](void* listener, uint32_t step) {
    static_cast<std::vector<uint32_t>*>(listener)->push_back(step);
  };
  REQUIRE(svod_replay(&runner.run) == SVOD_OK);
  CHECK(std::vector<float>(runner.y, runner.y + 4) == std::vector<float>{12, 24, 36, 48});
  CHECK(steps == std::vector<uint32_t>{0, 1, 0, 1, 0, 1, 0, 1});
  runner.x[2] = -1000;
  CHECK(svod_replay(&runner.run) == SVOD_INDEX);
  CHECK(runner.run.failed_step == 0);
}

namespace {

// A pool in memory of its own, aligned as the stub has it.
class Pool {
public:
  explicit Pool(uint32_t threads) : memory_(svod_pool_bytes(threads) + 64) {
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    pool_ = svod_pool_make(memory_.data() + (64 - address % 64) % 64, threads);
  }
  ~Pool() { svod_pool_end(pool_); }
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;
  SvodPool* get() const { return pool_; }

private:
  std::vector<std::byte> memory_;
  SvodPool* pool_;
};

} // namespace

TEST_CASE("a chain on the pool gives the same bits", "[stub]") {
  auto image = make_chain();
  SvodModel model = model_of(image.get(), sizeof(Image));
  for (uint32_t threads : {2u, 5u}) {
    Pool pool(threads);
    Runner runner(model, threads);
    runner.run.parallel = svod_pool_run;
    runner.run.pool = pool.get();
    for (int i = 0; i < 200; i++) {
      std::memset(runner.y, 0, sizeof(runner.y));
      REQUIRE(svod_replay(&runner.run) == SVOD_OK);
      REQUIRE((runner.y[0] == 12 && runner.y[1] == 24 && runner.y[2] == 36 &&
               runner.y[3] == 48));
    }
  }
}

TEST_CASE("a run on the pool gives the same bits", "[stub]") {
  auto image = make_image();
  SvodModel model = model_of(image.get(), sizeof(Image));
  for (uint32_t threads : {2u, 3u, 8u}) {
    Pool pool(threads);
    Runner runner(model, threads);
    runner.run.parallel = svod_pool_run;
    runner.run.pool = pool.get();
    for (int i = 0; i < 200; i++) {
      std::memset(runner.y, 0, sizeof(runner.y));
      REQUIRE(svod_replay(&runner.run) == SVOD_OK);
      REQUIRE(runner.y[3] == 88);
    }
  }
}

TEST_CASE("the pool runs each chunk once, on any number of threads", "[stub]") {
  constexpr uint32_t kMost = 70;
  for (uint32_t threads : {1u, 2u, 5u, 16u}) {
    Pool pool(threads);
    std::atomic<uint32_t> hits[kMost] = {};
    auto task = [](void* context, uint32_t chunk, uint32_t) {
      static_cast<std::atomic<uint32_t>*>(context)[chunk]++;
    };
    for (uint32_t i = 0; i < 2000; i++)
      svod_pool_run(pool.get(), i % (kMost + 1), task, hits);
    uint32_t wrong = 0;
    for (uint32_t c = 0; c < kMost; c++) {
      uint32_t expected = 0;
      for (uint32_t i = 0; i < 2000; i++) expected += i % (kMost + 1) > c;
      wrong += hits[c] != expected;
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("every thread begins with its own share of the chunks", "[stub]") {
  constexpr uint32_t kThreads = 3, kChunks = 10;
  struct Seen {
    std::atomic<uint32_t> began{0};
    std::atomic<int64_t> first[kThreads] = {-1, -1, -1};
  } seen;
  // Nobody goes on before every thread has a chunk.
  auto task = [](void* context, uint32_t chunk, uint32_t thread) {
    Seen& all = *static_cast<Seen*>(context);
    int64_t none = -1;
    if (!all.first[thread].compare_exchange_strong(none, chunk)) return;
    all.began++;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (all.began != kThreads && std::chrono::steady_clock::now() < end) {
      std::this_thread::yield();
    }
  };
  Pool pool(kThreads);
  svod_pool_run(pool.get(), kChunks, task, &seen);
  CHECK(seen.first[0] == 0);
  CHECK(seen.first[1] == 4);
  CHECK(seen.first[2] == 7);
}

TEST_CASE("what a run lacks has its status, and nothing is written", "[stub]") {
  auto image = make_image();
  Runner runner(model_of(image.get(), sizeof(Image)));
  SvodRun good = runner.run;
  auto status_of = [&](SvodRun run) { return svod_replay(&run); };
  SvodRun run = good;
  run.arena = nullptr;
  CHECK(status_of(run) == SVOD_BAD_ARGUMENT);
  run = good;
  run.arena = static_cast<char*>(good.arena) + 8;
  CHECK(status_of(run) == SVOD_MISALIGNED);
  run = good;
  run.arena_bytes--;
  CHECK(status_of(run) == SVOD_ARENA_SMALL);
  run = good;
  run.inputs = nullptr;
  CHECK(status_of(run) == SVOD_BAD_ARGUMENT);
  const void* none[1] = {nullptr};
  run.inputs = none;
  CHECK(status_of(run) == SVOD_BAD_ARGUMENT);
  run = good;
  void* odd[1] = {reinterpret_cast<char*>(runner.y) + 1};
  run.outputs = odd;
  CHECK(status_of(run) == SVOD_MISALIGNED);
  run = good;
  run.level = 2;
  CHECK(status_of(run) == SVOD_BAD_ARGUMENT);
  CHECK(runner.y[0] == 0);
  runner.x[2] = -1000;
  CHECK(svod_replay(&runner.run) == SVOD_INDEX);
  CHECK(runner.run.failed_step == 0);
}

TEST_CASE("entries are found by dtype and shape", "[stub]") {
  auto image = make_image();
  int64_t four = 4, five = 5;
  SvodShape good{1, 1, &four}, other_dim{1, 1, &five}, other_type{7, 1, &four};
  CHECK(svod_find_entry(image.get(), &good, 1) == &image->entry);
  CHECK(svod_find_entry(image.get(), &other_dim, 1) == nullptr);
  CHECK(svod_find_entry(image.get(), &other_type, 1) == nullptr);
  CHECK(svod_find_entry(image.get(), nullptr, 0) == nullptr);
}

TEST_CASE("truncated images and other versions are refused", "[stub]") {
  auto image = make_image();
  for (uint64_t bytes = 0; bytes < sizeof(Image); bytes++) {
    // A copy that ends where the image does: sanitizers see a read past it.
    auto words = std::make_unique<uint64_t[]>((bytes + 7) / 8 + 1);
    std::memcpy(words.get(), image.get(), bytes);
    SvodModel model = model_of(words.get(), bytes);
    CHECK(svod_check_image(&model) == SVOD_CORRUPT);
  }
  image->header.version++;
  SvodModel model = model_of(image.get(), sizeof(Image));
  CHECK(svod_check_image(&model) == SVOD_ABI);
  model.image = nullptr;
  CHECK(svod_check_image(&model) == SVOD_CORRUPT);
}

TEST_CASE("every flipped bit is refused", "[stub]") {
  auto image = make_image();
  size_t accepted = 0;
  for (size_t bit = 0; bit < sizeof(Image) * 8; bit++) {
    auto flipped = std::make_unique<Image>(*image);
    reinterpret_cast<uint8_t*>(flipped.get())[bit / 8] ^= 1u << bit % 8;
    SvodModel model = model_of(flipped.get(), sizeof(Image));
    accepted += svod_check_image(&model) == SVOD_OK;
  }
  CHECK(accepted == 0);
}

TEST_CASE("flipped bits under a right checksum are read within the image", "[stub]") {
  auto image = make_image();
  size_t sound = 0;
  for (size_t bit = 0; bit < sizeof(Image) * 8; bit++) {
    auto flipped = std::make_unique<Image>(*image);
    reinterpret_cast<uint8_t*>(flipped.get())[bit / 8] ^= 1u << bit % 8;
    seal(*flipped);
    SvodModel model = model_of(flipped.get(), sizeof(Image));
    if (svod_check_image(&model) != SVOD_OK) continue;
    // Every table entry is reachable, with sanitizers watching.
    const SvodHeader& header = flipped->header;
    for (uint32_t e = 0; e < header.entries.count; e++) {
      const SvodEntry* entry = svod_entry(flipped.get(), e);
      SvodShape shape{1, 1, flipped->dims};
      (void)svod_find_entry(flipped.get(), &shape, 1);
      for (uint32_t s = 0; s < entry->step_count; s++) {
        sound += svod_step(flipped.get(), entry, s)->kind;
      }
    }
  }
  CHECK(sound > 100);
}

// Whether the check finds what `damage` does to a good image.
template <class Made, class Damage> static bool is_refused(Made image, Damage&& damage) {
  damage(*image);
  seal(*image);
  SvodModel model = model_of(image.get(), sizeof(Image));
  return svod_check_image(&model) == SVOD_CORRUPT;
}

TEST_CASE("numbers that do not fit are refused", "[stub]") {
  auto refuses = [](auto&& damage) { return is_refused(make_image(), damage); };
  CHECK_FALSE(refuses([](Image&) {}));
  CHECK(refuses([](Image& i) { i.header.steps.count = ~0u; }));
  CHECK(refuses([](Image& i) { i.header.steps.offset = ~0u & ~7u; }));
  CHECK(refuses([](Image& i) { i.header.dims.offset += 4; }));
  CHECK(refuses([](Image& i) { i.header.image_bytes++; }));
  CHECK(refuses([](Image& i) { i.header.weight_bytes = 17; }));
  CHECK(refuses([](Image& i) { i.header.max_buffers = 2; }));
  CHECK(refuses([](Image& i) { i.entry.slot_count = 6; }));
  CHECK(refuses([](Image& i) { i.entry.first_step = ~0u; }));
  CHECK(refuses([](Image& i) { i.entry.arena_bytes = 31; }));
  CHECK(refuses([](Image& i) { i.entry.scratch_bytes = 1; }));
  CHECK(refuses([](Image& i) { i.slots[0].offset = ~uint64_t{0}; }));
  CHECK(refuses([](Image& i) { i.slots[1].bytes = 17; }));
  CHECK(refuses([](Image& i) { i.slots[2].io = 1; }));
  CHECK(refuses([](Image& i) { i.slots[3].slot_class = SVOD_SLOT_STATE; }));
  CHECK(refuses([](Image& i) { i.steps[0].program = 1; }));
  CHECK(refuses([](Image& i) { i.steps[1].arg_count = 1; }));
  CHECK(refuses([](Image& i) { i.steps[1].kind = 3; }));
  CHECK(refuses([](Image& i) { i.args[4] = 1; })); // a copy into weights
  CHECK(refuses([](Image& i) { i.args[0] = 5; }));
  CHECK(refuses([](Image& i) { i.dims[0] = -1; }));
  CHECK(refuses([](Image& i) { i.dims[0] = INT64_MAX; }));
  CHECK(refuses([](Image& i) { i.tensors[0].rank = 17; }));
  CHECK(refuses([](Image& i) { i.tensors[0].elements = 5; }));
  CHECK(refuses([](Image& i) { i.tensors[1].alignment = 3; }));
}

TEST_CASE("chains that do not fit are refused", "[stub]") {
  auto refuses = [](auto&& damage) { return is_refused(make_chain(), damage); };
  CHECK_FALSE(refuses([](Image&) {}));
  CHECK(refuses([](Image& i) { i.steps[0].followers = 2; }));
  CHECK(refuses([](Image& i) { i.steps[0].followers = 0; })); // parts without a chain
  CHECK(refuses([](Image& i) { i.steps[0].followers = ~0u; }));
  CHECK(refuses([](Image& i) { i.steps[1].followers = 1; }));
  CHECK(refuses([](Image& i) { i.steps[1].chunks = 3; }));
  CHECK(refuses([](Image& i) { i.steps[1].kind = SVOD_STEP_COPY; }));
  CHECK(refuses([](Image& i) { i.slots[3].offset = 61; }));
}
