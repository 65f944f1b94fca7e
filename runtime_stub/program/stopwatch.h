// Short times. A reading of the clock is a system call and takes as long as a small
// kernel (30 ns, in a virtual machine 260), so a span is less by what a reading takes at
// least.
#ifndef SVOD_PROGRAM_STOPWATCH_H
#define SVOD_PROGRAM_STOPWATCH_H

#include "runtime_stub/platform.h"

namespace packed {

class Stopwatch {
public:
  Stopwatch() {
    uint64_t least = ~uint64_t{0}, last = svod_now();
    for (int i = 0; i < 200; i++) {
      uint64_t now = svod_now();
      if (now - last < least) least = now - last;
      last = now;
    }
    reading_ = least;
  }

  void start() { last_ = svod_now(); }

  // Nanoseconds since the last start or lap.
  uint64_t lap() {
    uint64_t now = svod_now(), span = now - last_;
    last_ = now;
    return span > reading_ ? span - reading_ : 0;
  }

private:
  uint64_t reading_, last_ = 0;
};

} // namespace packed

#endif
