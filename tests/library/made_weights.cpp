// The C++ header of a library of --weights=expand.
#include <array>
#include <cstddef>
#include <cstdio>

alignas(64) static std::array<std::byte, net::made_bytes> weights;
alignas(64) static std::array<std::byte, net::init_scratch_bytes> scratch;
static std::array<float, svod::InputTensor<net, 0>::count> input;
static std::array<float, svod::OutputTensor<net, 0>::count> output;

int main(int count, char** words) {
  std::FILE* file = std::fopen(words[count - 2], "rb");
  if (!file ||
      std::fread(input.data(), sizeof(float), input.size(), file) != input.size())
    return 1;
  std::fclose(file);
  svod::Model<net> model, other;
  if (model.run(input, output) != svod::Status::NoWeights) return 2;
  if (model.init(std::span(weights).first(64), scratch) != svod::Status::ArenaSmall)
    return 3;
  if (model.init(weights, scratch) != svod::Status::Ok) return 4;
  if (other.init(weights, scratch) != svod::Status::Ok) return 5;
  if (model.run(input, output) != svod::Status::Ok) return 6;
  if (other.run(input, output) != svod::Status::Ok) return 7;
  file = std::fopen(words[count - 1], "wb");
  if (!file ||
      std::fwrite(output.data(), sizeof(float), output.size(), file) != output.size())
    return 8;
  return std::fclose(file);
}
