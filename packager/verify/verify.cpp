// The program checks itself: `infer --verify DIR` compares its outputs with a test data
// set and exits with 7. For --verify=random the set is made here: inputs from a fixed
// sequence, outputs from the evaluator, which knows nothing of kernels.
#include "packager/verify/verify.h"

#include "compiler/ir/evaluate.h"
#include "packager/output_file.h"
#include "packager/verify/run_calls.h"
#include "packager/verify/test_data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

namespace svod::packager {

namespace {

namespace fs = std::filesystem;

constexpr int kBadData =
    1; // the packed program's exit code where data is not what it takes

// Exit code of the program, or -1. What it prints goes to our stderr, or nowhere.
// It runs in `place`, where that is given.
int run(const std::vector<std::string>& words, const std::string& place, bool quiet) {
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  if (quiet) {
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  } else {
    posix_spawn_file_actions_adddup2(&actions, STDERR_FILENO, STDOUT_FILENO);
  }
  if (!place.empty()) posix_spawn_file_actions_addchdir_np(&actions, place.c_str());
  pid_t child = 0;
  int failed = posix_spawn(&child, argv[0], &actions, nullptr, argv.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return -1;
  set_interrupt_child(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  set_interrupt_child(0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

// A folder that is removed with all it holds.
class TemporaryFolder {
public:
  TemporaryFolder() {
    std::error_code error;
    std::string path = (fs::temp_directory_path(error) / "svod-verify-XXXXXX").string();
    if (!error && mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~TemporaryFolder() {
    std::error_code error;
    if (!path_.empty()) fs::remove_all(path_, error);
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

Exit run_verify(const std::vector<std::string>& program, const std::string& place,
                const std::string& folder, bool asked, const Console& console) {
  std::vector<std::string> words = program;
  words.insert(words.end(), {"--verify", folder});
  int code = run(words, place, console.quiet());
  if (code == 0) return Exit::Done;
  if (!asked && cannot_compare(code)) {
    console.note(
        "note: not verified, since the test data beside the model cannot be used; say "
        "--verify " +
        folder + " to insist, or --verify random");
    return Exit::Done;
  }
  if (console.quiet()) run(words, place, false); // what is wrong is said all the same
  if (code == static_cast<int>(Exit::VerifyMismatch)) {
    console.error("the packed program does not give the answers of " + folder);
    return Exit::VerifyMismatch;
  }
  console.error("the packed program could not be verified with " + folder +
                (code < 0 ? ": it did not end by itself"
                          : ": it ended with code " + std::to_string(code)));
  // A data set that cannot be read is the user's; a crash is ours.
  return code < 0 ? Exit::Bug : Exit::VerifyMismatch;
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
                    const Front& front, const Console& console) {
  if (choice.name != "random")
    return run_verify(program, "", choice.name, choice.asked, console);
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
  return run_verify(words, folder.path(), choice.name, true, console);
}

} // namespace svod::packager
