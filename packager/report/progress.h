// What a pack is at, for whoever waits: on a terminal one line that is written over, in a
// log a line every ten seconds. The clock has a thread of its own, since a stage may say
// nothing for long.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

namespace svod::packager {

class Progress {
public:
  // `show` prints a line: every so often, from the clock's thread, and with `at_once`
  // when a stage begins or a kernel is done.
  Progress(bool at_once, std::chrono::milliseconds every,
           std::function<void(const std::string&)> show)
      : at_once_(at_once), every_(every), show_(std::move(show)) {}
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void stage(const std::string& text);
  // Of the kernels of this stage. Those from the cache say nothing about the time left.
  void kernel(const std::string& name, double ms, bool compiled, size_t done, size_t all);
  void end();

private:
  using Clock = std::chrono::steady_clock;
  std::string line() const; // with the mutex held
  void watch(const std::stop_token& stop);

  bool at_once_;
  std::chrono::milliseconds every_;
  std::function<void(const std::string&)> show_;
  mutable std::mutex mutex_;
  std::condition_variable_any wake_;
  std::string stage_, slowest_;
  double slowest_ms_ = 0;
  size_t done_ = 0, all_ = 0, compiled_ = 0;
  Clock::time_point begin_, first_kernel_;
  std::jthread clock_; // last: it ends before what it uses
};

} // namespace svod::packager
