// Objects, plans and programs by content, on disk: DIR/obj/ab/<hex of key>, DIR/plan/...,
// DIR/program/..., compressed. A damaged, foreign or cut entry is a miss and never an
// error; several processes may share one folder. Libraries that the Python module keeps
// in DIR/python count and go like objects.
#pragma once

#include "compiler/toolchain/shared_entries.h"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace svod::toolchain {

struct CacheStats {
  uint64_t entries = 0;
  uint64_t bytes = 0;
};

// 4 GiB: some thousand models' kernels and plans.
inline constexpr uint64_t kKeptBytes = uint64_t{4} << 30;

// What verify() found.
struct CacheCheck {
  CacheStats all, damaged;
};

// What merge() made of the entries of another folder.
struct CacheMerge {
  CacheStats added, known, damaged, failed; // failed: they could not be written
};

// While it lives no other process has it: who waits for an entry finds it when it is
// there, or may make it. The kernel lets it go with the process, however that ends.
class CacheLock {
public:
  explicit CacheLock(int file = -1) : file_(file) {}
  ~CacheLock();
  CacheLock(CacheLock&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  CacheLock& operator=(CacheLock&&) = delete;

private:
  int file_;
};

class ObjectCache {
public:
  // `shared`: where entries are asked for that the folder lacks, and new ones offered; it
  // outlives the cache.
  explicit ObjectCache(std::filesystem::path folder, SharedEntries* shared = nullptr);

  // $SVOD_CACHE_DIR, else $XDG_CACHE_HOME/svod, else ~/.cache/svod; empty without any.
  static std::filesystem::path default_folder();

  const std::filesystem::path& folder() const { return folder_; }

  // An entry that is not in the folder and can be had elsewhere is there afterwards.
  std::optional<std::vector<std::byte>> load(const Digest& key,
                                             EntryKind kind = EntryKind::Object) const;
  // Of the folder alone.
  std::optional<std::vector<std::byte>> load_here(const Digest& key,
                                                  EntryKind kind) const;
  // Asks elsewhere for the objects that the folder lacks, many at a time: each answer has
  // a way to go.
  void bring(std::span<const Digest> keys) const;
  // False when it could not be written (full disk, no permission): the caller goes on.
  bool store(const Digest& key, std::span<const std::byte> value,
             EntryKind kind = EntryKind::Object) const;
  // Waits for the lock of a key; without a folder that can be written there is none.
  CacheLock lock(const Digest& key) const;

  CacheStats stats() const;
  // Only of one kind.
  CacheStats stats(EntryKind kind) const;
  // Reads every entry and removes those that are damaged and what an interrupted write
  // has left; with `dry` it only counts them.
  CacheCheck verify(bool dry = false) const;
  // Takes the entries of another cache's folder that this one lacks, but for the Python
  // module's libraries, which have no checksum. With `dry` it only counts them.
  CacheMerge merge(const std::filesystem::path& from, bool dry = false) const;
  // Removes the longest unused entries until at most `max_bytes` remain; returns what
  // went. With `dry` it only says what would go.
  CacheStats collect(uint64_t max_bytes, bool dry = false) const;
  // Why nothing can be stored in the folder; empty when it can.
  std::string why_not_writable() const;

private:
  std::filesystem::path path_of(const Digest& key, EntryKind kind) const;
  std::optional<std::vector<std::byte>> fetch(const Digest& key, EntryKind kind) const;
  std::filesystem::path folder_;
  SharedEntries* shared_;
};

} // namespace svod::toolchain
