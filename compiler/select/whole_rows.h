// Room at the end of rows that are no whole vectors.
#pragma once

#include "compiler/kernel/layout.h"
#include "compiler/select/group.h"

#include <optional>

namespace svod::select {

// The row-major layout of what `group` stores with room for whole vectors of `lanes` in
// each row; none where rows are short, whole as they are, made by other kernels than
// contractions and row operations, or read otherwise than row by row.
std::optional<Layout> whole_rows(const Graph& g, const Grouping& grouping,
                                 const Users& users, const Group& group, int lanes);

} // namespace svod::select
