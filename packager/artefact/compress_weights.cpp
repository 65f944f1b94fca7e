// A frame finds repetitions only within its block, a thread has work only if there are
// blocks for it. Of resnet50_int8 frames of blocks of 1 MiB are as small as one frame of
// all; of bert_base_int8, whose table of words repeats itself, they are 8.2 % larger, and
// of 4 MiB 2.7 %. So blocks are that large where there are at least eight of them.
//
// Level 19 takes a second of one core for some MB, so every core has a block.
#include "packager/artefact/compress_weights.h"

#include "compiler/support/check.h"
#include "runtime_stub/zstd_format.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <deque>
#include <future>
#include <thread>

#include <zstd.h>

namespace svod::packager {

namespace {

constexpr uint64_t kLeastBlock = uint64_t{1} << 20, kMostBlock = uint64_t{1} << 22;
constexpr int kLevel = 19;

uint64_t block_bytes(uint64_t weight_bytes) {
  constexpr uint64_t kBlocks = 8;
  return std::clamp(std::bit_ceil(weight_bytes / kBlocks), kLeastBlock, kMostBlock);
}

std::vector<std::byte> compress(const std::vector<std::byte>& block) {
  std::vector<std::byte> out(ZSTD_compressBound(block.size()));
  const size_t size =
      ZSTD_compress(out.data(), out.size(), block.data(), block.size(), kLevel);
  SVOD_CHECK(ZSTD_isError(size) == 0) << "zstd: " << ZSTD_getErrorName(size);
  out.resize(size);
  out.shrink_to_fit();
  return out;
}

// Blocks are compressed beside each other and kept in their order.
class Blocks {
public:
  Blocks(uint64_t block_bytes, std::vector<std::vector<std::byte>>& frames)
      : block_bytes_(static_cast<size_t>(block_bytes)), frames_(frames) {}
  void add(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const size_t more = std::min<size_t>(bytes.size(), block_bytes_ - block_.size());
      block_.insert(block_.end(), bytes.begin(),
                    bytes.begin() + static_cast<std::ptrdiff_t>(more));
      bytes = bytes.subspan(more);
      if (block_.size() == block_bytes_) begin();
    }
  }
  void finish() {
    if (!block_.empty()) begin();
    while (!running_.empty()) take();
  }

private:
  void begin() {
    if (running_.size() >= std::max(1U, std::thread::hardware_concurrency())) take();
    running_.push_back(std::async(
        std::launch::async, [block = std::move(block_)] { return compress(block); }));
    block_ = {};
  }
  void take() {
    frames_.push_back(running_.front().get());
    running_.pop_front();
  }

  size_t block_bytes_;
  std::vector<std::vector<std::byte>>& frames_;
  std::vector<std::byte> block_;
  std::deque<std::future<std::vector<std::byte>>> running_;
};

uint64_t begin_of_frames(uint64_t blocks) {
  return sizeof(SvodZstdHeader) + (blocks + 1) * sizeof(uint64_t);
}

} // namespace

CompressedWeights::CompressedWeights(uint64_t weight_bytes,
                                     const std::function<void(const ByteSink&)>& produce)
    : weight_bytes_(weight_bytes) {
  Blocks blocks(block_bytes(weight_bytes_), frames_);
  produce([&](std::span<const std::byte> bytes) { blocks.add(bytes); });
  blocks.finish();
}

uint64_t CompressedWeights::bytes() const {
  uint64_t out = begin_of_frames(frames_.size());
  for (const auto& frame : frames_) out += frame.size();
  return out;
}

void CompressedWeights::write(const ByteSink& sink) const {
  SvodZstdHeader header{{}, weight_bytes_, block_bytes(weight_bytes_), frames_.size()};
  std::memcpy(header.magic, "SVODZST", sizeof(header.magic));
  sink(std::as_bytes(std::span(&header, 1)));
  std::vector<uint64_t> places{begin_of_frames(frames_.size())};
  for (const auto& frame : frames_) places.push_back(places.back() + frame.size());
  sink(std::as_bytes(std::span(places)));
  for (const auto& frame : frames_) sink(frame);
}

} // namespace svod::packager
