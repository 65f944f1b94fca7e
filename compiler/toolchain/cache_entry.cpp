// The digest is of the size and the compressed bytes: what is damaged is never
// decompressed. Who makes an entry on purpose can give it a right digest, so the size of
// the value is believed only as far as so many bytes can say so much.
#include "compiler/toolchain/cache_entry.h"

#include "compiler/support/digest.h"
#include "compiler/toolchain/shared_entries.h"

#include <llvm/Support/Compression.h>
#include <llvm/Support/Error.h>

#include <cstring>

namespace svod::toolchain {

static constexpr char kMagic[8] = {'S', 'V', 'O', 'D', 'O', 'B', 'J', '2'};

// zstd's fastest level: yolov8n's plan of 36 MB becomes 3.4 MB.
static constexpr int kCompression = 1;

// The shortest block of zstd has four bytes, the longest content of a block is 128 KiB.
static constexpr uint64_t kMostGrowth = (uint64_t{128} << 10) / 4;

std::string entry_form() { return {kMagic, sizeof kMagic}; }

EntryHeader entry_header(std::span<const std::byte> packed, uint64_t unpacked) {
  EntryHeader header{{}, packed.size(), unpacked, {}};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  DigestWriter digest;
  digest.number(unpacked);
  digest.text({reinterpret_cast<const char*>(packed.data()), packed.size()});
  header.sha256 = digest.finish().bytes;
  return header;
}

std::vector<std::byte> entry_of(std::span<const std::byte> value) {
  llvm::SmallVector<uint8_t, 0> small;
  llvm::compression::zstd::compress(
      {reinterpret_cast<const uint8_t*>(value.data()), value.size()}, small,
      kCompression);
  const auto packed = std::as_bytes(std::span(small.data(), small.size()));
  const EntryHeader header = entry_header(packed, value.size());
  std::vector<std::byte> out(sizeof header + packed.size());
  std::memcpy(out.data(), &header, sizeof header);
  std::memcpy(out.data() + sizeof header, packed.data(), packed.size());
  return out;
}

std::optional<std::vector<std::byte>> value_of(std::span<const std::byte> entry,
                                               uint64_t most) {
  EntryHeader header;
  if (entry.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, entry.data(), sizeof header);
  const auto packed = entry.subspan(sizeof header);
  const EntryHeader right = entry_header(packed, header.unpacked);
  if (std::memcmp(&header, &right, sizeof header) != 0 || header.unpacked > most ||
      header.unpacked / kMostGrowth > packed.size())
    return std::nullopt;
  std::vector<std::byte> value(header.unpacked);
  size_t unpacked = value.size();
  if (llvm::Error error = llvm::compression::zstd::decompress(
          {reinterpret_cast<const uint8_t*>(packed.data()), packed.size()},
          reinterpret_cast<uint8_t*>(value.data()), unpacked)) {
    llvm::consumeError(std::move(error));
    return std::nullopt;
  }
  if (unpacked != value.size()) return std::nullopt;
  return value;
}

} // namespace svod::toolchain
