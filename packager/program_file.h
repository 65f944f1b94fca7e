// The file of a packed program: read where it lies, or written front to back.
#pragma once

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
  void write(std::span<const std::byte> bytes);
  // Over what is written already.
  void write_at(uint64_t offset, std::span<const std::byte> bytes);
  // Who may read it may run it.
  void make_program();
  bool good() const { return good_; }

private:
  int file_;
  bool good_;
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
