// The file of a packed program: read where it lies, or written piece by piece.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace svod::packager {

// Writes a file that is there; after a failure nothing more.
class FileWriter {
public:
  explicit FileWriter(const std::string& path);
  ~FileWriter();
  FileWriter(const FileWriter&) = delete;
  FileWriter& operator=(const FileWriter&) = delete;
  // Asks for room on the disk; what the file then has none for, a write tells. ext4
  // writes a file without such room to the disk before it may replace another one, and
  // waits for that: 0.3 s for 657 MB.
  void reserve(uint64_t bytes);
  // Behind what write() has written.
  void write(std::span<const std::byte> bytes);
  // Anywhere, by any thread; what is never written is zero.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  // Who may read it may run it.
  void make_program();
  bool good() const { return good_; }

private:
  int file_;
  uint64_t end_ = 0; // of what write() has written
  std::atomic<bool> good_;
};

// The bytes of a file while the object lives; none where it cannot be mapped.
class FileView {
public:
  explicit FileView(const std::string& path);
  ~FileView();
  FileView(const FileView&) = delete;
  FileView& operator=(const FileView&) = delete;
  std::span<const std::byte> bytes() const { return bytes_; }

private:
  std::span<const std::byte> bytes_;
};

} // namespace svod::packager
