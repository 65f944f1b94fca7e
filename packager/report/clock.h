// How long the stages of a pack take.
#pragma once

#include <chrono>

namespace svod::packager {

class Clock {
public:
  // Milliseconds since the last call.
  double lap() {
    auto now = std::chrono::steady_clock::now();
    std::chrono::duration<double, std::milli> took = now - last_;
    last_ = now;
    return took.count();
  }

private:
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
};

} // namespace svod::packager
