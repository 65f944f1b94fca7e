// A whole file mapped read-only. The mapping lives as long as the shared pointer.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace svod::importer {

struct MappedFile {
  std::string_view bytes;
  std::shared_ptr<const void> owner;
};

// Maps an open regular file of `size` bytes. False: errno says why.
[[nodiscard]] bool map_file(int descriptor, size_t size, MappedFile& out);

// The bytes of the regular file at `path`; none when it cannot be read.
std::optional<MappedFile> map_path(const std::string& path);

// Fails for bytes that a checkout without Git LFS has in a large file's place; `what`
// names the file.
void refuse_lfs_pointer(std::string_view bytes, const std::string& what);

// Gives back the memory of the whole pages within `bytes` when `owner` is a mapped
// file's; they are read from the file again when used again.
void release_pages(std::string_view bytes, const std::shared_ptr<const void>& owner);

// Closes a descriptor when the scope ends.
class Descriptor {
public:
  explicit Descriptor(int number) : number_(number) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : number_(other.number_) { other.number_ = -1; }
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor();
  int get() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

private:
  int number_;
};

} // namespace svod::importer
