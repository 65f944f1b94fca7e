#include "packager/remote/remote_cache.h"

#include <chrono>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

namespace svod::packager {

using toolchain::EntryKind;
using Steady = std::chrono::steady_clock;

namespace {

// An entry that is larger is no entry of ours: a program has its weights elsewhere.
constexpr uint64_t kMostEntry = uint64_t{1} << 30;
// Of what waits to be sent.
constexpr uint64_t kMostWaiting = uint64_t{512} << 20;
// Answers from the same network take milliseconds. One that takes so long costs more than
// a kernel's compile, and after so many of them nothing is asked any longer.
constexpr std::chrono::milliseconds kSlow{2000};
constexpr int kMostSlow = 3;
constexpr size_t kUploaders = 4;
// Of the end of a pack, for what has not gone until then.
constexpr std::chrono::seconds kLastWait{20};

std::string path_of(const Digest& key, EntryKind kind) {
  return "svod-pack/" + toolchain::entry_form() + "/" + toolchain::word_of(kind) + "/" +
         key.hex();
}

std::string file_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

} // namespace

BlobName name_of(std::span<const std::byte> bytes) {
  return {sha256(bytes), bytes.size()};
}

std::string trusted_roots(std::string& fault) {
  for (const char* name : {"SVOD_CACHE_CA", "SSL_CERT_FILE"}) {
    const char* path = std::getenv(name);
    if (path == nullptr || *path == 0) continue;
    const std::string text = file_text(path);
    if (text.empty())
      fault = std::string(name) + " names " + path + ", which cannot be read or is empty";
    return text;
  }
  // Debian and Alpine, Fedora, openSUSE.
  for (const char* path :
       {"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem"})
    if (const std::string text = file_text(path); !text.empty()) return text;
  fault = "this system has no list of certificates; SVOD_CACHE_CA names one";
  return "";
}

RemoteCache::RemoteCache(RemoteAddress address, bool read_only)
    : address_(std::move(address)), read_only_(read_only) {}

RemoteCache::~RemoteCache() { stop(); }

void RemoteCache::say(bool warning, std::string text) {
  said_.push_back({warning, std::move(text)});
}

std::vector<RemoteCache::Said> RemoteCache::said() {
  const std::lock_guard lock(mutex_);
  return std::exchange(said_, {});
}

RemoteCache::State RemoteCache::state() const {
  const std::lock_guard lock(mutex_);
  return state_;
}

std::string RemoteCache::why_failed() const {
  const std::lock_guard lock(mutex_);
  return why_failed_;
}

RemoteCounts RemoteCache::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

bool RemoteCache::is_on() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::Connected;
}

// The first failure ends it: a server that is down costs a pack one time-out.
void RemoteCache::fail(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (state_ == State::Failed || stops_) return;
  state_ = State::Failed;
  why_failed_ = why;
  // Whoever heard of an upload that failed knows as much.
  say(takes_, "the remote cache " + address_.text + " is not used: " + why +
                  "; the pack goes on with the local cache alone");
  drop_queue();
}

// A server may have entries for those from whom it takes none.
void RemoteCache::refuse(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (!takes_ || state_ == State::Failed || stops_) return;
  takes_ = false;
  say(true, "the remote cache " + address_.text + " takes no entries: " + why +
                "; it is only read (--cache-remote-mode=ro)");
  drop_queue();
}

void RemoteCache::drop_queue() {
  counts_.left += queue_.size();
  queue_.clear();
  queue_bytes_ = 0;
  changed_.notify_all();
}

void RemoteCache::connect() {
  const auto begin = Steady::now();
  std::string fault, roots;
  if (address_.tls) roots = trusted_roots(fault);
  if (fault.empty()) client_ = RemoteClient::connect(address_, roots, fault);
  if (!client_) return fail(fault);
  const auto took =
      std::chrono::duration_cast<std::chrono::milliseconds>(Steady::now() - begin);
  const std::lock_guard lock(mutex_);
  state_ = State::Connected;
  const bool refuses = !read_only_ && !client_->abilities().updates;
  say(false, "remote cache: " + address_.text + ", connected in " +
                 std::to_string(took.count()) + " ms, blobs of up to " +
                 std::to_string(client_->abilities().batch_bytes) +
                 " bytes in one message" + (read_only_ ? ", read only" : "") +
                 (refuses ? ", which takes no results from here" : ""));
}

bool RemoteCache::is_ready() {
  std::call_once(connected_, [this] { connect(); });
  return is_on();
}

void RemoteCache::miss(const std::string& path) {
  const std::lock_guard lock(mutex_);
  ++counts_.misses;
  absent_.insert(path);
}

