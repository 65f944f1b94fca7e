// Content digests: SHA-256, as specified in FIPS 180-4. Stable across builds and
// machines.
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

struct Digest {
  std::array<uint8_t, 32> bytes{};
  auto operator<=>(const Digest&) const = default;
  std::string hex() const;
  uint64_t prefix() const; // first 8 bytes, little endian: a hash-table key
};

// What hex() wrote; nothing for any other text.
std::optional<Digest> digest_from_hex(std::string_view text);

class Sha256 {
public:
  Sha256();
  void update(std::span<const std::byte> data);
  void update(std::string_view text) {
    update(std::as_bytes(std::span(text.data(), text.size())));
  }
  Digest finish();

private:
  void block(const uint8_t* data);
  std::array<uint32_t, 8> state_;
  std::array<uint8_t, 64> pending_{};
  size_t pending_size_ = 0;
  uint64_t total_ = 0;
};

Digest sha256(std::span<const std::byte> data);
Digest sha256(std::string_view text);

// The defined byte encoding that digests of structures are taken over: every integer as 8
// little-endian bytes, every string and list preceded by its length.
class DigestWriter {
public:
  // `copy` gets the encoding as well.
  explicit DigestWriter(std::string* copy = nullptr) : copy_(copy) {}
  void number(uint64_t value);
  void text(std::string_view value);
  void numbers(std::span<const int64_t> values);
  void digest(const Digest& value);
  Digest finish() { return hash_.finish(); }

private:
  void add(std::span<const std::byte> bytes);
  Sha256 hash_;
  std::string* copy_;
};

} // namespace svod
