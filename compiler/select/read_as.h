// Dimensions that those who read a value see as several.
#pragma once

#include "compiler/kernel/group.h"
#include "compiler/select/group.h"

namespace svod::select {

// Group::read_as of a group: dimensions of its root that all `users` reshape in one way.
// The last dimension stays whole: it is the lanes', and which of its elements a run needs
// is seldom open.
std::map<int64_t, Shape> read_as(const Graph& g, const Users& users, const Group& group);

} // namespace svod::select
