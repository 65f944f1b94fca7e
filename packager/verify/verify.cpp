// The program checks itself: `infer --verify DIR` compares its outputs with a test data
// set and exits with 7. For --verify=random the set is made here: inputs from a fixed
// sequence, outputs from the evaluator, which knows nothing of kernels.
#include "packager/verify/verify.h"

#include "compiler/ir/evaluate.h"
#include "packager/output_file.h"
#include "packager/verify/run_calls.h"
#include "packager/verify/run_program.h"
#include "packager/verify/test_data.h"
#include "packager/verify/verify_report.h"

#include <algorithm>
#include <filesystem>
#include <sstream>

namespace svod::packager {

namespace {

namespace fs = std::filesystem;

constexpr int kBadData =
    1; // the packed program's exit code where data is not what it takes

void print(const std::string& said, const Console& console) {
  std::istringstream lines(said);
  for (std::string line; std::getline(lines, line);) console.print_line(line);
}

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
  const Ran ran = run_program(words, task.place);
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

Exit verify_program(const std::vector<std::string>& runner,
                    const std::vector<std::string>& program, const VerifyChoice& choice,
                    const Front& front, const Console& console, std::string& report) {
  std::vector<std::string> words = runner;
  words.insert(words.end(), program.begin(), program.end());
  if (choice.name != "random")
    return run_verify({words, "", choice.name, choice.asked}, console, report);
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
  for (const size_t number : {size_t{0}, runner.size()})
    words[number] = fs::absolute(words[number]).string();
  if (program.size() > 2) words.back() = fs::absolute(words.back()).string();
  return run_verify({words, folder.path(), choice.name, true}, console, report);
}

} // namespace svod::packager
