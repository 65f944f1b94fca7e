#include "packager/report/remote_facts.h"

namespace svod::packager {

RemoteFacts remote_facts(const RemoteCache& cache) {
  constexpr std::string_view kStates[] = {"unused", "connected", "failed"};
  return {cache.address().text, kStates[static_cast<size_t>(cache.state())],
          cache.counts()};
}

void write_counts(JsonWriter& json, const RemoteCounts& counts) {
  json.pair("hits", counts.hits).pair("hit_bytes", counts.hit_bytes);
  json.pair("misses", counts.misses).pair("damaged", counts.damaged);
  json.pair("uploads", counts.uploads).pair("upload_bytes", counts.upload_bytes);
  json.pair("left", counts.left);
}

void write_remote(JsonWriter& json, const RemoteFacts& facts) {
  json.key("remote").begin_object().pair("address", facts.address);
  json.pair("state", std::string(facts.state));
  write_counts(json, facts.counts);
  json.end_object();
}

std::string counts_text(const RemoteCounts& counts) {
  const auto number = [](uint64_t value) { return std::to_string(value); };
  std::string out = number(counts.hits) + " hits (" + number(counts.hit_bytes) +
                    " bytes), " + number(counts.misses) + " misses, " +
                    number(counts.uploads) + " uploads (" + number(counts.upload_bytes) +
                    " bytes)";
  if (counts.damaged != 0) out += ", " + number(counts.damaged) + " damaged";
  if (counts.left != 0) out += ", " + number(counts.left) + " not taken";
  return out;
}

} // namespace svod::packager
