// An entry is a header with the payload's length and SHA-256, then the payload. It is
// written beside its place and renamed, so a reader sees all of it or nothing; whatever
// does not match its header is removed and counts as a miss. A hit sets the file's time,
// which makes it the newest for collect().
#include "compiler/toolchain/object_cache.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace svod::toolchain {

namespace fs = std::filesystem;

namespace {

struct EntryHeader {
  char magic[8];
  uint64_t size;
  std::array<uint8_t, 32> sha256;
};

} // namespace

static constexpr char kMagic[8] = {'S', 'V', 'O', 'D', 'O', 'B', 'J', '1'};

ObjectCache::ObjectCache(fs::path folder) : folder_(std::move(folder)) {}

fs::path ObjectCache::default_folder() {
  auto variable = [](const char* name) {
    const char* value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string folder = variable("SVOD_CACHE_DIR"); !folder.empty()) return folder;
  if (std::string base = variable("XDG_CACHE_HOME"); !base.empty())
    return fs::path(base) / "svod";
  if (std::string home = variable("HOME"); !home.empty())
    return fs::path(home) / ".cache" / "svod";
  return {};
}

fs::path ObjectCache::path_of(const Digest& key) const {
  const std::string hex = key.hex();
  return folder_ / "obj" / hex.substr(0, 2) / hex;
}

static bool read_all(int file, void* to, size_t size) {
  char* at = static_cast<char*>(to);
  while (size > 0) {
    const ssize_t got = read(file, at, size);
    if (got <= 0) return false;
    at += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

static bool write_all(int file, const void* from, size_t size) {
  const char* at = static_cast<const char*>(from);
  while (size > 0) {
    const ssize_t put = write(file, at, size);
    if (put <= 0) return false;
    at += put;
    size -= static_cast<size_t>(put);
  }
  return true;
}

// The size field is checked against the file before it is believed.
static std::optional<std::vector<std::byte>> read_entry(int file) {
  EntryHeader header;
  struct stat status;
  if (fstat(file, &status) != 0 || !read_all(file, &header, sizeof header))
    return std::nullopt;
  if (std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) return std::nullopt;
  if (header.size != static_cast<uint64_t>(status.st_size) - sizeof header)
    return std::nullopt;
  std::vector<std::byte> value(header.size);
  if (!read_all(file, value.data(), value.size())) return std::nullopt;
  if (sha256(value).bytes != header.sha256) return std::nullopt;
  return value;
}

std::optional<std::vector<std::byte>> ObjectCache::load(const Digest& key) const {
  const fs::path path = path_of(key);
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::optional<std::vector<std::byte>> value = read_entry(file);
  close(file);
  if (value)
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  else
    unlink(path.c_str());
  return value;
}

bool ObjectCache::store(const Digest& key, std::span<const std::byte> value) const {
  const fs::path path = path_of(key);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return false;
  std::string temporary = (path.parent_path() / "tmp.XXXXXX").string();
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return false;
  EntryHeader header{{}, value.size(), sha256(value).bytes};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  const bool written = write_all(file, &header, sizeof header) &&
                       write_all(file, value.data(), value.size());
  const bool closed = close(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

namespace {

struct CachedFile {
  fs::file_time_type time;
  fs::path path;
  uint64_t bytes;
};

} // namespace

// Other processes may remove entries meanwhile; what is gone is skipped.
static std::vector<CachedFile> entries_of(const fs::path& folder) {
  std::vector<CachedFile> out;
  for (const char* part : {"obj", "python"}) {
    std::error_code error;
    fs::recursive_directory_iterator at(folder / part, error), end;
    for (; !error && at != end; at.increment(error)) {
      std::error_code gone;
      if (!at->is_regular_file(gone)) continue;
      const uint64_t bytes = at->file_size(gone);
      if (gone) continue;
      const fs::file_time_type time = at->last_write_time(gone);
      if (!gone) out.push_back({time, at->path(), bytes});
    }
  }
  return out;
}

CacheStats ObjectCache::stats() const {
  CacheStats out;
  for (const CachedFile& entry : entries_of(folder_)) {
    ++out.entries;
    out.bytes += entry.bytes;
  }
  return out;
}

// Asked before the work starts: a user who pays for every kernel again at each pack
// should hear once why.
std::string ObjectCache::why_not_writable() const {
  std::error_code error;
  fs::create_directories(folder_ / "obj", error);
  if (error) return error.message();
  std::string probe = (folder_ / "obj" / "tmp.XXXXXX").string();
  const int file = mkostemp(probe.data(), O_CLOEXEC);
  if (file < 0) return std::strerror(errno);
  close(file);
  unlink(probe.c_str());
  return "";
}

CacheStats ObjectCache::collect(uint64_t max_bytes, bool dry) const {
  std::vector<CachedFile> entries = entries_of(folder_);
  std::ranges::sort(entries, [](const CachedFile& a, const CachedFile& b) {
    return std::tie(a.time, a.path) < std::tie(b.time, b.path);
  });
  uint64_t total = 0;
  for (const CachedFile& entry : entries) total += entry.bytes;
  CacheStats removed;
  for (const CachedFile& entry : entries) {
    if (total <= max_bytes) break;
    std::error_code error;
    if (!dry && !fs::remove(entry.path, error)) continue;
    total -= entry.bytes;
    removed.bytes += entry.bytes;
    ++removed.entries;
  }
  return removed;
}

} // namespace svod::toolchain
