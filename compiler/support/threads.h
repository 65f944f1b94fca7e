// Independent pieces of work on all cores.
#pragma once

#include <cstddef>
#include <functional>

namespace svod {

// Calls work(0) to work(count - 1), each once, on up to `threads` threads, 0: as many as
// there are cores. When a piece throws, no other is begun, and what the first one threw
// is thrown on.
void run_on_threads(size_t count, unsigned threads,
                    const std::function<void(size_t)>& work);

} // namespace svod
