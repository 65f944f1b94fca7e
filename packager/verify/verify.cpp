// The program checks itself: `infer --verify DIR` compares its outputs with a test data
// set and exits with 7. For --verify=random the set is made here: inputs from a fixed
// sequence, outputs from the evaluator, which knows nothing of kernels.
#include "packager/verify/verify.h"

#include "compiler/ir/evaluate.h"
#include "packager/output_file.h"
#include "packager/verify/run_calls.h"
#include "packager/verify/test_data.h"
#include "packager/verify/verify_report.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <random>
#include <sstream>

#include <fcntl.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace svod::packager {

namespace {

namespace fs = std::filesystem;

constexpr int kBadData =
    1; // the packed program's exit code where data is not what it takes

// What a program did.
struct Ran {
  int code = -1; // -1: it could not be started, or a signal ended it
  std::string said;
};

std::string read_all(int pipe) {
  std::string out;
  char buffer[4096];
  for (;;) {
    const ssize_t got = read(pipe, buffer, sizeof(buffer));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return out;
    out.append(buffer, static_cast<size_t>(got));
  }
}

// Runs in `place`, where that is given. What the program prints on stdout is in `said`.
Ran run(const std::vector<std::string>& words, const std::string& place) {
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
    ran.said = read_all(ends[0]);
    int status = 0;
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    set_interrupt_child(0);
    ran.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }
  close(ends[0]);
  return ran;
}

void print(const std::string& said, const Console& console) {
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) console.print_line(line);
}

// A folder that is removed with all it holds.
class TemporaryFolder {
public:
  // An interrupt must know the folder before it is there, so the name comes first.
  TemporaryFolder() {
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
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
    forget_folders();
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  const std::string& path() const { return path_; }

private:
  std::string path_;
};

// Data that cannot be compared with (no outputs, other shapes, a file that is only a
// pointer to its contents) fails a pack only where somebody asked for it.
bool cannot_compare(int code) {
  return code == kBadData || code == static_cast<int>(Exit::File);
}

// What to run, and with which data.
struct Verification {
  std::vector<std::string> program;
  std::string place; // where it runs; empty: here
  std::string folder;
  bool asked = false;
};

Exit run_verify(const Verification& task, const Console& console, std::string& report) {
  std::vector<std::string> words = task.program;
  words.insert(words.end(), {"--verify", task.folder});
  const Ran ran = run(words, task.place);
  const int code = ran.code;
  const auto finish = [&](Exit exit) {
    report = verify_json(task.folder, ran.said, exit);
    return exit;
  };
  if (!console.quiet() || (code != 0 && (task.asked || !cannot_compare(code))))
    print(ran.said, console); // with -q what is wrong is said all the same
  if (code == 0) return finish(Exit::Done);
  if (!task.asked && cannot_compare(code)) {
    console.note("not verified, since the test data beside the model cannot be used; say "
                 "--verify " +
                 task.folder + " to insist, or --verify random");
    return Exit::Done;
  }
  if (code == static_cast<int>(Exit::VerifyMismatch)) {
    console.error("the packed program does not give the answers of " + task.folder);
    return finish(Exit::VerifyMismatch);
  }
  console.error("the packed program could not be verified with " + task.folder +
                (code < 0 ? ": it did not end by itself"
                          : ": it ended with code " + std::to_string(code)));
  // A data set that cannot be read is the user's; a crash is ours.
  return finish(code < 0 ? Exit::Bug : Exit::VerifyMismatch);
}

} // namespace

VerifyChoice verify_choice(const Options& options) {
  if (options.verify == "off") return {};
  if (!options.verify.empty()) return {options.verify, true};
  std::error_code error;
  fs::path folder = fs::path(options.model).parent_path();
  if (folder.empty()) folder = ".";
  if (fs::is_directory(folder / "test_data_set_0", error))
    return {folder.string(), false};
  return {};
}

bool runs_here(const Target& target) {
  return target.kind == TargetKind::Linux && target.triple == default_target().triple;
}

static bool calls_in_bodies(const Graph& graph) {
  const auto calls = [](const Graph& body) {
    return std::ranges::any_of(body.live_nodes(),
                               [&](NodeId id) { return body[id].op == Op::Call; });
  };
  return std::ranges::any_of(graph.live_nodes(), [&](NodeId id) {
    const Node& node = graph[id];
    for (size_t b = 0; b < body_count(node.op); ++b) {
      const Graph& body = *graph.body(static_cast<uint32_t>(node.payload[b]));
      if (calls(body) || calls_in_bodies(body)) return true;
    }
    return false;
  });
}

Exit verify_program(const std::vector<std::string>& program, const VerifyChoice& choice,
                    const Front& front, const Console& console, std::string& report) {
  if (choice.name != "random")
    return run_verify({program, "", choice.name, choice.asked}, console, report);
  if (calls_in_bodies(front.graph)) {
    console.error(
        "--verify=random: the evaluator cannot run C++ (custom operators, image "
        "decoders, NonMaxSuppression) inside a loop or a branch of the run; "
        "verify with a folder of test data");
    return Exit::Usage;
  }
  TemporaryFolder folder;
  std::string error = folder.path().empty() ? "cannot be made" : "";
  // The program says which data it compares with, and this folder is gone when the user
  // reads that: so it runs where the data is called what the user called it.
  const std::string data = folder.path() + "/" + choice.name;
  remember_folder(data);
  std::error_code made;
  if (error.empty() && !fs::create_directory(data, made)) error = made.message();
  if (error.empty())
    error = write_random_data(front.graph, front.interface, data, calls_run_by());
  if (!error.empty()) {
    console.error("--verify=random: " + error);
    return Exit::File;
  }
  std::vector<std::string> words = program;
  words[0] = fs::absolute(words[0]).string();
  if (words.size() > 2) words.back() = fs::absolute(words.back()).string();
  return run_verify({words, folder.path(), choice.name, true}, console, report);
}

} // namespace svod::packager
