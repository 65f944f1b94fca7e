// Adds up sections of an object by what the loader does with them. A WebAssembly module's
// data is all of one kind.
#include "compiler/toolchain/object_facts.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"

#include <llvm/Object/ELFObjectFile.h>

namespace svod::toolchain {

ObjectFacts object_facts(std::span<const std::byte> object) {
  const llvm::StringRef bytes = text_of(object);
  auto file = llvm::object::ObjectFile::createObjectFile({bytes, "object"});
  SVOD_CHECK(static_cast<bool>(file)) << llvm::toString(file.takeError());
  ObjectFacts facts;
  for (const llvm::object::SectionRef& section : (*file)->sections()) {
    if ((*file)->isWasm()) {
      if (section.isText()) facts.code_bytes += section.getSize();
      if (section.isData()) facts.constant_bytes += section.getSize();
      continue;
    }
    llvm::object::ELFSectionRef elf(section);
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
