// A file that appears whole or not at all: it is written beside its final name and
// renamed over it by commit(). Without commit, or when the user interrupts, nothing
// remains and an older file is untouched.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace svod::packager {

class OutputFile {
public:
  // Why `path` cannot be written, in `error`, else a temporary file beside it.
  static std::optional<OutputFile> create(const std::string& path, std::string& error);
  ~OutputFile();
  OutputFile(OutputFile&& other) noexcept;
  OutputFile& operator=(OutputFile&&) = delete;

  const std::string& temporary() const { return temporary_; }
  [[nodiscard]] bool write(std::string_view text, std::string& error);
  // Why so many bytes cannot be in it, as on a full disk; empty: they can.
  std::string room_fault(uint64_t bytes) const;
  [[nodiscard]] bool commit(std::string& error);

private:
  OutputFile(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}
  std::string path_;
  std::string temporary_; // empty: nothing to remove
};

// On SIGINT and SIGTERM: removes all temporary files, ends the child, exits with 130. On
// a crash the same with exit 5.
void install_signal_handlers();
// A temporary folder: an interrupt removes it with the files in it, the last one named
// first. Two at most.
void remember_folder(const std::string& path);
void forget_folders();
// While it lives the first SIGINT ends the child alone and is remembered, so that what
// was found until then can be kept; the second one does what all others do.
class HeldInterrupt {
public:
  HeldInterrupt();
  ~HeldInterrupt();
  HeldInterrupt(const HeldInterrupt&) = delete;
  HeldInterrupt& operator=(const HeldInterrupt&) = delete;
  bool came() const;
};
// The child that an interrupt ends as well; 0: none.
void set_interrupt_child(int pid);

} // namespace svod::packager
