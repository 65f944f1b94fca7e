// The loop in firmware that reads launches as words (call_table.h).
#pragma once

#include <cstddef>
#include <string>

namespace svod::packager {

// C++ of run_calls(first, count, bases), whose kernels have up to `arguments`.
std::string call_loop_text(size_t arguments, bool turns);

} // namespace svod::packager
