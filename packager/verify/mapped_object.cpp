// LLD wrote the file a moment ago from objects that Clang made in this process, so what
// it says is trusted; what is checked is that it asks for nothing that is not done here.
// Relocations are all in writable segments, since the link forbids others, and all are of
// the one kind that adds the base.
#include "packager/verify/mapped_object.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

namespace svod::packager {

namespace {

using Header = ElfW(Ehdr);
using Segment = ElfW(Phdr);
using Symbol = ElfW(Sym);
using Address = ElfW(Addr);

#if defined(__x86_64__)
constexpr uint32_t kAddBase = R_X86_64_RELATIVE;
#elif defined(__aarch64__)
constexpr uint32_t kAddBase = R_AARCH64_RELATIVE;
#elif defined(__riscv)
constexpr uint32_t kAddBase = R_RISCV_RELATIVE;
#endif

Address page() {
  static const auto bytes = static_cast<Address>(sysconf(_SC_PAGESIZE));
  return bytes;
}
Address page_below(Address address) { return address & ~(page() - 1); }
Address page_above(Address address) { return page_below(address + page() - 1); }

int protection(const Segment& segment) {
  return ((segment.p_flags & PF_R) != 0 ? PROT_READ : 0) |
         ((segment.p_flags & PF_W) != 0 ? PROT_WRITE : 0) |
         ((segment.p_flags & PF_X) != 0 ? PROT_EXEC : 0);
}

std::vector<Segment> read_segments(int file) {
  Header header{};
  if (pread(file, &header, sizeof header, 0) != sizeof header) return {};
  std::vector<Segment> out(header.e_phnum);
  const auto bytes = static_cast<ssize_t>(out.size() * sizeof(Segment));
  if (pread(file, out.data(), out.size() * sizeof(Segment),
            static_cast<off_t>(header.e_phoff)) != bytes)
    return {};
  return out;
}

// The part of a segment that the file holds, then zeros up to its size in memory.
bool map_segment(int file, const Segment& segment, std::byte* base) {
  const Address begin = page_below(segment.p_vaddr);
  const Address held = segment.p_vaddr + segment.p_filesz;
  const Address end = segment.p_vaddr + segment.p_memsz;
  const int flags = MAP_PRIVATE | MAP_FIXED;
  if (segment.p_filesz != 0 &&
      mmap(base + begin, held - begin, protection(segment), flags, file,
           static_cast<off_t>(page_below(segment.p_offset))) == MAP_FAILED)
    return false;
  const Address zeros = segment.p_filesz != 0 ? page_above(held) : begin;
  if (zeros < end && mmap(base + zeros, end - zeros, protection(segment),
                          flags | MAP_ANONYMOUS, -1, 0) == MAP_FAILED)
    return false;
  if (end > held && zeros > held && (segment.p_flags & PF_W) != 0)
    std::memset(base + held, 0, zeros - held);
  return true;
}

// The value of a row of the dynamic section; 0: it has no such row.
Address dynamic_value(const std::byte* dynamic, int64_t tag) {
  for (const auto* row = reinterpret_cast<const ElfW(Dyn)*>(dynamic);
       row->d_tag != DT_NULL; ++row) {
    if (row->d_tag == tag) return row->d_un.d_val;
  }
  return 0;
}

// False where something is asked for that only a dynamic linker or a C library does.
bool relocate(std::byte* base, const std::byte* dynamic) {
  for (int64_t other : {DT_NEEDED, DT_JMPREL, DT_REL, DT_INIT, DT_INIT_ARRAY})
    if (dynamic_value(dynamic, other) != 0) return false;
  const auto* rows =
      reinterpret_cast<const ElfW(Rela)*>(base + dynamic_value(dynamic, DT_RELA));
  const size_t count = dynamic_value(dynamic, DT_RELASZ) / sizeof *rows;
  for (size_t i = 0; i < count; ++i) {
    if (rows[i].r_info != kAddBase) return false;
    const Address value =
        reinterpret_cast<Address>(base) + static_cast<Address>(rows[i].r_addend);
    std::memcpy(base + rows[i].r_offset, &value, sizeof value);
  }
  return true;
}

uint32_t hash_of(const char* name) {
  uint32_t hash = 5381;
  for (; *name != 0; ++name) hash = hash * 33 + static_cast<unsigned char>(*name);
  return hash;
}

} // namespace

MappedObject::MappedObject(const std::string& path, std::string& error) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0 || !map(file)) {
    error = path + " cannot be mapped: " + std::strerror(errno);
    base_ = nullptr;
  } else if (!relocate(base_, dynamic_)) {
    error = path + " asks for what only a dynamic linker does";
    base_ = nullptr;
  } else {
    protect();
  }
  if (file >= 0) close(file);
}

