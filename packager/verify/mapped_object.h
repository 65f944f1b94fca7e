// A linked shared object as code in this process, without the dynamic linker: a static
// program has none. What is linked here asks for nothing but to lie somewhere, so mapping
// its segments and adding the address to its pointers is all.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <link.h>

namespace svod::packager {

class MappedObject {
public:
  // On failure error says why, and nothing is found in it. The file may be removed once
  // this is made.
  MappedObject(const std::string& path, std::string& error);
  ~MappedObject();
  MappedObject(MappedObject&& other) noexcept;
  MappedObject& operator=(MappedObject&&) = delete;

  // The address of an exported symbol; null: there is none of that name.
  void* find(const char* name) const;

private:
  bool map(int file);
  void protect();

  std::vector<ElfW(Phdr)> segments_;
  std::byte* reserved_ = nullptr; // the address space that was taken, of reserved_bytes_
  size_t reserved_bytes_ = 0;
  std::byte* base_ =
      nullptr; // what address 0 of the object became; null: nothing is mapped
  const std::byte* dynamic_ = nullptr;
};

} // namespace svod::packager