void RemoteCache::warn_damaged(const std::string& what) {
  const std::lock_guard lock(mutex_);
  if (counts_.damaged++ == 0)
    say(true, "the remote cache " + address_.text + " has a damaged entry (" + what +
                  "), which is not used");
}

void RemoteCache::note_time(Steady::time_point begin) {
  if (Steady::now() - begin < kSlow) return;
  bool too_often = false;
  {
    const std::lock_guard lock(mutex_);
    too_often = ++slow_answers_ == kMostSlow;
  }
  if (too_often) fail("it takes more than 2 s to answer");
}

std::optional<std::vector<std::byte>> RemoteCache::fetch(const Digest& key,
                                                         EntryKind kind) {
  if (!is_ready()) return std::nullopt;
  const std::string path = path_of(key, kind);
  if (const std::lock_guard lock(mutex_); absent_.contains(path)) return std::nullopt;
  std::string fault;
  const auto begin = Steady::now();
  const std::optional<BlobName> name = client_->find(path, fault);
  note_time(begin);
  std::optional<std::vector<std::byte>> bytes;
  const bool fits = name && name->size <= kMostEntry;
  if (fits) bytes = client_->read(*name, fault);
  if (!fault.empty()) {
    fail(fault);
    return std::nullopt;
  }
  if (!bytes || name_of(*bytes) != *name) {
    if (bytes)
      warn_damaged(bytes->size() == name->size ? "its SHA-256 is another one"
                                               : "its size is another one");
    else if (name && !fits)
      warn_damaged("it claims to have " + std::to_string(name->size) + " bytes");
    miss(path);
    return std::nullopt;
  }
  const std::lock_guard lock(mutex_);
  ++counts_.hits;
  counts_.hit_bytes += bytes->size();
  return bytes;
}

void RemoteCache::reject(const Digest& key, EntryKind kind, uint64_t bytes) {
  const std::string path = path_of(key, kind);
  warn_damaged("it is no entry of " + path);
  miss(path);
  const std::lock_guard lock(mutex_);
  --counts_.hits;
  counts_.hit_bytes -= bytes;
}

void RemoteCache::offer(const Digest& key, EntryKind kind, std::vector<std::byte> entry) {
  if (read_only_ || entry.size() > kMostEntry || !is_ready() ||
      !client_->abilities().updates)
    return;
  const std::lock_guard lock(mutex_);
  if (state_ != State::Connected || !takes_ || stops_ ||
      queue_bytes_ + entry.size() > kMostWaiting) {
    ++counts_.left;
    return;
  }
  queue_bytes_ += entry.size();
  queue_.push_back({path_of(key, kind), std::move(entry)});
  try {
    if (uploaders_.size() < kUploaders) uploaders_.emplace_back([this] { upload_all(); });
  } catch (const std::system_error&) {
    // This process may have no more threads; those that there are do the work.
    if (uploaders_.empty()) drop_queue();
  }
  changed_.notify_all();
}

void RemoteCache::upload_all() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !queue_.empty() || stops_; });
    if (queue_.empty()) return;
    const Upload next = std::move(queue_.front());
    queue_.pop_front();
    queue_bytes_ -= next.entry.size();
    ++under_way_;
    lock.unlock();
    std::string fault;
    const bool kept = upload(next, fault);
    if (!kept) refuse(fault);
    lock.lock();
    if (kept) {
      ++counts_.uploads;
      counts_.upload_bytes += next.entry.size();
    } else {
      ++counts_.left;
    }
    --under_way_;
    changed_.notify_all();
  }
}

// The blob first: a result whose blob is not there is what servers refuse, or forget.
bool RemoteCache::upload(const Upload& upload, std::string& fault) {
  const BlobName blob = name_of(upload.entry);
  return client_->write(blob, upload.entry, fault) &&
         client_->record(upload.path, blob, fault);
}

void RemoteCache::finish() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastWait, [&] { return queue_.empty() && under_way_ == 0; });
    if (const size_t left = queue_.size() + under_way_; left != 0)
      say(true, "the remote cache " + address_.text + " did not take " +
                    std::to_string(left) + " of " +
                    std::to_string(left + counts_.uploads) +
                    " new entries in time; the next machine makes these again");
  }
  stop();
}

// Calls that are under way end at once.
void RemoteCache::stop() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
    drop_queue();
  }
  if (uploaders_.empty()) return;
  client_->cancel();
  for (std::thread& thread : uploaders_) thread.join();
  uploaders_.clear();
}

} // namespace svod::packager
