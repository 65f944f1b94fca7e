// A list of records: key, size in 8 bytes, the object. Read where it lies; its symbols
// are weak, since the program that makes the list is linked without it.
#include "packager/artefact/ready_stub.h"

#include <cstring>
#include <map>

extern "C" {
__attribute__((weak)) extern const std::byte kList __asm__("svod_ready_stub");
__attribute__((weak)) extern const std::byte kListEnd __asm__("svod_ready_stub_end");
}

namespace svod::packager {

using Index = std::map<Digest, std::span<const std::byte>>;

static Index read_list() {
  Index out;
  const std::byte* at = &kList;
  if (at == nullptr) return out;
  while (at < &kListEnd) {
    Digest key;
    uint64_t size = 0;
    std::memcpy(key.bytes.data(), at, sizeof key.bytes);
    std::memcpy(&size, at + sizeof key.bytes, sizeof size);
    at += sizeof key.bytes + sizeof size;
    out.emplace(key, std::span(at, size));
    at += size;
  }
  return out;
}

std::span<const std::byte> ready_object(const Digest& key) {
  static const Index all = read_list();
  const auto at = all.find(key);
  return at == all.end() ? std::span<const std::byte>() : at->second;
}

void append_ready(std::vector<std::byte>& list, const Digest& key,
                  std::span<const std::byte> object) {
  const uint64_t size = object.size();
  const auto name = std::as_bytes(std::span(key.bytes));
  const auto length = std::as_bytes(std::span(&size, 1));
  list.insert(list.end(), name.begin(), name.end());
  list.insert(list.end(), length.begin(), length.end());
  list.insert(list.end(), object.begin(), object.end());
}

} // namespace svod::packager
