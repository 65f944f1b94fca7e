// What make_room() of runtime_stub/firmware.h is told of rows that are passed on.
#pragma once

#include "compiler/plan/plan.h"

#include <array>
#include <limits>

namespace svod::packager {

// The four of NewRows: where rows stay, or behind the last row that is written border
// follows.
inline std::array<int64_t, 4> new_rows(const plan::Stream::Window& w) {
  const int64_t end = w.border ? w.count / w.by : std::numeric_limits<int32_t>::max();
  return {w.by * w.row_bytes, (w.rows - w.by) * w.row_bytes, end, w.fill};
}

inline bool needs_room(const plan::Stream::Window& w) {
  return w.rows != w.by || w.border;
}

} // namespace svod::packager
