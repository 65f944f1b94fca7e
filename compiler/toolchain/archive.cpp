// Archives by LLVM's writer in its deterministic form, and symbol edits by its objcopy.
// Large members are mapped from their memory file, so a library with 400 MB of weights
// costs no copy.
#include "compiler/toolchain/archive.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"

#include <llvm/ObjCopy/ConfigManager.h>
#include <llvm/ObjCopy/ObjCopy.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Object/ObjectFile.h>
#include <llvm/Support/MemoryBuffer.h>
#include <llvm/Support/raw_ostream.h>

namespace svod::toolchain {

static std::vector<llvm::NewArchiveMember>
llvm_members(std::span<const ArchiveMember> members) {
  std::vector<llvm::NewArchiveMember> out;
  for (const ArchiveMember& member : members) {
    llvm::NewArchiveMember& to = out.emplace_back();
    if (member.file) {
      auto buffer = llvm::MemoryBuffer::getFile(member.file->path(), false, false);
      SVOD_CHECK(buffer) << member.name << ": " << buffer.getError().message();
      to.Buf = std::move(*buffer);
    } else {
      to.Buf =
          llvm::MemoryBuffer::getMemBuffer(text_of(member.bytes), member.name, false);
    }
    to.MemberName = member.name;
  }
  return out;
}

namespace {

// LLVM's stream onto a memory file.
class MemoryStream : public llvm::raw_ostream {
public:
  explicit MemoryStream(MemoryFile& file) : file_(file) { SetBufferSize(1 << 16); }
  ~MemoryStream() override { flush(); }

private:
  void write_impl(const char* data, size_t size) override {
    file_.append(std::as_bytes(std::span(data, size)));
  }
  uint64_t current_pos() const override { return file_.size(); }
  MemoryFile& file_;
};

} // namespace

MemoryFile archive_in_memory(std::span<const ArchiveMember> members) {
  MemoryFile file("svod-objects");
  MemoryStream stream(file);
  llvm::Error error = llvm::writeArchiveToStream(
      stream, llvm_members(members), llvm::SymtabWritingMode::NormalSymtab,
      llvm::object::Archive::K_GNU, true, false);
  SVOD_CHECK(!error) << llvm::toString(std::move(error));
  stream.flush();
  return file;
}

LinkResult write_archive(const std::string& output,
                         std::span<const ArchiveMember> members) {
  llvm::Error error = llvm::writeArchive(output, llvm_members(members),
                                         llvm::SymtabWritingMode::NormalSymtab,
                                         llvm::object::Archive::K_GNU, true, false);
  if (error) return {false, llvm::toString(std::move(error)) + '\n'};
  return {true, ""};
}

static llvm::Error copy_object(std::span<const std::byte> object,
                               const llvm::objcopy::ConfigManager& config,
                               llvm::raw_ostream& to) {
  auto binary = llvm::object::ObjectFile::createObjectFile({text_of(object), "object"});
  if (!binary) return binary.takeError();
  return llvm::objcopy::executeObjcopyOnBinary(config, **binary, to);
}

static ObjectResult copied(const ObjectResult& object,
                           const llvm::objcopy::ConfigManager& config) {
  if (!object.ok) return object;
  llvm::SmallVector<char, 0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  if (llvm::Error error = copy_object(object.object, config, stream))
    return {false, {}, llvm::toString(std::move(error)) + '\n'};
  const auto out = std::as_bytes(std::span(bytes.data(), bytes.size()));
  return {true, {out.begin(), out.end()}, ""};
}

// Global ones, which a copy after this one makes local: it puts them where such belong.
static ObjectResult with_names(const ObjectResult& object,
                               const std::map<std::string, std::string>& names) {
  llvm::objcopy::ConfigManager config;
  for (const auto& [name, section] : names) {
    llvm::objcopy::NewSymbolInfo& symbol = config.Common.SymbolsToAdd.emplace_back();
    symbol.SymbolName = name;
    symbol.SectionName = section;
    symbol.Flags = {llvm::objcopy::SymbolFlag::Global,
                    llvm::objcopy::SymbolFlag::Function};
  }
  return copied(object, config);
}

// The defined symbols that other objects see, as far as they have this flag.
static std::vector<std::string> symbols_with(std::span<const std::byte> object,
                                             uint32_t flag) {
  auto file = llvm::object::ObjectFile::createELFObjectFile({text_of(object), "object"});
  SVOD_CHECK(static_cast<bool>(file)) << "an object of ours is no ELF file";
  std::vector<std::string> out;
  for (const llvm::object::SymbolRef& symbol : (*file)->symbols()) {
    const uint32_t flags = llvm::cantFail(symbol.getFlags());
    const uint32_t seen = llvm::object::SymbolRef::SF_Global | flag;
    if ((flags & seen) == seen && (flags & llvm::object::SymbolRef::SF_Undefined) == 0)
      out.push_back(llvm::cantFail(symbol.getName()).str());
  }
  return out;
}

std::vector<std::string> defined_symbols(std::span<const std::byte> object) {
  return symbols_with(object, 0);
}

std::vector<std::string> weak_symbols(std::span<const std::byte> object) {
  return symbols_with(object, llvm::object::SymbolRef::SF_Weak);
}

ObjectResult localize(std::span<const std::byte> object,
                      std::span<const std::string> keep,
                      const std::map<std::string, std::string>& rename,
                      const std::map<std::string, std::string>& also) {
  SVOD_CHECK(!keep.empty()) << "a library without an entry point";
  llvm::objcopy::ConfigManager config;
  auto pass = [](llvm::Error error) { return error; };
  for (const std::string& name : keep)
    llvm::cantFail(
        config.Common.SymbolsToKeepGlobal.addMatcher(llvm::objcopy::NameOrPattern::create(
            name, llvm::objcopy::MatchStyle::Literal, pass)));
  for (const auto& [from, to] : rename) config.Common.SymbolsToRename[from] = to;
  // Read by object_facts before; a device has no use for it.
  llvm::cantFail(config.Common.ToRemove.addMatcher(llvm::objcopy::NameOrPattern::create(
      ".stack_sizes", llvm::objcopy::MatchStyle::Literal, pass)));
  ObjectResult from{true, {object.begin(), object.end()}, ""};
  if (!also.empty()) from = with_names(from, also);
  return copied(from, config);
}

} // namespace svod::toolchain
