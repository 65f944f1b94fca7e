// Streams that were made smaller: deflated ones, and weights in frames of zstd.
#include "runtime_stub/inflate.h"
#include "runtime_stub/program/expand_weights.h"
#include "runtime_stub/zstd_format.h"
#include "tests/fuzz/small_model.h"
#include "tests/fuzz/target.h"

#include <cstring>
#include <memory>

namespace {

struct Source {
  const uint8_t *at, *end;
  int32_t next() { return at < end ? *at++ : -1; }
};

svod::fuzz::Bytes stored;

} // namespace

void svod_get_zstd(const void** data, uint64_t* bytes) {
  *data = stored.data(), *bytes = stored.size();
}

namespace svod::fuzz {

// Bare where the length is even, else in the wrapping of zlib.
void fuzz_inflate(Bytes bytes) {
  constexpr int kMostBytes = 1 << 18;
  const auto inflate = std::make_unique<Inflate<Source>>();
  Source source{bytes.data(), bytes.data() + bytes.size()};
  if (bytes.size() % 2 == 0)
    inflate->begin(&source);
  else if (!inflate->open(&source))
    return;
  int made = 0;
  while (made < kMostBytes && inflate->next() >= 0) ++made;
  if (made < kMostBytes) must(inflate->next() < 0, "behind the end there is nothing");
}

// What is stored, for an image whose weights have as many bytes as the header says: so
// that what goes further is the rule. They are expanded by one thread, from a block of
// their own size that is aligned as a program's section is.
void fuzz_zstd(Bytes bytes) {
  constexpr uint64_t kMostWeights = 1 << 16;
  if (bytes.size() < sizeof(SvodZstdHeader)) return;
  void* block = nullptr;
  if (posix_memalign(&block, SVOD_ALIGN, bytes.size()) != 0) return;
  const std::unique_ptr<void, decltype(&std::free)> owner(block, &std::free);
  std::memcpy(block, bytes.data(), bytes.size());
  stored = {static_cast<const uint8_t*>(block), bytes.size()};
  SvodHeader image = {};
  std::memcpy(&image.weight_bytes, &bytes[offsetof(SvodZstdHeader, weight_bytes)], 8);
  if (image.weight_bytes > kMostWeights) image.weight_bytes = kMostWeights;
  packed::Session session = {};
  session.model.image = &image;
  packed::Printer errors(packed::Printer::kNowhere);
  const packed::MemoryScope scope;
  const packed::Exit status = packed::expand_weights(session, 1, errors);
  must(status == packed::EXIT_DONE || status == packed::EXIT_DAMAGED,
       "weights are there, or damaged");
}

} // namespace svod::fuzz
