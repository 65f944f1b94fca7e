#include "packager/program_file.h"

#include <cerrno>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace svod::packager {

FileWriter::FileWriter(const std::string& path)
    : file_(open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC)), good_(file_ >= 0) {}

FileWriter::~FileWriter() {
  if (file_ >= 0) close(file_);
}

void FileWriter::write(std::span<const std::byte> bytes) {
  while (good_ && !bytes.empty()) {
    const ssize_t put = ::write(file_, bytes.data(), bytes.size());
    if (put < 0 && errno == EINTR) continue;
    good_ = put > 0;
    if (good_) bytes = bytes.subspan(static_cast<size_t>(put));
  }
}

void FileWriter::write_at(uint64_t offset, std::span<const std::byte> bytes) {
  good_ = good_ && lseek(file_, static_cast<off_t>(offset), SEEK_SET) >= 0;
  write(bytes);
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
