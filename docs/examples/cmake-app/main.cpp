// Reads a digit that is drawn on standard input: eight lines of eight characters, a space
// for paper, '#' for ink, '+' for half of it.
#include "digits.hpp"

#include <algorithm>
#include <array>
#include <iostream>
#include <string>

int main() {
  svod::Model<digits> model; // with an arena of its own
  std::array<float, 64> image = {};
  std::array<float, 10> scores = {};
  std::string line;
  for (std::size_t row = 0; row < 8 && std::getline(std::cin, line); row++) {
    for (std::size_t i = 0; i < std::min<std::size_t>(line.size(), 8); i++)
      image[8 * row + i] = line[i] == '#' ? 1.0f : line[i] == '+' ? 0.5f : 0.0f;
  }
  const svod::Status status = model.run(image, scores);
  if (status != svod::Status::Ok) {
    std::cerr << model.text(status) << "\n";
    return 1;
  }
  const auto best = std::ranges::max_element(scores);
  std::cout << best - scores.begin() << ", score " << *best << "\n";
}
