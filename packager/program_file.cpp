#include "packager/program_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace svod::packager {

FileWriter::FileWriter(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_CLOEXEC)), good_(file_ >= 0) {}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
}

void FileWriter::reserve(uint64_t bytes) {
  if (good_ && bytes > 0) (void)fallocate(file_, 0, 0, static_cast<off_t>(bytes));
}

void FileWriter::write(std::span<const std::byte> bytes) {
  write_at(end_, bytes);
  end_ += bytes.size();
}

void FileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  while (good_ && !bytes.empty()) {
    const ssize_t put =
        pwrite(file_, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (put < 0 && errno == EINTR) continue;
    if (put <= 0) {
      good_ = false;
      return;
    }
    offset += static_cast<uint64_t>(put);
    bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void FileWriter::make_program() {
  struct stat found{};
  good_ = good_ && fstat(file_, &found) == 0 &&
          fchmod(file_, found.st_mode | (found.st_mode & 0444) >> 2) == 0;
}

FileView::FileView(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat found{};
  if (file >= 0 && fstat(file, &found) == 0 && found.st_size > 0) {
    const auto size = static_cast<size_t>(found.st_size);
    void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
    if (data != MAP_FAILED) bytes_ = {static_cast<const std::byte*>(data), size};
  }
  if (file >= 0) close(file);
}

FileView::~FileView() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

} // namespace svod::packager
