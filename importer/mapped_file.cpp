// mmap and munmap behind a shared pointer.
#include "importer/mapped_file.h"

#include <sys/mman.h>
#include <unistd.h>

namespace svod {

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

bool map_file(int descriptor, size_t size, MappedFile& out) {
  out = {};
  if (size == 0) return true; // an empty mapping is not allowed
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  if (data == MAP_FAILED) return false;
  out.owner = std::shared_ptr<const void>(
      data, [size](const void* p) { munmap(const_cast<void*>(p), size); });
  out.bytes = {static_cast<const char*>(data), size};
  return true;
}

} // namespace svod
