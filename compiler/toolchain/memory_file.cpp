// memfd_create: pages come and go with the object, no name in any folder, so a killed
// pack leaves nothing behind. Large data is written through, never mapped here: it counts
// once.
#include "compiler/toolchain/memory_file.h"

#include "compiler/support/check.h"

#include <cerrno>
#include <cstring>
#include <utility>

#include <sys/mman.h>
#include <unistd.h>

namespace svod {

MemoryFile::MemoryFile(const std::string& name)
    : descriptor_(memfd_create(name.c_str(), MFD_CLOEXEC)) {
  SVOD_CHECK(descriptor_ >= 0) << "memfd_create: " << std::strerror(errno);
}

MemoryFile::~MemoryFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

MemoryFile::MemoryFile(MemoryFile&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

MemoryFile& MemoryFile::operator=(MemoryFile&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  return *this;
}

void MemoryFile::append(std::span<const std::byte> data) { write_at(size_, data); }

void MemoryFile::write_at(uint64_t offset, std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t put =
        pwrite(descriptor_, data.data(), data.size(), static_cast<off_t>(offset));
    SVOD_CHECK(put > 0) << "memfd write: " << std::strerror(errno);
    data = data.subspan(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
    size_ = std::max(size_, offset);
  }
}

std::string MemoryFile::path() const {
  return "/proc/self/fd/" + std::to_string(descriptor_);
}

} // namespace svod
