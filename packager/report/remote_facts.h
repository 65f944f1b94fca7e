// What --json, -v and `cache stats` say about a cache that machines share.
#pragma once

#include "packager/remote/remote_cache.h"
#include "packager/report/json.h"

#include <string>

namespace svod::packager {

struct RemoteFacts {
  std::string address;
  std::string_view state; // unused, connected, failed
  RemoteCounts counts;
};
RemoteFacts remote_facts(const RemoteCache& cache);

// "remote": {...} in an object that is open.
void write_remote(JsonWriter& json, const RemoteFacts& facts);
// The members of the counts alone.
void write_counts(JsonWriter& json, const RemoteCounts& counts);
// "3 hits (1200 bytes), 1 miss, ..."
std::string counts_text(const RemoteCounts& counts);

} // namespace svod::packager
