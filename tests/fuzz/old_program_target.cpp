// A program whose weights are to be swapped, as swap-weights reads it.
#include "packager/old_program.h"
#include "runtime_stub/checksum.h"
#include "tests/fuzz/target.h"

#include <cstring>

#include <elf.h>

namespace svod::fuzz {

namespace {

using namespace packager;

// As short as a whole program can be, with the image where it may lie and the checksum
// that it has.
std::vector<std::byte> program_around(Bytes bytes) {
  Elf64_Ehdr elf{};
  std::memcpy(elf.e_ident, ELFMAG, SELFMAG);
  elf.e_ident[EI_CLASS] = ELFCLASS64;
  static_assert(sizeof elf <= SVOD_ALIGN);
  std::vector<std::byte> out(SVOD_ALIGN + bytes.size());
  std::memcpy(out.data(), &elf, sizeof elf);
  std::memcpy(&out[SVOD_ALIGN], bytes.data(), bytes.size());
  SvodHeader header;
  std::memcpy(&header, bytes.data(), sizeof header);
  std::memcpy(header.magic, "SVODIMG", sizeof header.magic);
  header.version = SVOD_FORMAT_VERSION;
  header.image_bytes = std::min(header.image_bytes, static_cast<uint32_t>(bytes.size()));
  header.image_checksum = 0;
  if (header.image_bytes >= sizeof header) {
    std::memcpy(&out[SVOD_ALIGN], &header, sizeof header);
    header.image_checksum = svod_checksum(&out[SVOD_ALIGN], header.image_bytes);
  }
  std::memcpy(&out[SVOD_ALIGN], &header, sizeof header);
  return out;
}

std::vector<std::byte> other_image() {
  ImageContents contents;
  contents.entries.emplace_back();
  contents.programs = {"k0"};
  return build_image(contents);
}

} // namespace

// An image, or, where the length is odd, the whole file.
void fuzz_old_program(Bytes bytes) {
  static const std::vector<std::byte> kOther = other_image();
  std::vector<std::byte> file;
  if (bytes.size() % 2 == 0 && bytes.size() >= sizeof(SvodHeader))
    file = program_around(bytes);
  else
    file.assign(std::as_bytes(bytes).begin(), std::as_bytes(bytes).end());
  std::string fault;
  const std::optional<OldProgram> old = old_program_of(file, fault);
  must(old.has_value() == fault.empty(), "a program, or why it is none");
  if (!old) return;
  for (const std::string& word : old->packed.options)
    must(kept(word.starts_with("-O") ? "-O" : word.substr(0, word.find('='))) ==
             Keep::Value,
         "options are those that decide what a program is");
  must(plan_difference(*old, old->image, old->packed).empty(),
       "a program does not differ from itself");
  (void)plan_difference(*old, kOther, old->packed);
}

} // namespace svod::fuzz
