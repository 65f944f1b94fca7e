// Streams that were made smaller: deflated ones, weights in frames of zstd, and what
// weights are made of.
#include "runtime_stub/checksum.h"
#include "runtime_stub/expansion.h"
#include "runtime_stub/inflate.h"
#include "runtime_stub/program/make_weights.h"
#include "runtime_stub/stored_weights.h"
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

void svod_get_stored(const void** data, uint64_t* bytes) {
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
  session.entry = svod_entry(&image, 0);
  packed::Printer errors(packed::Printer::kNowhere);
  const packed::MemoryScope scope;
  const packed::Exit status = packed::make_weights(session, 1, errors);
  must(status == packed::EXIT_DONE || status == packed::EXIT_DAMAGED,
       "weights are there, or damaged");
}

// With the checksum that the tables have, so that steps are looked at. Memory is as long
// as it says, to a byte, so that a step that leaves it is seen.
void fuzz_expansion(Bytes bytes) {
  constexpr uint64_t kMostMemory = 1 << 16, kMostElements = 1 << 20;
  if (bytes.size() < sizeof(SvodExpansionHeader)) return;
  const std::unique_ptr<uint64_t[]> block(new uint64_t[bytes.size() / 8]);
  const size_t size = bytes.size() / 8 * 8;
  std::memcpy(block.get(), bytes.data(), size);
  auto* header = reinterpret_cast<SvodExpansionHeader*>(block.get());
  const uint64_t tables = header->jobs * uint64_t{sizeof(SvodExpansionJob)} +
                          header->steps * uint64_t{sizeof(SvodExpansionStep)} +
                          header->numbers * uint64_t{8};
  if (header->weight_bytes > kMostMemory || header->room_bytes > kMostMemory ||
      header->jobs > 64 || tables > size - sizeof(*header))
    return;
  header->checksum = svod_checksum(&header->weight_bytes, sizeof(*header) - 16 + tables);
  if (svod_check_expansion(header, size, header->weight_bytes) != SVOD_OK) return;
  const auto rounded = [](uint64_t of) { return static_cast<size_t>((of + 7) / 8); };
  std::unique_ptr<uint64_t[]> weights(new uint64_t[rounded(header->weight_bytes)]());
  std::unique_ptr<uint64_t[]> room(new uint64_t[rounded(header->room_bytes)]());
  // What takes long is no fault.
  const auto* steps = reinterpret_cast<const SvodExpansionStep*>(
      reinterpret_cast<const SvodExpansionJob*>(header + 1) + header->jobs);
  const auto* numbers = reinterpret_cast<const int64_t*>(steps + header->steps);
  for (uint32_t i = 0; i < header->steps; ++i) {
    uint64_t count = 1;
    const uint32_t each = steps[i].kind == SVOD_EXPANSION_COPY ? 2 : 4;
    const uint32_t first = steps[i].kind == SVOD_EXPANSION_COPY ? 1 : 0;
    for (uint32_t k = 0; k < steps[i].axes && k < SVOD_EXPANSION_AXES; ++k) {
      const uint64_t at = uint64_t{steps[i].first_number} + first + k * each;
      if (at >= header->numbers) break;
      const auto extent = static_cast<uint64_t>(numbers[at]);
      if (extent > kMostElements || count * extent > kMostElements) return;
      count *= extent;
    }
  }
  for (uint32_t job = 0; job < header->jobs; ++job)
    (void)svod_expand(header, size, job, reinterpret_cast<uint8_t*>(weights.get()),
                      reinterpret_cast<uint8_t*>(room.get()));
}

} // namespace svod::fuzz
