// A file without a name in any folder that has a path while it is open, so that the
// linker can read it. It lives in memory (memfd), beyond a size on disk.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace svod::toolchain {

class MemoryFile {
public:
  explicit MemoryFile(const std::string& name,
                      uint64_t most_in_memory = uint64_t{1} << 30);
  ~MemoryFile();
  MemoryFile(MemoryFile&& other) noexcept;
  MemoryFile& operator=(MemoryFile&& other) noexcept;

  void append(std::span<const std::byte> data);
  void write_at(uint64_t offset, std::span<const std::byte> data);
  uint64_t size() const { return size_; }
  std::string path() const; // valid in this process while the object lives
  int descriptor() const { return descriptor_; }

private:
  bool move_to(int file);
  void move_to_disk();

  int descriptor_ = -1;
  uint64_t size_ = 0;
  uint64_t most_in_memory_;
  bool is_on_disk_ = false;
};

} // namespace svod::toolchain
