// A cache that machines share, behind the folder of each: what the folder lacks is asked
// of it, what is made new goes to it while the pack goes on. It never makes a pack fail:
// after a failure of the server there is one warning, and the folder alone.
//
// Nothing that comes is used before its size and its SHA-256 are those that it was
// recorded with; then it is checked like an entry of the folder.
#pragma once

#include "compiler/toolchain/shared_entries.h"
#include "packager/remote/remote_client.h"

#include <condition_variable>
#include <deque>
#include <mutex>
#include <set>
#include <thread>

namespace svod::packager {

// What one pack, or all of them, got from it and gave to it. Bytes are those of entries.
struct RemoteCounts {
  uint64_t hits = 0, hit_bytes = 0;
  uint64_t misses = 0; // `damaged` ones are among them
  uint64_t damaged = 0;
  uint64_t uploads = 0, upload_bytes = 0;
  uint64_t left = 0; // that it should have got and did not
};

class RemoteCache : public toolchain::SharedEntries {
public:
  enum class State : uint8_t { Unused, Connected, Failed };
  struct Said {
    bool warning; // or a line for -v
    std::string text;
  };

  // `read_only`: it gets nothing.
  RemoteCache(RemoteAddress address, bool read_only);
  ~RemoteCache() override;

  std::optional<std::vector<std::byte>> fetch(const Digest& key,
                                              toolchain::EntryKind kind) override;
  void reject(const Digest& key, toolchain::EntryKind kind, uint64_t bytes) override;
  void offer(const Digest& key, toolchain::EntryKind kind,
             std::vector<std::byte> entry) override;

  // Waits until what was offered has gone, and not for long; nothing goes afterwards.
  void finish();
  // Connects, if that was not tried yet.
  bool is_ready();

  const RemoteAddress& address() const { return address_; }
  const RemoteAbilities& abilities() const { return client_->abilities(); }
  State state() const;
  std::string why_failed() const;
  RemoteCounts counts() const;
  // What is to be told since the last time.
  std::vector<Said> said();

private:
  struct Upload {
    std::string path;
    std::vector<std::byte> entry;
  };
  void connect();
  void fail(const std::string& why);
  void say(bool warning, std::string text);
  bool is_on() const;
  void miss(const std::string& path);
  void warn_damaged(const std::string& what);
  void note_time(std::chrono::steady_clock::time_point begin);
  void upload_all();
  bool upload(const Upload& upload, std::string& fault);
  void refuse(const std::string& why);
  void drop_queue();
  void stop();

  const RemoteAddress address_;
  const bool read_only_;
  std::once_flag connected_;
  std::unique_ptr<RemoteClient> client_;
  mutable std::mutex mutex_; // of all that follows
  State state_ = State::Unused;
  std::string why_failed_;
  RemoteCounts counts_;
  std::vector<Said> said_;
  std::set<std::string> absent_; // that it was asked for and has not
  int slow_answers_ = 0;
  bool takes_ = true; // what is offered; later not, when an upload has failed
  std::deque<Upload> queue_;
  uint64_t queue_bytes_ = 0;
  size_t under_way_ = 0;
  bool stops_ = false;
  std::condition_variable changed_;
  std::vector<std::thread> uploaders_;
};

// Text of certificates that a server is held against: those of $SVOD_CACHE_CA, else the
// system's; empty where no file can be read, `fault` says which.
std::string trusted_roots(std::string& fault);

} // namespace svod::packager
