// Two models through the C++ wrapper in one program: an arena of its own, a caller's, and
// one that is too small. Built without exceptions and type information.
#include "libcnn.hpp"
#include "libmlp.hpp"

#include <cstdio>
#include <cstring>
#include <type_traits>

static_assert(std::is_same_v<svod::InputTensor<mlp, 0>::type, float>);
static_assert(svod::InputTensor<cnn, 0>::shape ==
              std::array<std::size_t, 4>{1, 3, 40, 40});
static_assert(svod::OutputTensor<cnn, 0>::count == 7 &&
              svod::OutputTensor<mlp, 0>::rank == 2);
static_assert(!std::is_copy_constructible_v<svod::Model<cnn>>);
static_assert(std::is_nothrow_move_constructible_v<svod::Model<cnn>>);

alignas(mlp::arena_align) static std::byte memory[mlp::arena_bytes];
static std::array<float, 4800> picture;
static std::array<float, 7> classes, again;
static float a[96], b[64], sum[64];

int main() {
  for (std::size_t i = 0; i < picture.size(); i++)
    picture[i] = static_cast<float>(i % 7) - 3;
  svod::Model<cnn> first;
  if (!first || first.run(picture, classes) != svod::Status::Ok) return 1;
  svod::Model<cnn> moved = std::move(first);
  if (moved.run(picture, again) != svod::Status::Ok || classes != again) return 2;
  if (first || first.run(picture, again) != svod::Status::ArenaSmall) return 3;
  svod::Model<mlp> second{memory};
  static_assert(noexcept(second.run(a, b, sum)));
  if (second.run(a, b, sum) != svod::Status::Ok) return 4;
  svod::Model<mlp> small{std::span(memory).first(64)};
  if (small || small.run(a, b, sum) != svod::Status::ArenaSmall) return 5;
  if (std::strcmp(cnn::input_names[0], "x") != 0) return 6;
  std::puts(svod::Model<mlp>::text(svod::Status::ArenaSmall));
  return 0;
}
