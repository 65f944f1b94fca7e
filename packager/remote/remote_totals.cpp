#include "packager/remote/remote_totals.h"

#include "packager/output_file.h"

#include <fstream>

namespace svod::packager {

namespace {

struct CountRow {
  const char* word;
  uint64_t RemoteCounts::* count;
};
constexpr CountRow kRows[] = {
    {"hits", &RemoteCounts::hits},       {"hit_bytes", &RemoteCounts::hit_bytes},
    {"misses", &RemoteCounts::misses},   {"damaged", &RemoteCounts::damaged},
    {"uploads", &RemoteCounts::uploads}, {"upload_bytes", &RemoteCounts::upload_bytes},
    {"left", &RemoteCounts::left},
};

std::filesystem::path file_of(const toolchain::ObjectCache& cache) {
  return cache.folder() / "remote.totals";
}

} // namespace

// Lines of a word and a number; what is no such line counts nothing.
RemoteCounts read_remote_totals(const toolchain::ObjectCache& cache) {
  RemoteCounts out;
  std::ifstream file(file_of(cache));
  std::string word;
  for (uint64_t number = 0; file >> word >> number;)
    for (const CountRow& row : kRows)
      if (word == row.word) out.*row.count = number;
  return out;
}

void add_remote_totals(const toolchain::ObjectCache& cache, const RemoteCounts& counts) {
  const toolchain::CacheLock lock = cache.lock(sha256("remote.totals"));
  const RemoteCounts known = read_remote_totals(cache);
  std::string text, error;
  for (const CountRow& row : kRows)
    text += std::string(row.word) + " " +
            std::to_string(known.*row.count + counts.*row.count) + "\n";
  std::optional<OutputFile> file = OutputFile::create(file_of(cache).string(), error);
  if (file && file->write(text, error)) (void)file->commit(error);
}

void clear_remote_totals(const toolchain::ObjectCache& cache) {
  std::error_code error;
  std::filesystem::remove(file_of(cache), error);
}

} // namespace svod::packager