bool MappedObject::map(int file) {
  segments_ = read_segments(file);
  Address end = 0;
  Address align = page();
  for (const Segment& segment : segments_) {
    if (segment.p_type != PT_LOAD) continue;
    end = std::max(end, page_above(segment.p_vaddr + segment.p_memsz));
    align = std::max<Address>(align, segment.p_align);
  }
  errno = ENOEXEC; // what is said of a file without segments
  if (end == 0) return false;
  void* const taken =
      mmap(nullptr, end + align, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (taken == MAP_FAILED) return false;
  reserved_ = static_cast<std::byte*>(taken);
  reserved_bytes_ = end + align;
  base_ = reserved_ + (align - reinterpret_cast<Address>(taken) % align) % align;
  for (const Segment& segment : segments_) {
    if (segment.p_type == PT_LOAD && !map_segment(file, segment, base_)) return false;
    if (segment.p_type == PT_DYNAMIC) dynamic_ = base_ + segment.p_vaddr;
  }
  return dynamic_ != nullptr;
}

// What only relocations write is read-only from here on, as in the packed program.
void MappedObject::protect() {
  for (const Segment& segment : segments_) {
    if (segment.p_type != PT_GNU_RELRO) continue;
    const Address begin = page_below(segment.p_vaddr);
    const Address end = page_below(segment.p_vaddr + segment.p_memsz);
    SVOD_CHECK(mprotect(base_ + begin, end - begin, PROT_READ) == 0)
        << std::strerror(errno);
  }
}

MappedObject::~MappedObject() {
  if (reserved_ != nullptr) munmap(reserved_, reserved_bytes_);
}

MappedObject::MappedObject(MappedObject&& other) noexcept
    : segments_(std::move(other.segments_)),
      reserved_(std::exchange(other.reserved_, nullptr)),
      reserved_bytes_(other.reserved_bytes_), base_(std::exchange(other.base_, nullptr)),
      dynamic_(other.dynamic_) {}

// The table of GNU's hash style: a head, a filter that is passed over here, buckets with
// the first symbol of each hash, and for each symbol its hash with a last bit that ends
// its bucket.
void* MappedObject::find(const char* name) const {
  if (base_ == nullptr) return nullptr;
  const auto* const symbols =
      reinterpret_cast<const Symbol*>(base_ + dynamic_value(dynamic_, DT_SYMTAB));
  const auto* const names =
      reinterpret_cast<const char*>(base_ + dynamic_value(dynamic_, DT_STRTAB));
  const auto* const head =
      reinterpret_cast<const uint32_t*>(base_ + dynamic_value(dynamic_, DT_GNU_HASH));
  const uint32_t bucket_count = head[0];
  const uint32_t first_symbol = head[1];
  const uint32_t* const buckets = head + 4 + head[2] * (sizeof(Address) / sizeof *head);
  const uint32_t* const hashes = buckets + bucket_count;
  const uint32_t hash = hash_of(name);
  uint32_t at = bucket_count == 0 ? 0 : buckets[hash % bucket_count];
  if (at < first_symbol || at == 0) return nullptr;
  for (;; ++at) {
    const uint32_t here = hashes[at - first_symbol];
    if ((here | 1) == (hash | 1) && std::strcmp(names + symbols[at].st_name, name) == 0)
      return base_ + symbols[at].st_value;
    if ((here & 1) != 0) return nullptr;
  }
}

} // namespace svod::packager
