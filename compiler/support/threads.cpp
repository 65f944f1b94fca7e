#include "compiler/support/threads.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace svod {

void run_on_threads(size_t count, unsigned threads,
                    const std::function<void(size_t)>& work) {
  std::atomic<size_t> next = 0;
  std::exception_ptr thrown;
  std::once_flag first;
  auto loop = [&] {
    try {
      for (size_t i = next++; i < count; i = next++) work(i);
    } catch (...) {
      next = count;
      std::call_once(first, [&] { thrown = std::current_exception(); });
    }
  };
  if (threads == 0) threads = std::max(1u, std::thread::hardware_concurrency());
  {
    std::vector<std::jthread> others;
    for (size_t i = 1; i < std::min<size_t>(threads, count); ++i)
      others.emplace_back(loop);
    loop();
  }
  if (thrown) std::rethrow_exception(thrown);
}

} // namespace svod
