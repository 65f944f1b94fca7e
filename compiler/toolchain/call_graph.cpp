// With a section per function every call, and every taking of an address, is a relocation
// in the caller's section, so the graph is read off the objects without decoding a single
// instruction. Whoever takes a function's address counts as calling it: that is no chain
// too few, but for calls through pointers that came from elsewhere, which add_call tells.
//
// A chain of frames is a bound, not what a run takes: a call in tail position reuses the
// caller's frame and is counted as if it did not.
#include "compiler/toolchain/call_graph.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"

#include <llvm/Object/ELFObjectFile.h>
#include <llvm/Support/LEB128.h>

#include <algorithm>

namespace svod::toolchain {

namespace {

// What functions of the compiler's own library take, which is the user's and not here:
// those of 32-bit values, and those of 64-bit ones. Measured on all that libgcc 12 has
// for a Cortex-M0+, where they take most.
constexpr uint64_t kNarrow = 32, kWide = 96;

// By their names in the ABI of Arm, then those of other architectures.
uint64_t of_compiler_library(std::string_view name) {
  if (!name.starts_with("__")) return 0;
  const auto holds = [&](std::string_view part, size_t from = 0) {
    return name.find(part, from) != std::string_view::npos;
  };
  constexpr std::string_view kArm = "__aeabi_";
  if (!name.starts_with(kArm)) {
    constexpr size_t kBehindDivision = 4; // "__divsi3" divides 32 bits
    return holds("df") || holds("di", kBehindDivision) ? kWide : kNarrow;
  }
  const std::string_view rest = name.substr(kArm.size());
  const bool wide = rest.starts_with('d') || rest.starts_with('l') ||
                    rest.starts_with("ul") || holds("2d") || holds("2l") || holds("2ul");
  return wide ? kWide : kNarrow;
}

constexpr uint64_t kUnknown = UINT64_MAX, kOpen = UINT64_MAX - 1;

} // namespace

// One object, whose sections become nodes.
struct CallGraph::Reading {
  CallGraph& graph;
  std::map<uint64_t, size_t> nodes; // by the section's number

  size_t node_of(const llvm::object::SectionRef& section) {
    const auto [at, added] = nodes.try_emplace(section.getIndex(), graph.nodes_.size());
    if (added) graph.nodes_.emplace_back();
    return at->second;
  }

  void read_symbols(const llvm::object::ELFObjectFileBase& file) {
    for (const llvm::object::ELFSymbolRef symbol : file.symbols()) {
      const auto section = llvm::cantFail(symbol.getSection());
      if (section == file.section_end()) continue;
      std::string name = llvm::cantFail(symbol.getName()).str();
      if (name.empty()) continue;
      const size_t node = node_of(*section);
      graph.nodes_[node].names.push_back(name);
      if (symbol.getBinding() != llvm::ELF::STB_LOCAL)
        graph.symbols_.emplace(std::move(name), node);
    }
  }

  // Pairs of an address, which a relocation fills in, and a frame.
  void read_frames(const llvm::object::ELFObjectFileBase& file,
                   const llvm::object::SectionRef& section,
                   const llvm::object::SectionRef& relocations) {
    const llvm::StringRef content = llvm::cantFail(section.getContents());
    for (const llvm::object::RelocationRef& relocation : relocations.relocations()) {
      const auto symbol = relocation.getSymbol();
      if (symbol == file.symbol_end()) continue;
      const auto of = llvm::cantFail(symbol->getSection());
      if (of == file.section_end()) continue;
      const uint64_t at = relocation.getOffset() + file.getBytesInAddress();
      if (at >= content.size()) continue;
      graph.nodes_[node_of(*of)].frame +=
          graph.call_ +
          llvm::decodeULEB128(content.bytes_begin() + at, nullptr, content.bytes_end());
    }
  }

  void read_calls(const llvm::object::ELFObjectFileBase& file,
                  const llvm::object::SectionRef& section,
                  const llvm::object::SectionRef& relocations) {
    const size_t from = node_of(section);
    for (const llvm::object::RelocationRef& relocation : relocations.relocations()) {
      const auto symbol = relocation.getSymbol();
      if (symbol == file.symbol_end()) continue;
      const auto to = llvm::cantFail(symbol->getSection());
      if (to == file.section_end()) {
        graph.nodes_[from].outer.push_back(llvm::cantFail(symbol->getName()).str());
        continue;
      }
      const size_t callee = node_of(*to);
      graph.nodes_[from].callees.push_back(callee);
    }
  }
};

void CallGraph::add(std::span<const std::byte> object) {
  const llvm::StringRef bytes = text_of(object);
  auto file = llvm::object::ObjectFile::createELFObjectFile({bytes, "object"});
  SVOD_CHECK(static_cast<bool>(file)) << "an object of ours is no ELF file";
  const auto& elf = llvm::cast<llvm::object::ELFObjectFileBase>(**file);
  // What a function that calls none may use below its frame, by the ABI. A call of x86
  // pushes its return address, and frames keep the stack aligned; elsewhere the address
  // is a register that the frame has a place for.
  constexpr uint64_t kRedZone = 128, kReturn = 16;
  const bool wide = elf.getArch() == llvm::Triple::x86_64;
  if (wide) red_zone_ = kRedZone;
  if (wide || elf.getArch() == llvm::Triple::x86) call_ = kReturn;
  Reading reading{*this, {}};
  reading.read_symbols(elf);
  for (const llvm::object::SectionRef& relocations : elf.sections()) {
    const auto section = llvm::cantFail(relocations.getRelocatedSection());
    if (section == elf.section_end()) continue;
    if (llvm::cantFail(section->getName()) == ".stack_sizes")
      reading.read_frames(elf, *section, relocations);
    else if (llvm::object::ELFSectionRef(*section).getFlags() & llvm::ELF::SHF_ALLOC)
      reading.read_calls(elf, *section, relocations);
  }
}

void CallGraph::define(const std::string& symbol, uint64_t bytes) {
  symbols_[symbol] = nodes_.size();
  nodes_.push_back({bytes, {}, {symbol}, {}});
}

bool CallGraph::add_call(std::string_view caller, const std::string& callee) {
  bool found = false;
  for (Node& node : nodes_) {
    const bool named = std::ranges::any_of(node.names, [&](const std::string& name) {
      return name.find(caller) != std::string::npos;
    });
    if (named) node.outer.push_back(callee);
    found |= named;
  }
  return found;
}

// A chain that comes back to where it was would be a function that calls itself, which
// ours do not, or a switch whose table lies beside it.
uint64_t CallGraph::depth(size_t node, std::vector<uint64_t>& known) const {
  if (known[node] == kOpen) return 0;
  if (known[node] != kUnknown) return known[node];
  known[node] = kOpen;
  uint64_t below = 0;
  for (const size_t callee : nodes_[node].callees)
    below = std::max(below, depth(callee, known));
  for (const std::string& name : nodes_[node].outer) {
    const auto at = symbols_.find(name);
    below = std::max(below, at != symbols_.end() ? depth(at->second, known)
                                                 : of_compiler_library(name));
  }
  return known[node] = nodes_[node].frame + below;
}

uint64_t CallGraph::deepest(const std::string& symbol) const {
  const auto at = symbols_.find(symbol);
  if (at == symbols_.end()) return 0;
  std::vector<uint64_t> known(nodes_.size(), kUnknown);
  return depth(at->second, known) + red_zone_;
}

} // namespace svod::toolchain
