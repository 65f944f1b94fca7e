// A function's name has the digest of its code, of the places that relocations change,
// and of what they name. So two models in one program share a function when a compiler
// made the same of it, and are apart when their targets or preludes differ.
#include "compiler/toolchain/link_once.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/support/digest.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/Object/ELFObjectFile.h>

namespace svod::toolchain {

namespace {

using llvm::cantFail;
using llvm::object::ObjectFile;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;

// "call_tanh_f32" of "kernel::call_tanh_f32(float)".
std::string plain_name(const std::string& symbol) {
  std::string name = llvm::demangle(symbol);
  name = name.substr(0, name.find('('));
  const size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

// What a relocation leads to: a name that others see, or bytes of this object.
std::string target_of(const llvm::object::RelocationRef& relocation) {
  const llvm::object::symbol_iterator symbol = relocation.getSymbol();
  if (symbol == relocation.getObject()->symbol_end()) return "";
  if ((cantFail(symbol->getFlags()) & SymbolRef::SF_Global) != 0)
    return cantFail(symbol->getName()).str();
  const auto section = cantFail(symbol->getSection());
  if (section == relocation.getObject()->section_end()) return "";
  return cantFail(section->getContents()).str() + '@' +
         std::to_string(cantFail(symbol->getValue()));
}

std::string code_text(const ObjectFile& file, const SectionRef& code) {
  std::string out = cantFail(code.getContents()).str();
  for (const SectionRef& section : file.sections()) {
    if (cantFail(section.getRelocatedSection()) != code) continue;
    for (const llvm::object::RelocationRef& r : section.relocations())
      out += '\n' + std::to_string(r.getOffset()) + ' ' + std::to_string(r.getType()) +
             ' ' + target_of(r);
  }
  return out;
}

} // namespace

std::vector<LinkOnce> link_once_functions(std::span<const std::byte> object) {
  auto file = llvm::object::ObjectFile::createELFObjectFile({text_of(object), "object"});
  SVOD_CHECK(static_cast<bool>(file)) << "an object of ours is no ELF file";
  std::vector<LinkOnce> out;
  for (const SymbolRef& symbol : (*file)->symbols()) {
    const uint32_t flags = cantFail(symbol.getFlags());
    const bool weak = (flags & SymbolRef::SF_Weak) != 0;
    if (!weak || (flags & SymbolRef::SF_Undefined) != 0 ||
        cantFail(symbol.getType()) != SymbolRef::ST_Function)
      continue;
    const std::string name = cantFail(symbol.getName()).str();
    const SectionRef code = *cantFail(symbol.getSection());
    const std::string digest = sha256(code_text(**file, code)).hex().substr(0, 16);
    out.push_back({name, "svod_" + plain_name(name) + "_" + digest, code.getSize()});
  }
  return out;
}

} // namespace svod::toolchain
