// A function's name has the digest of its code, of the places that relocations change,
// and of what they name. So two models in one program share a function when a compiler
// made the same of it, and are apart when their targets or preludes differ.
#include "compiler/toolchain/link_once.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/support/digest.h"

#include <llvm/Demangle/Demangle.h>
#include <llvm/Object/ELFObjectFile.h>

#include <algorithm>

namespace svod::toolchain {

namespace {

constexpr char kKernel[] = "kernel";

using llvm::cantFail;
using llvm::object::ObjectFile;
using llvm::object::SectionRef;
using llvm::object::SymbolRef;

// "kernel" and "call_tanh_f32" of "kernel::call_tanh_f32(float)". A kernel and a part of
// a sequence may be the same.
std::pair<std::string, std::string> scope_and_name(const std::string& symbol) {
  std::string name = llvm::demangle(symbol), scope;
  name = name.substr(0, name.find('('));
  if (const size_t end = name.rfind("::"); end != std::string::npos) {
    scope = name.substr(0, end);
    name = name.substr(end + 2);
  }
  return {scope, name == "svod_kernel" || name == "body" ? kKernel : name};
}

// What a relocation leads to: a name of another object's, or bytes of this one.
std::string target_of(const llvm::object::RelocationRef& relocation) {
  const llvm::object::symbol_iterator symbol = relocation.getSymbol();
  if (symbol == relocation.getObject()->symbol_end()) return "";
  if ((cantFail(symbol->getFlags()) & SymbolRef::SF_Undefined) != 0)
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

bool is_kernel(const std::string& name) {
  return name.starts_with(std::string("svod_") + kKernel + "_");
}

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
    const auto [scope, plain] = scope_and_name(name);
    std::string all = "svod_" + plain + "_" + digest;
    // A linker that drops the second one of two in one object drops the symbol as well.
    if (const auto same = std::ranges::count(
            out, all, [&](const LinkOnce& f) { return f.name.substr(0, all.size()); });
        same != 0)
      all += "_" + std::to_string(same);
    out.push_back({name, scope, std::move(all), code.getSize()});
  }
  return out;
}

} // namespace svod::toolchain
