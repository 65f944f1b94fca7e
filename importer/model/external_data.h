// Tensor data in files beside the model. The names of these files come from the model, so
// they are hostile: only a regular file with one link, reached from the model's folder
// without leaving it and without a symbolic link, is opened. Faults throw ReadFailure.
#pragma once

#include "importer/model/limits.h"
#include "importer/model/mapped_file.h"
#include "importer/model/wire.h"

#include <map>

namespace svod::importer {

// The entries of TensorProto.external_data.
struct ExternalEntry {
  std::string location;
  int64_t offset = 0;
  std::optional<int64_t> length;
};

// Reads one key and its value into `entry`; a key that the specification does not have
// throws.
void read_external_key(std::string_view key, std::string_view value,
                       ExternalEntry& entry);

class ExternalData {
public:
  // `folder` is the model's; empty: external data is refused.
  ExternalData(std::string folder, const Limits& limits)
      : folder_(std::move(folder)), limits_(limits) {}
  // `size` bytes of the file; the tensor's type and shape say how many they are.
  MappedFile bytes(const ExternalEntry& entry, int64_t size);
  // Of all files that were opened, sorted.
  std::vector<std::string> locations() const;

private:
  const MappedFile& file(const std::string& location);
  std::string folder_;
  const Limits& limits_;
  int64_t total_ = 0;
  std::map<std::string, MappedFile> files_;
};

} // namespace svod::importer
