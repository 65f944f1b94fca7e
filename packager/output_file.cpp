// Temporary files are registered in a fixed table that a signal handler can walk: it may
// call unlink, kill and _exit, and nothing that allocates.
#include "packager/output_file.h"

#include "compiler/support/check.h"
#include "compiler/support/diags.h"

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace svod::packager {

namespace {

constexpr size_t kMostFiles = 12;
constexpr size_t kMostPath = 4096;

struct Registered {
  std::atomic<bool> used;
  char path[kMostPath];
};
Registered registered[kMostFiles];
constexpr size_t kMostFolders = 2;
Registered folders[kMostFolders];
std::atomic<int> interrupt_child;
std::atomic<bool> interrupt_held, interrupt_came;

void remember(const std::string& path) {
  for (Registered& file : registered) {
    if (file.used) continue;
    std::memcpy(file.path, path.c_str(), path.size() + 1);
    file.used = true;
    return;
  }
  SVOD_CHECK(false) << "too many output files";
}

void forget(const std::string& path) {
  for (Registered& file : registered) {
    if (file.used && path == file.path) file.used = false;
  }
}

// A handler may not call what reads folders, for that allocates; the kernel is asked.
// Names are relative to the folder.
void remove_folder(const char* path) {
  const int folder = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  alignas(8) char buffer[4096];
  for (long size; (size = syscall(SYS_getdents64, folder, buffer, sizeof(buffer))) > 0;)
    for (long at = 0; at < size;) {
      constexpr int kLength = 16, kName = 19; // of linux_dirent64
      uint16_t length = 0;
      std::memcpy(&length, buffer + at + kLength, sizeof(length));
      unlinkat(folder, buffer + at + kName, 0);
      at += length;
    }
  close(folder);
  rmdir(path);
}

void remove_files() {
  for (Registered& file : registered) {
    if (file.used) unlink(file.path);
  }
  if (int child = interrupt_child; child > 0) kill(child, SIGKILL);
  for (size_t i = kMostFolders; i-- > 0;)
    if (folders[i].used) remove_folder(folders[i].path);
}

void on_interrupt(int number) {
  if (number == SIGINT && interrupt_held.exchange(false)) {
    interrupt_came = true;
    if (int child = interrupt_child; child > 0) kill(child, SIGKILL);
    return;
  }
  remove_files();
  _exit(static_cast<int>(Exit::Interrupted));
}

// A crash is a bug of ours; the user still gets a word, an exit code and no rests.
void on_crash(int) {
  constexpr char kWords[] = "svod-pack: error: this is a bug in svod-pack: it crashed\n";
  remove_files();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(static_cast<int>(Exit::Bug));
}

// What is mapped ended before its end: a file became shorter meanwhile. Nobody can go on
// from there.
void on_short_file(int) {
  constexpr char kWords[] = "svod-pack: error: a file became shorter while it was read; "
                            "run it again when nobody writes it\n";
  remove_files();
  [[maybe_unused]] ssize_t written = write(STDERR_FILENO, kWords, sizeof(kWords) - 1);
  _exit(static_cast<int>(Exit::File));
}

std::string reason() { return std::strerror(errno); }

} // namespace

void install_signal_handlers() {
  struct sigaction action{};
  action.sa_handler = on_interrupt;
  action.sa_flags = SA_RESTART; // one that is held must not end a compile's reading
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  // A stack that overflowed cannot run a handler; it gets another one.
  static char stack[1 << 16];
  stack_t other{};
  other.ss_sp = stack;
  other.ss_size = sizeof(stack);
  sigaltstack(&other, nullptr);
  action.sa_handler = on_crash;
  action.sa_flags = SA_ONSTACK;
  for (int number : {SIGSEGV, SIGFPE, SIGILL, SIGABRT}) {
    sigaction(number, &action, nullptr);
  }
  action.sa_handler = on_short_file;
  sigaction(SIGBUS, &action, nullptr);
  // A limit on the size of files is a failed write, as a full disk is.
  action.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &action, nullptr);
}

void remember_folder(const std::string& path) {
  for (Registered& folder : folders) {
    if (folder.used || path.size() >= kMostPath) continue;
    std::memcpy(folder.path, path.c_str(), path.size() + 1);
    folder.used = true;
    return;
  }
}

void forget_folders() {
  for (Registered& folder : folders) folder.used = false;
}

HeldInterrupt::HeldInterrupt() {
  interrupt_came = false;
  interrupt_held = true;
}

HeldInterrupt::~HeldInterrupt() { interrupt_held = false; }

bool HeldInterrupt::came() const { return interrupt_came; }

void set_interrupt_child(int pid) { interrupt_child = pid; }

std::optional<OutputFile> OutputFile::create(const std::string& path,
                                             std::string& error) {
  struct stat found{};
  if (stat(path.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
    error = S_ISDIR(found.st_mode) ? "is a folder" : "is not a regular file";
    return std::nullopt;
  }
  size_t name = path.find_last_of('/') + 1;
  std::string temporary = path.substr(0, name) + "." + path.substr(name) + "." +
                          std::to_string(getpid()) + ".tmp";
  if (temporary.size() >= kMostPath) {
    error = "the name is too long";
    return std::nullopt;
  }
  // First, so that no interrupt finds a file that it does not know.
  remember(temporary);
  int file = open(temporary.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) {
    error = reason();
    forget(temporary);
    return std::nullopt;
  }
  close(file);
  return OutputFile(path, temporary);
}

OutputFile::OutputFile(OutputFile&& other) noexcept
    : path_(std::move(other.path_)), temporary_(std::exchange(other.temporary_, {})) {}

OutputFile::~OutputFile() {
  if (temporary_.empty()) return;
  unlink(temporary_.c_str());
  forget(temporary_);
}

bool OutputFile::write(std::string_view text, std::string& error) {
  int file = open(temporary_.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC);
  while (file >= 0 && !text.empty()) {
    ssize_t written = ::write(file, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    text.remove_prefix(static_cast<size_t>(written));
  }
  bool done = file >= 0 && text.empty();
  if (!done) error = reason();
  if (file >= 0) close(file);
  return done;
}

std::string OutputFile::room_fault(uint64_t bytes) const {
  const int file = open(temporary_.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0666);
  if (file < 0) return reason();
  const int failure = posix_fallocate(file, 0, static_cast<off_t>(bytes));
  close(file);
  return failure == ENOSPC || failure == EFBIG || failure == EDQUOT
             ? std::strerror(failure)
             : "";
}

bool OutputFile::commit(std::string& error) {
  if (rename(temporary_.c_str(), path_.c_str()) != 0) {
    error = reason();
    return false;
  }
  forget(temporary_);
  temporary_.clear();
  return true;
}

} // namespace svod::packager
