// States over a hand-made image: where runs find them, what is kept, and that no number
// of theirs leads outside.
#include "runtime_stub/checksum.h"
#include "runtime_stub/states.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <memory>
#include <numeric>
#include <vector>

namespace {

// A model without steps, whose input is state number 0 and whose output is, too: f32[2,3]
// in, f32[2,4] or f32[2,3] out.
struct Image {
  SvodHeader header{};
  SvodEntry entry{};
  SvodTensor tensors[2]{};
  int64_t dims[4] = {2, 3, 2, 4};
  SvodState states[1]{};
};

uint32_t at(const Image& image, const void* field) {
  return static_cast<uint32_t>(static_cast<const char*>(field) -
                               reinterpret_cast<const char*>(&image));
}

std::unique_ptr<Image> make_image(const SvodState& state, int64_t columns) {
  auto owner = std::make_unique<Image>();
  Image& i = *owner;
  std::memcpy(i.header.magic, "SVODIMG", 8);
  i.header.version = SVOD_FORMAT_VERSION;
  i.header.image_bytes = sizeof(Image);
  i.header.entries = {at(i, &i.entry), 1};
  i.header.tensors = {at(i, i.tensors), 2};
  i.header.dims = {at(i, i.dims), 4};
  i.header.states = {at(i, i.states), 1};
  i.entry.first_input = 0, i.entry.input_count = 1;
  i.entry.first_output = 1, i.entry.output_count = 1;
  i.entry.first_state = 0, i.entry.state_count = 1;
  i.dims[3] = columns;
  const auto out = static_cast<uint64_t>(2 * columns);
  i.tensors[0] = {{}, 1, 2, 0, 4, 6, 24, {}, 1, SVOD_ROLE_STATE, 0, 0};
  i.tensors[1] = {{}, 1, 2, 2, 4, out, 4 * out, {}, 1, SVOD_ROLE_STATE, 0, 0};
  i.states[0] = state;
  i.header.image_checksum = svod_checksum(&i, sizeof(i));
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
  explicit Runs(const Image& i)
      : image(i), memory(svod_states_bytes(&i, &i.entry) / sizeof(uint64_t)) {}
  void bind() { svod_bind_states(&image, &image.entry, memory.data(), &input, &output); }
  void keep() { svod_keep_states(&image, &image.entry, memory.data()); }
  const float* in() const { return static_cast<const float*>(input); }
  float* out() const { return static_cast<float*>(output); }
  uint64_t offset(const void* place) const {
    return static_cast<uint64_t>(static_cast<const char*>(place) -
                                 reinterpret_cast<const char*>(memory.data()));
  }

  const Image& image;
  std::vector<uint64_t> memory;
  const void* input = nullptr;
  void* output = nullptr;
};

// A window of three columns in two rows, with room for two runs before it is moved.
constexpr SvodState kWindow = {0, 0, SVOD_STATE_MOVES, 2, 40, 0, 4, 2, 12, 20, 0, 0, 0};

} // namespace

TEST_CASE("a window moves on and back to the front", "[states]") {
  const auto image = make_image(kWindow, 4);
  REQUIRE(is_sound(*image));
  Runs runs(*image);
  const float first[6] = {1, 2, 3, 11, 12, 13};
  svod_set_state(image.get(), &image->entry, runs.memory.data(), 0, first, 0);
  for (int run = 0; run < 7; ++run) {
    runs.bind();
    // Rows lie five columns apart: each run reads three of them and writes a fourth.
    for (int row = 0; row < 2; ++row)
      for (int column = 0; column < 3; ++column)
        CHECK(runs.in()[5 * row + column] == float(10 * row + column + 1 + run));
    runs.out()[3] = float(4 + run);
    runs.out()[5 + 3] = float(14 + run);
    runs.keep();
  }
}

TEST_CASE("two places take turns", "[states]") {
  const auto image =
      make_image({0, 0, SVOD_STATE_TURNS, 1, 24, 0, 0, 1, 24, 24, 0, 0, 0}, 3);
  REQUIRE(is_sound(*image));
  Runs runs(*image);
  for (int run = 0; run < 4; ++run) {
    runs.bind();
    CHECK(runs.in() != runs.out());
    CHECK(runs.in()[5] == float(run));
    runs.out()[5] = float(run + 1);
    runs.keep();
  }
  // A run that failed is no run: the next one reads what it read.
  runs.bind();
  runs.out()[5] = 99;
  runs.bind();
  CHECK(runs.in()[5] == 4);
}

