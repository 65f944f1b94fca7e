// mmap and munmap behind a shared pointer.
#include "importer/model/mapped_file.h"

#include "importer/model/wire.h"

#include <cstdint>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

namespace svod::importer {

namespace {

// A type of its own, so that a mapping can be told from other owners.
struct Unmap {
  size_t size;
  void operator()(const void* data) const { munmap(const_cast<void*>(data), size); }
};

} // namespace

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

bool map_file(int descriptor, size_t size, MappedFile& out) {
  out = {};
  if (size == 0) return true; // an empty mapping is not allowed
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return false;
  out.owner = std::shared_ptr<const void>(data, Unmap{size});
  out.bytes = {static_cast<const char*>(data), size};
  return true;
}

std::optional<MappedFile> map_path(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat found{};
  MappedFile out;
  bool mapped = file && fstat(file.get(), &found) == 0 && S_ISREG(found.st_mode) &&
                map_file(file.get(), static_cast<size_t>(found.st_size), out);
  if (!mapped) return std::nullopt;
  return out;
}

void refuse_lfs_pointer(std::string_view bytes, const std::string& what) {
  if (!bytes.starts_with("version https://git-lfs.github.com/spec/")) return;
  throw ReadFailure{Exit::File,
                    what + " is a pointer of Git LFS and not the data itself; fetch it "
                           "with 'git lfs pull'",
                    false};
}

void release_pages(std::string_view bytes, const std::shared_ptr<const void>& owner) {
  if (!std::get_deleter<Unmap>(owner)) return;
  auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  auto address = reinterpret_cast<uintptr_t>(bytes.data());
  uintptr_t begin = (address + page - 1) / page * page;
  uintptr_t end = (address + bytes.size()) / page * page;
  // Advice: nothing is lost when it is not taken.
  if (begin < end) {
    (void)madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
  }
}

} // namespace svod::importer
