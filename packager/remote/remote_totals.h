// What all packs with one cache folder got from remote caches and gave to them: a file in
// the folder, which `cache stats` shows and `cache clear` removes.
#pragma once

#include "compiler/toolchain/object_cache.h"
#include "packager/remote/remote_cache.h"

namespace svod::packager {

RemoteCounts read_remote_totals(const toolchain::ObjectCache& cache);
// Adds one pack's. A folder that cannot be written has none.
void add_remote_totals(const toolchain::ObjectCache& cache, const RemoteCounts& counts);
void clear_remote_totals(const toolchain::ObjectCache& cache);

} // namespace svod::packager
