// Asks the kernel for one call under the filter of packed programs, from here or from a
// thread of theirs:
//   ask_kernel here|thread|free reads|writes NUMBER A B C
// Ends with 0 when the call came back, whatever it gave; `free` is without the filter.
#include "runtime_stub/platform.h"

#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <sys/syscall.h>
#include <unistd.h>

namespace {

long numbers[4];

void ask(void*) { syscall(numbers[0], numbers[1], numbers[2], numbers[3], 0, -1, 0); }

} // namespace

int main(int argc, char** argv) {
  if (argc != 7) return 2;
  const std::string_view where = argv[1];
  for (int i = 0; i < 4; ++i) numbers[i] = std::strtol(argv[3 + i], nullptr, 0);
  if (where != "free") svod_keep_to_own_calls(std::string_view(argv[2]) == "writes");
  constexpr uint64_t kStackBytes = 1 << 16;
  uint32_t alive = 0;
  if (where != "thread")
    ask(nullptr);
  else if (svod_thread_start(ask, nullptr, svod_allocate(kStackBytes), kStackBytes,
                             &alive) == 0)
    svod_thread_join(&alive);
  else
    return 3;
  svod_exit(0);
}
