// Objects by content, on disk: DIR/obj/ab/<hex of key>. A damaged, foreign or cut entry
// is a miss and never an error; several processes may share one folder. Libraries that
// the Python module keeps in DIR/python count and go like objects.
#pragma once

#include "compiler/support/digest.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace svod::toolchain {

struct CacheStats {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

class ObjectCache {
public:
  explicit ObjectCache(std::filesystem::path folder);

  // $SVOD_CACHE_DIR, else $XDG_CACHE_HOME/svod, else ~/.cache/svod; empty without any.
  static std::filesystem::path default_folder();

  const std::filesystem::path& folder() const { return folder_; }

  std::optional<std::vector<std::byte>> load(const Digest& key) const;
  // False when it could not be written (full disk, no permission): the caller goes on.
  bool store(const Digest& key, std::span<const std::byte> value) const;

  CacheStats stats() const;
  // Removes the longest unused entries until at most `max_bytes` remain; returns what
  // went. With `dry` it only says what would go.
  CacheStats collect(uint64_t max_bytes, bool dry = false) const;
  // Why nothing can be stored in the folder; empty when it can.
  std::string why_not_writable() const;

private:
  std::filesystem::path path_of(const Digest& key) const;
  std::filesystem::path folder_;
};

} // namespace svod::toolchain
