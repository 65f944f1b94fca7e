// An entry is written beside its place and renamed, so a reader sees all of it or
// nothing; whatever does not match its header is removed and counts as a miss. A hit sets
// the file's time, which makes it the newest for collect().
//
// Locks are files of their own, as many as three digits of a key can name, and are never
// removed: a lock on a file that somebody removes and makes again is held by two.
#include "compiler/toolchain/object_cache.h"

#include "compiler/support/threads.h"
#include "compiler/toolchain/cache_entry.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace svod::toolchain {

namespace fs = std::filesystem;

// Names of files that are being written begin with it.
static constexpr char kUnfinished[] = "tmp.";

// Of what somebody else has made; that of this machine may be as large as it gets.
static constexpr uint64_t kMostFetched = uint64_t{2} << 30;

const char* word_of(EntryKind kind) {
  constexpr const char* kWords[] = {"obj", "plan", "program"};
  return kWords[static_cast<size_t>(kind)];
}

ObjectCache::ObjectCache(fs::path folder, SharedEntries* shared)
    : folder_(std::move(folder)), shared_(shared) {}

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

fs::path ObjectCache::path_of(const Digest& key, EntryKind kind) const {
  const std::string hex = key.hex();
  return folder_ / word_of(kind) / hex.substr(0, 2) / hex;
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

static std::optional<std::vector<std::byte>> read_file(const fs::path& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  struct stat status;
  std::optional<std::vector<std::byte>> out;
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    out.emplace(static_cast<size_t>(status.st_size));
    if (!read_all(file, out->data(), out->size())) out.reset();
  }
  close(file);
  return out;
}

static std::optional<std::vector<std::byte>> read_entry(const fs::path& path) {
  const std::optional<std::vector<std::byte>> entry = read_file(path);
  return entry ? value_of(*entry) : std::nullopt;
}

static bool write_entry(const fs::path& path, std::span<const std::byte> entry) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error) return false;
  std::string temporary =
      (path.parent_path() / (std::string(kUnfinished) + "XXXXXX")).string();
  const int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) return false;
  const bool written = write_all(file, entry.data(), entry.size());
  const bool closed = close(file) == 0;
  if (written && closed && std::rename(temporary.c_str(), path.c_str()) == 0) return true;
  unlink(temporary.c_str());
  return false;
}

std::optional<std::vector<std::byte>> ObjectCache::load_here(const Digest& key,
                                                             EntryKind kind) const {
  const fs::path path = path_of(key, kind);
  std::error_code error;
  if (!fs::exists(path, error)) return std::nullopt;
  std::optional<std::vector<std::byte>> value = read_entry(path);
  if (value)
    utimensat(AT_FDCWD, path.c_str(), nullptr, 0);
  else
    unlink(path.c_str());
  return value;
}

// Its own header is checked before it is believed: who has sent the right bytes of a
// wrong entry has a right checksum, too.
std::optional<std::vector<std::byte>> ObjectCache::fetch(const Digest& key,
                                                         EntryKind kind) const {
  if (shared_ == nullptr) return std::nullopt;
  const std::optional<std::vector<std::byte>> entry = shared_->fetch(key, kind);
  if (!entry) return std::nullopt;
  std::optional<std::vector<std::byte>> value = value_of(*entry, kMostFetched);
  if (value)
    (void)write_entry(path_of(key, kind), *entry);
  else
    shared_->reject(key, kind, entry->size());
  return value;
}

std::optional<std::vector<std::byte>> ObjectCache::load(const Digest& key,
                                                        EntryKind kind) const {
  std::optional<std::vector<std::byte>> value = load_here(key, kind);
  return value ? std::move(value) : fetch(key, kind);
}

void ObjectCache::bring(std::span<const Digest> keys) const {
  constexpr unsigned kAtOnce = 16;
  // What could not be kept would be asked for again by load().
  if (shared_ == nullptr || keys.empty() || !why_not_writable().empty()) return;
  std::vector<Digest> lacking;
  std::error_code error;
  for (const Digest& key : keys)
    if (!fs::exists(path_of(key, EntryKind::Object), error)) lacking.push_back(key);
  run_on_threads(lacking.size(), kAtOnce,
                 [&](size_t i) { (void)fetch(lacking[i], EntryKind::Object); });
}

