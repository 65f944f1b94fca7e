// Filtering the text of a path has failed again and again elsewhere (`a/../../x`, a
// symbolic link in a parent, a hard link). So the kernel resolves it: openat2 with
// RESOLVE_BENEATH and without links; where that call does not exist, each component is
// opened with O_NOFOLLOW.
#include "importer/model/external_data.h"

#include <cerrno>
#include <charconv>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace svod::importer {

namespace {

constexpr int kOpenFile = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK;
constexpr int kOpenFolder = O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_DIRECTORY;

[[noreturn]] void refuse(const std::string& location, const std::string& why) {
  fail_read("external data file " + quoted(location) + " " + why);
}

int64_t decimal(std::string_view key, std::string_view text) {
  int64_t value = 0;
  const auto [end, error] =
      std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0)
    fail_read("external data: " + std::string(key) + " is no size");
  return value;
}

std::vector<std::string> components(const std::string& location) {
  if (location.empty()) refuse(location, "has no name");
  if (location.find('\0') != std::string::npos)
    refuse(location, "has a zero byte in its name");
  if (location.front() == '/') refuse(location, "is outside the model's folder");
  std::vector<std::string> parts;
  for (size_t start = 0; start <= location.size();) {
    const size_t end = std::min(location.find('/', start), location.size());
    const std::string part = location.substr(start, end - start);
    if (part == "..") refuse(location, "leads out of the model's folder");
    if (!part.empty() && part != ".") parts.push_back(part);
    start = end + 1;
  }
  if (parts.empty()) refuse(location, "has no name");
  return parts;
}

Descriptor open_by_component(int folder, const std::vector<std::string>& parts) {
  Descriptor at(openat(folder, ".", kOpenFolder));
  for (size_t i = 0; i < parts.size() && at; ++i)
    at = Descriptor(openat(at.get(), parts[i].c_str(),
                           i + 1 == parts.size() ? kOpenFile : kOpenFolder));
  return at;
}

Descriptor open_beneath(int folder, const std::string& location) {
  const std::vector<std::string> parts = components(location);
  open_how how{};
  how.flags = kOpenFile;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const long opened = syscall(SYS_openat2, folder, location.c_str(), &how, sizeof how);
  if (opened >= 0) return Descriptor(static_cast<int>(opened));
  // EPERM: sandboxes that filter calls refuse the ones they do not know.
  if (errno != ENOSYS && errno != EPERM) return Descriptor(-1);
  return open_by_component(folder, parts);
}

[[noreturn]] void fail_open(const std::string& location, int error) {
  if (error == ELOOP)
    refuse(location, "is reached through a symbolic link; copy the file instead");
  if (error == EXDEV) refuse(location, "leads out of the model's folder");
  throw ReadFailure{Exit::File,
                    "cannot open external data file " + quoted(location) + ": " +
                        strerror(error),
                    false};
}

} // namespace

void read_external_key(std::string_view key, std::string_view value,
                       ExternalEntry& entry) {
  if (key == "location") {
    entry.location = value;
  } else if (key == "offset") {
    entry.offset = decimal(key, value);
  } else if (key == "length") {
    entry.length = decimal(key, value);
  } else if (key != "checksum") {
    fail_read("external data: unknown key " + quoted(key));
  }
}

const MappedFile& ExternalData::file(const std::string& location) {
  const auto known = files_.find(location);
  if (known != files_.end()) return known->second;
  if (folder_.empty()) refuse(location, "is not allowed here");
  const Descriptor folder(open(folder_.c_str(), O_RDONLY | O_CLOEXEC | O_DIRECTORY));
  if (!folder) fail_open(location, errno);
  const Descriptor data = open_beneath(folder.get(), location);
  if (!data) fail_open(location, errno);
  struct stat status{};
  if (fstat(data.get(), &status) != 0) fail_open(location, errno);
  if (!S_ISREG(status.st_mode)) refuse(location, "is no regular file");
  if (status.st_nlink != 1)
    refuse(location, "has more than one hard link; copy the file instead");
  MappedFile mapped;
  if (!map_file(data.get(), static_cast<size_t>(status.st_size), mapped))
    fail_open(location, errno);
  refuse_lfs_pointer(mapped.bytes, "external data file " + quoted(location));
  return files_.emplace(location, std::move(mapped)).first->second;
}

MappedFile ExternalData::bytes(const ExternalEntry& entry, int64_t size) {
  if (entry.length && *entry.length != size)
    refuse(entry.location, "is said to hold " + std::to_string(*entry.length) +
                               " bytes of the tensor, its shape needs " +
                               std::to_string(size));
  if (__builtin_add_overflow(total_, size, &total_) || total_ > limits_.external_bytes)
    fail_read("external data is larger than the limit of " +
              std::to_string(limits_.external_bytes) + " bytes");
  const MappedFile& whole = file(entry.location);
  const auto available = static_cast<int64_t>(whole.bytes.size());
  if (entry.offset > available || size > available - entry.offset)
    refuse(entry.location, "ends before the tensor: it has " + std::to_string(available) +
                               " bytes, offset " + std::to_string(entry.offset) +
                               " and " + std::to_string(size) + " bytes are asked for");
  return {
      whole.bytes.substr(static_cast<size_t>(entry.offset), static_cast<size_t>(size)),
      whole.owner};
}

std::vector<std::string> ExternalData::locations() const {
  std::vector<std::string> out;
  for (const auto& [location, file] : files_) out.push_back(location);
  return out;
}

} // namespace svod::importer
