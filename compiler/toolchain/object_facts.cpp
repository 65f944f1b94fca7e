// Reads sections of an ELF object. .stack_sizes holds one pair per function: its address,
// which relocation fills in later, and its frame as ULEB128. The sum over all functions
// bounds every call path through an object without recursion; ours have none.
#include "compiler/toolchain/object_facts.h"

#include "compiler/support/check.h"

#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/LEB128.h>

namespace svod::toolchain {

static uint64_t stack_of_section(llvm::StringRef content, unsigned address_bytes) {
  // A call pushes its return address; saved registers beyond the frame are counted with
  // it.
  constexpr uint64_t kCall = 16;
  uint64_t total = 0;
  const uint8_t* at = content.bytes_begin();
  const uint8_t* end = content.bytes_end();
  while (static_cast<size_t>(end - at) > address_bytes) {
    at += address_bytes;
    unsigned length = 0;
    total += llvm::decodeULEB128(at, &length, end) + kCall;
    at += length;
  }
  return total;
}

ObjectFacts object_facts(std::span<const std::byte> object) {
  llvm::StringRef bytes(reinterpret_cast<const char*>(object.data()), object.size());
  auto file = llvm::object::ObjectFile::createELFObjectFile({bytes, "object"});
  SVOD_CHECK(static_cast<bool>(file)) << llvm::toString(file.takeError());
  ObjectFacts facts;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    llvm::object::ELFSectionRef elf(section);
    llvm::StringRef name = llvm::cantFail(section.getName());
    if (name == ".stack_sizes") {
      facts.stack_bytes += stack_of_section(llvm::cantFail(section.getContents()),
                                            (*file)->getBytesInAddress());
    }
    if (!(elf.getFlags() & llvm::ELF::SHF_ALLOC)) continue;
    bool code = elf.getFlags() & llvm::ELF::SHF_EXECINSTR;
    bool writable = elf.getFlags() & llvm::ELF::SHF_WRITE;
    (code       ? facts.code_bytes
     : writable ? facts.writable_bytes
                : facts.constant_bytes) += section.getSize();
  }
  return facts;
}

} // namespace svod::toolchain