bool ObjectCache::store(const Digest& key, std::span<const std::byte> value,
                        EntryKind kind) const {
  std::vector<std::byte> entry = entry_of(value);
  const bool written = write_entry(path_of(key, kind), entry);
  if (shared_ != nullptr) shared_->offer(key, kind, std::move(entry));
  return written;
}

CacheLock::~CacheLock() {
  if (file_ >= 0) close(file_);
}

CacheLock ObjectCache::lock(const Digest& key) const {
  constexpr size_t kDigits = 3;
  const fs::path path = folder_ / "lock" / key.hex().substr(0, kDigits);
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  const int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666);
  if (file < 0) return CacheLock();
  while (flock(file, LOCK_EX) != 0)
    if (errno != EINTR) break;
  return CacheLock(file);
}

namespace {

struct CachedFile {
  fs::file_time_type time;
  fs::path path;
  uint64_t bytes;
};

} // namespace

// Other processes may remove entries meanwhile; what is gone is skipped.
static std::vector<CachedFile> entries_of(const fs::path& folder,
                                          const std::vector<const char*>& parts = {
                                              "obj", "plan", "program", "python"}) {
  std::vector<CachedFile> out;
  for (const char* part : parts) {
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

static CacheStats sum_of(const std::vector<CachedFile>& entries) {
  CacheStats out;
  for (const CachedFile& entry : entries) {
    ++out.entries;
    out.bytes += entry.bytes;
  }
  return out;
}

CacheStats ObjectCache::stats() const { return sum_of(entries_of(folder_)); }

CacheStats ObjectCache::stats(EntryKind kind) const {
  return sum_of(entries_of(folder_, {word_of(kind)}));
}

// A file that is being written right now looks like one that was left.
static bool is_left(const CachedFile& file) {
  constexpr auto kWriting = std::chrono::hours(1);
  return fs::file_time_type::clock::now() - file.time > kWriting;
}

// Libraries of the Python module have no checksum of ours; they are counted.
CacheCheck ObjectCache::verify(bool dry) const {
  CacheCheck out;
  out.all = stats();
  for (const CachedFile& entry : entries_of(folder_, {"obj", "plan", "program"})) {
    const bool unfinished = entry.path.filename().string().starts_with(kUnfinished);
    if (unfinished ? !is_left(entry) : read_entry(entry.path).has_value()) continue;
    std::error_code gone;
    if (!fs::exists(entry.path, gone)) continue;
    ++out.damaged.entries;
    out.damaged.bytes += entry.bytes;
    if (!dry) fs::remove(entry.path, gone);
  }
  return out;
}

static void count(CacheStats& stats, uint64_t bytes) {
  ++stats.entries;
  stats.bytes += bytes;
}

CacheMerge ObjectCache::merge(const fs::path& from, bool dry) const {
  CacheMerge out;
  for (const CachedFile& file : entries_of(from, {"obj", "plan", "program"})) {
    const std::string name = file.path.filename().string();
    if (name.starts_with(kUnfinished)) continue;
    const fs::path to = folder_ / fs::relative(file.path, from);
    std::error_code error;
    if (fs::exists(to, error)) {
      count(out.known, file.bytes);
      continue;
    }
    const std::optional<std::vector<std::byte>> entry = read_file(file.path);
    if (!entry || !digest_from_hex(name) || !value_of(*entry))
      count(out.damaged, file.bytes);
    else
      count(dry || write_entry(to, *entry) ? out.added : out.failed, file.bytes);
  }
  return out;
}

// Asked before the work starts: a user who pays for every kernel again at each pack
// should hear once why.
std::string ObjectCache::why_not_writable() const {
  std::error_code error;
  fs::create_directories(folder_ / "obj", error);
  if (error) return error.message();
  std::string probe = (folder_ / "obj" / (std::string(kUnfinished) + "XXXXXX")).string();
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
