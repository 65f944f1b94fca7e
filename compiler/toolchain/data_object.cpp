// A relocatable ELF file around bytes that arrive in pieces. Clang's #embed needs 8.7 GB
// for 100 MB and a linker's --format=binary puts them into writable .data; an ELF file
// with one section is a header, the bytes, and a table behind them:
//
//   header | pad to `align` | the bytes | symbols | their names | section names |
//   sections
//
// .note.GNU-stack is there (empty) because an object without it makes the whole program's
// stack executable.
#include "compiler/toolchain/data_object.h"

#include "compiler/support/check.h"

#include <elf.h>

#include <cstring>

namespace svod::toolchain {

namespace {

struct Elf64 {
  using Header = Elf64_Ehdr;
  using Section = Elf64_Shdr;
  using Symbol = Elf64_Sym;
  static constexpr unsigned char kClass = ELFCLASS64;
};

struct Elf32 {
  using Header = Elf32_Ehdr;
  using Section = Elf32_Shdr;
  using Symbol = Elf32_Sym;
  static constexpr unsigned char kClass = ELFCLASS32;
};

// SHF_X86_64_LARGE of the x86-64 psABI, which elf.h lacks.
constexpr uint32_t kLarge = 0x10000000;

enum SectionIndex { kNone, kData, kSymbols, kSymbolNames, kNames, kNote, kSectionCount };

template <class T> std::span<const std::byte> bytes_of(const T& value) {
  return std::as_bytes(std::span(&value, 1));
}

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

void pad_to(MemoryFile& file, uint64_t align) {
  const std::vector<std::byte> zeros((align - file.size() % align) % align);
  file.append(zeros);
}

// Adds `name` to a string table and returns where.
uint32_t add_name(std::string& table, const std::string& name) {
  const uint32_t at = static_cast<uint32_t>(table.size());
  table += name;
  table += '\0';
  return at;
}

template <class Elf> typename Elf::Header header_of(const Target& target) {
  typename Elf::Header header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = Elf::kClass;
  header.e_ident[EI_DATA] = ELFDATA2LSB;
  header.e_ident[EI_VERSION] = EV_CURRENT;
  header.e_type = ET_REL;
  header.e_machine = target.elf_machine;
  header.e_version = EV_CURRENT;
  header.e_flags = target.elf_flags;
  header.e_ehsize = sizeof(typename Elf::Header);
  header.e_shentsize = sizeof(typename Elf::Section);
  header.e_shnum = kSectionCount;
  header.e_shstrndx = kNames;
  return header;
}

template <class Elf> class Writer {
public:
  using Section = typename Elf::Section;

  Writer(const Target& target, const DataObject& data)
      : data_(data), header_(header_of<Elf>(target)), file_("svod-data") {}

  MemoryFile write(const std::function<void(const ByteSink&)>& produce) {
    Section& data = begin_data(SHT_PROGBITS);
    produce([&](std::span<const std::byte> piece) { file_.append(piece); });
    end(data);
    return finish();
  }

  MemoryFile write_room(uint64_t bytes) {
    begin_data(SHT_NOBITS).sh_size = bytes;
    return finish();
  }

private:
  Section& begin_data(uint32_t type) {
    file_.append(bytes_of(header_));
    pad_to(file_, data_.align);
    Section& data = begin(kData, data_.section, type, data_.align);
    data.sh_flags = SHF_ALLOC | (data_.large ? kLarge : 0);
    return data;
  }

  MemoryFile finish() {
    write_symbols(sections_[kData].sh_size);
    Section& note = begin(kNote, ".note.GNU-stack", SHT_PROGBITS, 1);
    end(note);
    Section& names = begin(kNames, ".shstrtab", SHT_STRTAB, 1);
    file_.append(bytes_of(names_));
    end(names);
    pad_to(file_, 8);
    header_.e_shoff = file_.size();
    for (const Section& section : sections_) file_.append(bytes_of(section));
    file_.write_at(0, bytes_of(header_));
    return std::move(file_);
  }

  Section& begin(SectionIndex index, const std::string& name, uint32_t type,
                 uint64_t align) {
    pad_to(file_, align);
    Section& section = sections_[index];
    section.sh_name = add_name(names_, name);
    section.sh_type = type;
    section.sh_addralign = align;
    section.sh_offset = file_.size();
    return section;
  }

  void end(Section& section) { section.sh_size = file_.size() - section.sh_offset; }

  void write_symbols(uint64_t data_size) {
    std::string names(1, '\0');
    std::array<typename Elf::Symbol, 3> symbols{};
    for (size_t i : {1, 2}) {
      symbols[i].st_name = add_name(names, data_.symbol + (i == 2 ? "_end" : ""));
      symbols[i].st_info = ELF32_ST_INFO(STB_GLOBAL, STT_OBJECT);
      symbols[i].st_other = STV_HIDDEN;
      symbols[i].st_shndx = kData;
    }
    symbols[1].st_size = data_size;
    symbols[2].st_value = data_size;
    Section& table = begin(kSymbols, ".symtab", SHT_SYMTAB, 8);
    table.sh_link = kSymbolNames;
    table.sh_info = 1; // the first that is not local
    table.sh_entsize = sizeof(typename Elf::Symbol);
    file_.append(std::as_bytes(std::span(symbols)));
    end(table);
    Section& texts = begin(kSymbolNames, ".strtab", SHT_STRTAB, 1);
    file_.append(bytes_of(names));
    end(texts);
  }

  const DataObject& data_;
  typename Elf::Header header_;
  std::array<Section, kSectionCount> sections_{};
  std::string names_ = std::string(1, '\0');
  MemoryFile file_;
};

} // namespace

MemoryFile make_data_object(const Target& target, const DataObject& data,
                            const std::function<void(const ByteSink&)>& produce) {
  if (target.kind == TargetKind::Wasm)
    return make_wasm_data_object(target, data, produce);
  if (target.pointer_bits == 64) return Writer<Elf64>(target, data).write(produce);
  return Writer<Elf32>(target, data).write(produce);
}

MemoryFile make_room_object(const Target& target, const DataObject& data,
                            uint64_t bytes) {
  SVOD_CHECK(target.kind != TargetKind::Wasm) << "a module has no room";
  if (target.pointer_bits == 64) return Writer<Elf64>(target, data).write_room(bytes);
  return Writer<Elf32>(target, data).write_room(bytes);
}

MemoryFile make_data_object(const Target& target, const DataObject& data,
                            std::span<const std::byte> bytes) {
  return make_data_object(target, data, [&](const ByteSink& sink) { sink(bytes); });
}

} // namespace svod::toolchain
