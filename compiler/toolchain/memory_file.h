// A file that lives in memory only (memfd) and has a path while it is open, so that the
// linker can read what never was on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace svod {

class MemoryFile {
public:
  explicit MemoryFile(const std::string& name);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  void append(std::span<const std::byte> data);
  void write_at(uint64_t offset, std::span<const std::byte> data);
  uint64_t size() const { return size_; }
  std::string path() const; // valid in this process while the object lives
  int descriptor() const { return descriptor_; }

private:
  int descriptor_ = -1;
  uint64_t size_ = 0;
};

} // namespace svod
