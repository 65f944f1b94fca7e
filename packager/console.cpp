// Colour follows the habit of compilers: on a terminal unless NO_COLOR or TERM=dumb says
// no, always with --color=always or CLICOLOR_FORCE.
#include "packager/console.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include <unistd.h>

namespace svod::packager {

static bool wants_color(Color choice, bool terminal) {
  if (choice != Color::Auto) return choice == Color::Always;
  auto set = [](const char* name) {
    const char* value = std::getenv(name);
    return value && *value && std::string(value) != "0";
  };
  if (set("NO_COLOR")) return false;
  if (set("CLICOLOR_FORCE")) return true;
  const char* term = std::getenv("TERM");
  return terminal && term && std::string(term) != "dumb";
}

Console::Console(const Options& options)
    : terminal_(isatty(STDERR_FILENO) != 0), quiet_(options.quiet),
      verbose_(options.verbose) {
  color_ = wants_color(options.color, terminal_);
}

std::string Console::painted(const std::string& text) const {
  if (!color_) return text;
  struct Paint {
    const char* word;
    const char* code;
  };
  constexpr Paint kPaints[] = {
      {"error: ", "\033[1;31m"}, {"warning: ", "\033[1;35m"}, {"note: ", "\033[1;36m"}};
  std::string out = text;
  for (const Paint& paint : kPaints) {
    size_t at = out.find(paint.word);
    if (at == std::string::npos) continue;
    size_t length = std::string(paint.word).size();
    return out.insert(at + length, "\033[0m").insert(at, paint.code);
  }
  return out;
}

void Console::clear_progress() const {
  if (in_progress_) std::cerr << "\r\033[K";
  in_progress_ = false;
}

void Console::print(const Diags& diags, const std::string& file) const {
  clear_progress();
  std::istringstream lines(diags.text(file));
  for (std::string line; std::getline(lines, line);) {
    bool minor = line.find("warning: ") != std::string::npos ||
                 line.find("note: ") != std::string::npos;
    if (!quiet_ || !minor || diags.failed()) std::cerr << painted(line) << "\n";
  }
}

void Console::error(const std::string& message) const {
  clear_progress();
  std::cerr << painted("svod-pack: error: " + message) << "\n";
}

void Console::warning(const std::string& message) const {
  if (quiet_) return;
  clear_progress();
  std::cerr << painted("svod-pack: warning: " + message) << "\n";
}

void Console::note(const std::string& message) const {
  if (quiet_) return;
  clear_progress();
  std::cerr << message << "\n";
}

void Console::verbose(const std::string& message) const {
  if (verbose_) note(message);
}

void Console::progress(const std::string& message) const {
  if (!terminal_ || quiet_ || verbose_) return;
  std::cerr << "\r\033[K" << message << std::flush;
  in_progress_ = true;
}

Exit Console::print_out(std::string_view text) const {
  clear_progress();
  std::cout << std::flush;
  while (!text.empty()) {
    const ssize_t written = write(STDOUT_FILENO, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0 && errno == EPIPE) return Exit::Done;
    if (written < 0) {
      error(std::string("stdout cannot be written: ") + std::strerror(errno));
      return Exit::File;
    }
    text.remove_prefix(static_cast<size_t>(written));
  }
  return Exit::Done;
}

} // namespace svod::packager
