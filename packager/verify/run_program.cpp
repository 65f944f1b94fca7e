// An interrupt ends the child and removes the folder, so both are remembered.
#include "packager/verify/run_program.h"

#include "packager/output_file.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <optional>
#include <random>

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace svod::packager {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// Milliseconds that are left, as poll takes them.
static int left_until(std::optional<Clock::time_point> end) {
  if (!end) return -1;
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(*end - Clock::now());
  return static_cast<int>(std::max<int64_t>(0, left.count()));
}

// Until the pipe is closed, or nothing more comes at `end`: then `child` is ended.
static std::string read_all(int pipe, pid_t child, std::optional<Clock::time_point> end) {
  std::string out;
  char buffer[4096];
  for (;;) {
    pollfd ready{pipe, POLLIN, 0};
    const int found = poll(&ready, 1, left_until(end));
    if (found < 0 && errno == EINTR) continue;
    if (found == 0) {
      kill(child, SIGKILL);
      return out;
    }
    const ssize_t got = read(pipe, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(buffer, static_cast<size_t>(got));
  }
}

Ran run_program(const std::vector<std::string>& words, const std::string& place,
                double limit) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) return {};
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
  if (!place.empty()) posix_spawn_file_actions_addchdir_np(&actions, place.c_str());
  pid_t child = 0;
  int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  Ran ran;
  if (failed == 0) {
    set_interrupt_child(child);
    std::optional<Clock::time_point> end;
    if (limit > 0)
      end = Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               std::chrono::duration<double>(limit));
    ran.said = read_all(ends[0], child, end);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    set_interrupt_child(0);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  close(ends[0]);
  return ran;
}

TemporaryFolder::TemporaryFolder() {
  std::error_code error;
  const fs::path place = fs::temp_directory_path(error);
  if (error) return;
  std::random_device random;
  const std::string path = (place / ("svod-verify-" + std::to_string(random()) + "-" +
                                     std::to_string(random())))
                               .string();
  remember_folder(path);
  if (mkdir(path.c_str(), 0700) == 0) path_ = path;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code error;
  if (!path_.empty()) fs::remove_all(path_, error);
  forget_folders();
}

} // namespace svod::packager
