// memfd_create: pages come and go with the object, no name in any folder, so a killed
// pack leaves nothing behind. Large data is written through, never mapped here: it counts
// once. What is larger than a gigabyte goes to a file without a name in the folder for
// temporary ones, whose pages the system may write out: a model of 2 GiB took memory
// twice as large as its weights, here and in the linker's output.
#include "compiler/toolchain/memory_file.h"

#include "compiler/support/check.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace svod::toolchain {

MemoryFile::MemoryFile(const std::string& name, uint64_t most_in_memory)
    : descriptor_(memfd_create(name.c_str(), MFD_CLOEXEC)),
      most_in_memory_(most_in_memory) {
  SVOD_CHECK(descriptor_ >= 0) << "memfd_create: " << std::strerror(errno);
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_),
      most_in_memory_(other.most_in_memory_), is_on_disk_(other.is_on_disk_) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(most_in_memory_, other.most_in_memory_);
  std::swap(is_on_disk_, other.is_on_disk_);
  return *this;
}

void MemoryFile::append(std::span<const std::byte> data) { write_at(size_, data); }

// Copies what is there and goes on in `file`; false, and `file` is closed, where that has
// no room.
bool MemoryFile::move_to(int file) {
  std::vector<std::byte> piece(size_t{1} << 20);
  uint64_t done = 0;
  while (done < size_) {
    const auto at = static_cast<off_t>(done);
    const ssize_t got = pread(descriptor_, piece.data(), piece.size(), at);
    if (got <= 0 || pwrite(file, piece.data(), static_cast<size_t>(got), at) != got) {
      close(file);
      return false;
    }
    done += static_cast<uint64_t>(got);
  }
  close(std::exchange(descriptor_, file));
  return true;
}

// Where there is no such file or no room, the bytes stay in memory.
void MemoryFile::move_to_disk() {
  most_in_memory_ = UINT64_MAX;
  std::error_code error;
  const std::string folder = std::filesystem::temp_directory_path(error).string();
  if (error) return;
  const int file = open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  is_on_disk_ = file >= 0 && move_to(file);
}

void MemoryFile::write_at(uint64_t offset, std::span<const std::byte> data) {
  if (offset + data.size() > most_in_memory_) move_to_disk();
  while (!data.empty()) {
    const ssize_t put =
        pwrite(descriptor_, data.data(), data.size(), static_cast<off_t>(offset));
    if (put <= 0 && std::exchange(is_on_disk_, false) &&
        move_to(memfd_create("svod", MFD_CLOEXEC)))
      continue; // the disk is full
    SVOD_CHECK(put > 0) << "write of a file in memory: " << std::strerror(errno);
    data = data.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
    size_ = std::max(size_, offset);
  }
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

} // namespace svod::toolchain
