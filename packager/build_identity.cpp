// The linker writes a digest of the program into a note, which is mapped with it: no file
// is read. dl_iterate_phdr() names the program first.
#include "packager/build_identity.h"

#include <cstring>
#include <span>

#include <elf.h>
#include <link.h>

namespace svod::packager {

// Of a segment of notes: name and contents of each are padded to words.
static std::string id_in(std::span<const char> notes) {
  constexpr auto padded = [](size_t size) { return (size + 3) / 4 * 4; };
  while (notes.size() >= sizeof(ElfW(Nhdr))) {
    ElfW(Nhdr) note;
    std::memcpy(&note, notes.data(), sizeof note);
    const size_t name = sizeof note, id = name + padded(note.n_namesz);
    const size_t end = id + padded(note.n_descsz);
    if (end > notes.size()) return "";
    const bool is_gnu =
        note.n_namesz == sizeof ELF_NOTE_GNU &&
        std::memcmp(notes.data() + name, ELF_NOTE_GNU, sizeof ELF_NOTE_GNU) == 0;
    if (is_gnu && note.n_type == NT_GNU_BUILD_ID)
      return {notes.data() + id, note.n_descsz};
    notes = notes.subspan(end);
  }
  return "";
}

std::string build_identity() {
  std::string out;
  const auto look = [](dl_phdr_info* program, size_t, void* to) {
    for (size_t i = 0; i < program->dlpi_phnum; i++) {
      const ElfW(Phdr)& segment = program->dlpi_phdr[i];
      if (segment.p_type != PT_NOTE) continue;
      const auto* at =
          reinterpret_cast<const char*>(program->dlpi_addr + segment.p_vaddr);
      std::string& id = *static_cast<std::string*>(to);
      if (id.empty()) id = id_in({at, segment.p_memsz});
    }
    return 1; // the first one is all
  };
  dl_iterate_phdr(look, &out);
  return out;
}

} // namespace svod::packager
