#include "packager/report/progress.h"

#include <csignal>
#include <cstdio>

namespace svod::packager {

namespace {

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), seconds < 10 ? "%.1f s" : "%.0f s", seconds);
  return text;
}

} // namespace

Progress::~Progress() { end(); }

void Progress::stage(const std::string& text) {
  const std::lock_guard lock(mutex_);
  stage_ = text;
  slowest_.clear();
  slowest_ms_ = 0;
  done_ = all_ = compiled_ = 0;
  begin_ = Clock::now();
  if (at_once_) show_(line());
  if (!clock_.joinable())
    clock_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

void Progress::kernel(const std::string& name, double ms, bool compiled, size_t done,
                      size_t all) {
  const std::lock_guard lock(mutex_);
  done_ = done;
  all_ = all;
  if (compiled && compiled_++ == 0)
    first_kernel_ = Clock::now() - std::chrono::duration_cast<Clock::duration>(
                                       std::chrono::duration<double, std::milli>(ms));
  if (compiled && ms > slowest_ms_) {
    slowest_ms_ = ms;
    slowest_ = name;
  }
  if (at_once_) show_(line());
}

// The time left supposes that the kernels to come are like those before them.
std::string Progress::line() const {
  const auto now = Clock::now();
  const std::chrono::duration<double> here = now - begin_,
                                      compiling = now - first_kernel_;
  std::string out = stage_;
  if (all_ > 0) out += ", " + std::to_string(done_) + " of " + std::to_string(all_);
  if (slowest_ms_ > 0)
    out += ", slowest " + slowest_ + " " + seconds_text(slowest_ms_ / 1000);
  if (here.count() >= 1) out += ", " + seconds_text(here.count());
  if (compiled_ > 0 && done_ < all_)
    out += ", about " +
           seconds_text(compiling.count() / static_cast<double>(compiled_) *
                        static_cast<double>(all_ - done_)) +
           " left";
  return out;
}

void Progress::watch(const std::stop_token& stop) {
  // Signals are the main thread's: it stands still while their handler removes files.
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    wake_.wait_for(lock, stop, every_, [] { return false; });
    if (!stop.stop_requested()) show_(line());
  }
}

void Progress::end() {
  clock_.request_stop();
  if (clock_.joinable()) clock_.join();
  clock_ = {};
}

} // namespace svod::packager
