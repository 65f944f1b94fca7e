// States that grow: whose rows are counted, where the next run finds room for them.
#include "runtime_stub/checksum.h"
#include "runtime_stub/cpu.h"
#include "runtime_stub/states.h"

#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace {

// Two entries over a state of two parts of four rows and its counter. A run of the first
// begins with at most one row, of the second with three.
struct Image {
  SvodHeader header{};
  SvodEntry entries[2]{};
  SvodTensor tensors[4]{};
  int64_t dims[4] = {2, 4, 1, 1};
  SvodState states[4]{};
};

template <class T> uint32_t at(const Image& image, const T& part) {
  return static_cast<uint32_t>(reinterpret_cast<const char*>(&part) -
                               reinterpret_cast<const char*>(&image));
}

constexpr uint32_t kFloat = 1, kInt64 = 7;

std::unique_ptr<Image> make_image() {
  auto owner = std::make_unique<Image>();
  Image& i = *owner;
  std::memcpy(i.header.magic, "SVODIMG", 8);
  i.header.version = SVOD_FORMAT_VERSION;
  i.header.image_bytes = sizeof(Image);
  i.header.entries = {at(i, i.entries), 2};
  i.header.tensors = {at(i, i.tensors), 4};
  i.header.dims = {at(i, i.dims), 4};
  i.header.states = {at(i, i.states), 4};
  for (uint32_t side = 0; side < 2; ++side) {
    i.tensors[2 * side] = {{}, kFloat, 2, 0, 4, 8, 32, {}, 1, SVOD_ROLE_STATE, 0, 0};
    i.tensors[2 * side + 1] = {{}, kInt64, 1, 2, 8, 1, 8, {}, 2, SVOD_ROLE_STATE, 0, 0};
  }
  for (uint32_t e = 0; e < 2; ++e) {
    SvodEntry& entry = i.entries[e];
    entry.first_input = 0, entry.input_count = 2;
    entry.first_output = 2, entry.output_count = 2;
    entry.first_state = 2 * e, entry.state_count = 2;
    i.states[2 * e] = {0, 0, SVOD_STATE_PLACE, 1, 32, 0, 0, 2, 16, 16, 2, 1, 0};
    i.states[2 * e + 1] = {1, 1, SVOD_STATE_TURNS, 1, 8, 64, 0, 1, 8, 8, 0, 0, 1 + 2 * e};
  }
  return owner;
}

bool is_sound(Image& image) {
  image.header.image_checksum = 0;
  image.header.image_checksum = svod_checksum(&image, sizeof(image));
  SvodModel model = {};
  model.image = &image;
  model.image_bytes = sizeof(image);
  return svod_check_image(&model) == SVOD_OK;
}

struct Runs {
  explicit Runs(const Image& image)
      : image(image),
        memory(svod_states_bytes(&image, image.entries) / sizeof(uint64_t)) {}
  uint32_t entry() const { return svod_state_entry(&image, memory.data()); }
  bool is_full() const {
    const SvodEntry& last = image.entries[1];
    return svod_full_state(&image, &last, memory.data()) != last.state_count;
  }
  // What a run does that adds rows.
  void add(uint64_t rows) {
    const SvodEntry& now = image.entries[entry()];
    svod_bind_states(&image, &now, memory.data(), inputs, outputs);
    CHECK(inputs[0] == outputs[0]);
    *static_cast<uint64_t*>(outputs[1]) = *static_cast<const uint64_t*>(inputs[1]) + rows;
    svod_keep_states(&image, &now, memory.data());
  }
  uint64_t rows() const {
    return svod_counted_rows(&image, image.entries, memory.data(), 1);
  }

  const Image& image;
  std::vector<uint64_t> memory;
  const void* inputs[2] = {};
  void* outputs[2] = {};
};

} // namespace

TEST_CASE("runs go on to the entry that has room for the rows", "[states]") {
  const auto image = make_image();
  REQUIRE(is_sound(*image));
  Runs runs(*image);
  CHECK(runs.entry() == 0);
  runs.add(1);
  CHECK(runs.entry() == 0);
  runs.add(1);
  CHECK(runs.entry() == 1);
  CHECK(runs.rows() == 2);
  runs.add(1);
  CHECK_FALSE(runs.is_full());
  runs.add(1);
  CHECK(runs.rows() == 4);
  CHECK(runs.is_full());
}

TEST_CASE("a first state has as many rows as are given", "[states]") {
  const auto image = make_image();
  Runs runs(*image);
  const float given[6] = {1, 2, 3, 11, 12, 13};
  svod_set_state(image.get(), image->entries, runs.memory.data(), 0, given, 3);
  CHECK(runs.rows() == 3);
  CHECK(runs.entry() == 1);
  runs.add(0);
  const auto* rows = static_cast<const float*>(runs.inputs[0]);
  CHECK(rows[2] == 3);
  CHECK(rows[3] == 0);
  CHECK(rows[4] == 11);
}

TEST_CASE("an image whose states grow by nothing sound is refused", "[states]") {
  const std::vector<std::function<void(Image&)>> wrongs = {
      [](Image& i) { i.states[0].counter = 3; }, // no such state
      [](Image& i) { i.states[0].counter = 1; }, // counts itself
      [](Image& i) { i.states[0].axis = 2; },    // no such axis
      [](Image& i) { i.states[1].most = 5; },    // begins with more than there is
      [](Image& i) { i.states[1].counter = 1; }, // counts each other
      [](Image& i) { i.states[1].kind = SVOD_STATE_PLACE; },
      [](Image& i) { i.states[2].offset = 128; }, // elsewhere in the other entry
      [](Image& i) { i.entries[1].state_count = 1; },
      [](Image& i) { i.tensors[0].counter = 1; }, // follows what counts nothing
  };
  for (const auto& wrong : wrongs) {
    const auto image = make_image();
    wrong(*image);
    INFO("wrong number " << &wrong - wrongs.data());
    CHECK_FALSE(is_sound(*image));
  }
}
