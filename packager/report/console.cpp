// Colour follows the habit of compilers: on a terminal unless NO_COLOR or TERM=dumb says
// no, always with --color=always or CLICOLOR_FORCE.
#include "packager/report/console.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <sstream>

#include <sys/ioctl.h>
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

void Console::say(const std::string& line) const {
  const std::lock_guard lock(mutex_);
  if (in_progress_) std::cerr << "\r\033[K";
  in_progress_ = false;
  std::cerr << line << "\n";
}

void Console::print(const Diags& diags, const std::string& file) const {
  said_.insert(said_.end(), diags.all().begin(), diags.all().end());
  std::istringstream lines(diags.text(file));
  for (std::string line; std::getline(lines, line);) {
    bool minor = line.find("warning: ") != std::string::npos ||
                 line.find("note: ") != std::string::npos;
    if (!quiet_ || !minor || diags.failed()) say(painted(line));
  }
}

void Console::error(const std::string& message) const {
  said_.push_back({Severity::Error, Exit::Done, {}, message});
  say(painted("svod-pack: error: " + message));
}

void Console::warning(const std::string& message) const {
  said_.push_back({Severity::Warning, Exit::Done, {}, message});
  if (!quiet_) say(painted("svod-pack: warning: " + message));
}

void Console::note(const std::string& message) const {
  said_.push_back({Severity::Note, Exit::Done, {}, message});
  if (!quiet_) say(painted("note: " + message));
}

void Console::remark(const std::string& message) const {
  if (!quiet_) say(message);
}

void Console::verbose(const std::string& message) const {
  if (verbose_) remark(message);
}

// On a terminal the line is cut at its width: a second line would not be written over.
void Console::show_progress(const std::string& line) const {
  const std::lock_guard lock(mutex_);
  if (!terminal_ || verbose_) {
    std::cerr << "svod-pack: " + line + "\n";
    return;
  }
  winsize window{};
  size_t width = 80;
  if (ioctl(STDERR_FILENO, TIOCGWINSZ, &window) == 0 && window.ws_col > 1)
    width = window.ws_col;
  std::cerr << "\r\033[K" + line.substr(0, width - 1) << std::flush;
  in_progress_ = true;
}

void Console::progress(const std::string& message) const {
  if (quiet_) return;
  constexpr std::chrono::milliseconds kOnTerminal{200}, kInLog{10000};
  const bool live = terminal_ && !verbose_;
  if (!progress_)
    progress_ = std::make_unique<Progress>(
        live, live ? kOnTerminal : kInLog,
        [this](const std::string& line) { show_progress(line); });
  progress_->stage(message);
}

void Console::kernel_done(const std::string& name, double ms, bool compiled, size_t done,
                          size_t all) const {
  if (progress_) progress_->kernel(name, ms, compiled, done, all);
  const std::string how =
      compiled ? std::to_string(std::lround(ms)) + " ms" : "from the cache";
  verbose("compiled " + std::to_string(done) + " of " + std::to_string(all) + ", " +
          name + ": " + how);
}

Exit Console::print_out(std::string_view text) const {
  if (progress_) progress_->end();
  if (const std::lock_guard lock(mutex_); in_progress_)
    std::cerr << "\r\033[K" << std::flush;
  in_progress_ = false;
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
