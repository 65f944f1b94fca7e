// Reads program headers and the dynamic section through LLVM's object library, for both
// word sizes. A program that still asks for relocations would start with wrong pointers,
// as nobody is there to apply them; so that count is a promise too.
#include "compiler/toolchain/inspect.h"

#include "compiler/support/bytes.h"

#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>

#include <algorithm>

namespace svod::toolchain {

using namespace llvm::object;
namespace elf = llvm::ELF;

template <class T>
static void read_segments(const ELFFile<T>& file, ProgramFacts& facts) {
  auto headers = file.program_headers();
  if (!headers) return llvm::consumeError(headers.takeError());
  for (const auto& header : *headers) {
    const bool writable = header.p_flags & elf::PF_W;
    const bool executable = header.p_flags & elf::PF_X;
    if (header.p_type == elf::PT_GNU_RELRO) facts.relro = true;
    if (header.p_type == elf::PT_INTERP) facts.interpreter = true;
    if (header.p_type == elf::PT_GNU_STACK) facts.stack_not_executable = !executable;
    if (header.p_type == elf::PT_LOAD && writable && executable)
      facts.writable_code = true;
  }
}

template <class T> static void read_dynamic(const ELFFile<T>& file, ProgramFacts& facts) {
  auto entries = file.dynamicEntries();
  if (!entries) return llvm::consumeError(entries.takeError());
  uint64_t bytes = 0, one = 1;
  for (const auto& entry : *entries) {
    const uint64_t value = entry.getVal();
    if (entry.getTag() == elf::DT_NEEDED) ++facts.needed_libraries;
    if (entry.getTag() == elf::DT_FLAGS)
      facts.bind_now |= (value & elf::DF_BIND_NOW) != 0;
    if (entry.getTag() == elf::DT_FLAGS_1) facts.bind_now |= (value & elf::DF_1_NOW) != 0;
    if (entry.getTag() == elf::DT_RELASZ || entry.getTag() == elf::DT_RELSZ)
      bytes = value;
    if (entry.getTag() == elf::DT_RELAENT || entry.getTag() == elf::DT_RELENT)
      one = value;
    if (entry.getTag() == elf::DT_PLTRELSZ && value != 0) ++facts.relocations;
  }
  facts.relocations += bytes / std::max<uint64_t>(one, 1);
}

template <class T> static ProgramFacts facts_of(const ELFFile<T>& file) {
  ProgramFacts facts;
  facts.position_independent = file.getHeader().e_type == elf::ET_DYN;
  read_segments(file, facts);
  read_dynamic(file, facts);
  return facts;
}

std::optional<ProgramFacts> inspect_program(const std::string& path) {
  auto buffer = llvm::MemoryBuffer::getFile(path, false, false);
  if (!buffer) return std::nullopt;
  auto object = ObjectFile::createELFObjectFile((*buffer)->getMemBufferRef());
  if (!object) {
    llvm::consumeError(object.takeError());
    return std::nullopt;
  }
  if (const auto* wide = llvm::dyn_cast<ELF64LEObjectFile>(object->get()))
    return facts_of(wide->getELFFile());
  if (const auto* narrow = llvm::dyn_cast<ELF32LEObjectFile>(object->get()))
    return facts_of(narrow->getELFFile());
  return std::nullopt;
}

std::string broken_promise(const ProgramFacts& facts) {
  if (!facts.position_independent) return "it is not position independent";
  if (!facts.relro) return "it has no RELRO segment";
  if (!facts.bind_now) return "it binds lazily";
  if (!facts.stack_not_executable) return "its stack is executable";
  if (facts.writable_code) return "it has memory that is writable and executable";
  if (facts.interpreter || facts.needed_libraries != 0)
    return "it needs a dynamic loader";
  if (facts.relocations != 0)
    return "it needs " + std::to_string(facts.relocations) + " relocations at start";
  return "";
}

// Not a section, a file, a mapping mark of ARM or a label inside a function of RISC-V.
static bool is_named(const ELFSymbolRef& symbol, llvm::StringRef name) {
  const uint8_t type = symbol.getELFType();
  return !name.empty() && !name.starts_with("$") && !name.starts_with(".L") &&
         type != elf::STT_SECTION && type != elf::STT_FILE;
}

std::vector<SymbolFact> symbols_of(std::span<const std::byte> object) {
  std::vector<SymbolFact> out;
  const llvm::StringRef text = text_of(object);
  auto file = ObjectFile::createELFObjectFile(llvm::MemoryBufferRef(text, "object"));
  if (!file) {
    llvm::consumeError(file.takeError());
    return out;
  }
  for (const ELFSymbolRef symbol : llvm::cast<ELFObjectFileBase>(**file).symbols()) {
    auto name = symbol.getName();
    auto flags = symbol.getFlags();
    if (!name || !flags) {
      llvm::consumeError(name.takeError());
      llvm::consumeError(flags.takeError());
      continue;
    }
    if (!is_named(symbol, *name)) continue;
    const bool defined = !(*flags & BasicSymbolRef::SF_Undefined);
    out.push_back({name->str(), defined, symbol.getBinding() != elf::STB_LOCAL});
  }
  std::ranges::sort(out);
  return out;
}

} // namespace svod::toolchain