TEST_CASE("one place is read and written", "[states]") {
  const auto image =
      make_image({0, 0, SVOD_STATE_PLACE, 1, 24, 0, 0, 1, 24, 24, 0, 0, 0}, 3);
  REQUIRE(is_sound(*image));
  Runs runs(*image);
  runs.bind();
  CHECK(runs.in() == runs.out());
}

TEST_CASE("the end of a second place is copied to the first", "[states]") {
  const auto image =
      make_image({0, 0, SVOD_STATE_COPIED, 1, 32, 0, 4, 2, 12, 16, 0, 0, 0}, 4);
  REQUIRE(is_sound(*image));
  Runs runs(*image);
  runs.bind();
  std::iota(runs.out(), runs.out() + 8, 1.0F);
  runs.keep();
  runs.bind();
  CHECK(runs.in()[0] == 2);
  CHECK(runs.in()[2] == 4);
  CHECK(runs.in()[4] == 6);
  CHECK(runs.in()[6] == 8);
}

TEST_CASE("places lie in the memory of states, aligned", "[states]") {
  const auto image = make_image(kWindow, 4);
  Runs runs(*image);
  const uint64_t bytes = runs.memory.size() * sizeof(uint64_t);
  CHECK(bytes % SVOD_ALIGN == 0);
  runs.bind();
  CHECK(runs.offset(runs.input) % SVOD_ALIGN == 0);
  CHECK(runs.offset(runs.input) + kWindow.bytes <= bytes);
}

TEST_CASE("an image whose states are not sound is refused", "[states]") {
  const std::vector<SvodState> wrong = {
      {1, 0, SVOD_STATE_MOVES, 2, 40, 0, 4, 2, 12, 20, 0, 0, 0}, // no such input
      {0, 1, SVOD_STATE_MOVES, 2, 40, 0, 4, 2, 12, 20, 0, 0, 0}, // no such output
      {0, 0, 4, 2, 40, 0, 4, 2, 12, 20, 0, 0, 0},                // no such kind
      {0, 0, SVOD_STATE_MOVES, 0, 40, 0, 4, 2, 12, 20, 0, 0, 0}, // never moved
      {0, 0, SVOD_STATE_MOVES, 11, 40, 0, 4, 2, 12, 20, 0, 0,
       0}, // moves out of its memory
      {0, 0, SVOD_STATE_MOVES, ~0u, 40, 0, 0, 2, 12, 20, 0, 0, 0}, // counts for ever
      {0, 0, SVOD_STATE_COPIED, 1, 32, 0, 36, 2, 12, 16, 0, 0,
       0}, // copies from behind it
      {0, 0, SVOD_STATE_PLACE, 1, 20, 0, 0, 1, 24, 20, 0, 0,
       0}, // is shorter than its tensor
      {0, 0, SVOD_STATE_PLACE, 1, ~0ull, 0, 0, 1, 24, 24, 0, 0, 0},   // wraps
      {0, 0, SVOD_STATE_PLACE, 1, 24, ~63ull, 0, 1, 24, 24, 0, 0, 0}, // wraps
      {0, 0, SVOD_STATE_PLACE, 1, 24, 8, 0, 1, 24, 24, 0, 0, 0},      // is not aligned
      {0, 0, SVOD_STATE_PLACE, 1, 24, 0, 0, 0, 24, 24, 0, 0, 0},      // has no parts
  };
  for (const SvodState& state : wrong) {
    INFO("wrong number " << &state - wrong.data());
    CHECK_FALSE(is_sound(*make_image(state, state.kind == SVOD_STATE_MOVES ? 4 : 3)));
  }
  const auto image = make_image(kWindow, 4);
  image->tensors[0].shape_output = 2;
  CHECK_FALSE(is_sound(*image));
  image->tensors[0].shape_output = 0;
  CHECK_FALSE(is_sound(*image));
}
