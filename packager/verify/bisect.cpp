// The kernels run in a child process: one that is wrong may crash. The child says which
// one it is at in memory that both share, and leaves its messages in a file there for
// --json.
#include "packager/verify/bisect.h"

#include "packager/output_file.h"
#include "packager/verify/compare.h"
#include "packager/verify/read_inputs.h"
#include "packager/verify/run_calls.h"
#include "packager/verify/test_data.h"
#include "packager/verify/walk.h"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <exception>
#include <iostream>
#include <span>

#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

namespace svod::packager {

namespace {

// A line of text that this process reads and a child of it writes.
class SharedLine {
public:
  SharedLine()
      : text_(static_cast<char*>(mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                                      MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~SharedLine() {
    if (good()) munmap(text_, kBytes);
  }
  SharedLine(const SharedLine&) = delete;
  SharedLine& operator=(const SharedLine&) = delete;
  bool good() const { return text_ != MAP_FAILED; }
  void write(const std::string& line) {
    const size_t size = std::min(line.size(), kBytes - 1);
    std::memcpy(text_, line.data(), size);
    text_[size] = 0;
  }
  std::string read() const { return text_; }

private:
  static constexpr size_t kBytes = 4096;
  char* text_;
};

// A text that a child process leaves to this one.
class SharedText {
public:
  SharedText() : file_(memfd_create("text", MFD_CLOEXEC)) {}
  ~SharedText() {
    if (file_ >= 0) close(file_);
  }
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;
  void write(const std::string& text) const {
    // What does not fit is missing in the report, as a whole.
    if (::write(file_, text.data(), text.size()) != std::ssize(text))
      (void)!ftruncate(file_, 0);
  }
  std::string read() const {
    std::string text;
    char part[4096];
    for (ssize_t size; (size = pread(file_, part, sizeof part, off_t(text.size()))) > 0;)
      text.append(part, static_cast<size_t>(size));
    return text;
  }

private:
  int file_;
};

std::string text_of(std::span<const Diagnostic> messages) {
  std::string text;
  for (const Diagnostic& one : messages)
    text += static_cast<char>(one.severity) + one.message + '\0';
  return text;
}

std::vector<Diagnostic> messages_in(const std::string& text) {
  std::vector<Diagnostic> out;
  for (size_t at = 0, end; (end = text.find('\0', at + 1)) != std::string::npos;
       at = end + 1)
    out.push_back({static_cast<Severity>(text[at]),
                   Exit::Done,
                   {},
                   text.substr(at + 1, end - at - 1)});
  return out;
}

std::string list_of(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += (out.empty() ? "'" : ", '") + escaped(name) + "'";
  return out.empty() ? "none" : out;
}

// The user's own command, which prints something instead of verifying.
std::string next_command(const Options& options, const std::string& emit,
                         const std::string& begin, const std::string& name) {
  std::string out = "svod-pack";
  for (const std::string& word : options.words) {
    const bool plain = word.find_first_of(" '\"$&|;<>()*?#\\") == std::string::npos;
    out += plain ? " " + word : " '" + word + "'";
  }
  return out + " --emit=" + emit + " | awk '/^" + begin + "/{p=$2==\"" + name + "\"} p'";
}

class Bisection {
public:
  Bisection(const BisectTask& task, const Console& console)
      : task_(task), console_(console), calls_(calls_run_by()) {}
  Exit run();

private:
  Exit read();
  Exit walk_in_child();
  [[noreturn]] void be_child();
  Exit walk();
  void report(const Fault& fault) const;
  void look_at_graphs() const;
  std::string level() const {
    return task_.options.target.levels[static_cast<size_t>(code_->level())].suffix;
  }

  const BisectTask& task_;
  const Console& console_;
  const CallRunner calls_;
  std::string place_; // of the inputs
  std::vector<Tensor> inputs_;
  std::unique_ptr<LoadedKernels> code_;
  SharedLine line_;
  SharedText messages_, accuracy_;
  size_t said_before_ = 0; // the child began
};

Exit Bisection::read() {
  if (task_.data.name == "random") {
    place_ = "random inputs";
    inputs_ = random_inputs(task_.front.graph, task_.front.interface);
    return Exit::Done;
  }
  const std::string folder = first_set(task_.data.name);
  place_ = "the inputs of " + folder;
  std::string error;
  std::optional<std::vector<Tensor>> read =
      read_inputs(folder, task_.front, task_.options.import.limits, error);
  if (!read) {
    console_.error("--bisect: " + error);
    return Exit::File;
  }
  inputs_ = std::move(*read);
  return Exit::Done;
}

void Bisection::report(const Fault& fault) const {
  const std::string number = "k" + std::to_string(fault.program);
  std::string text = "kernel " + fault.kernel + " (CPU level " + level() + ") differs " +
                     "from the evaluator, on " + place_ + "\n";
  text += "  ONNX nodes: " + list_of(fault.nodes) + "\n";
  for (const std::string& fact : fault.facts) text += "  " + fact + "\n";
  text += "  its text:     " +
          next_command(task_.options, "cpp", "\\/\\/ k[0-9]+_", number + "_" + level()) +
          "\n";
  text += "  its schedule: " + next_command(task_.options, "schedule", "kernel ", number);
  console_.error(text);
}

// No kernel is wrong, but the answer is: was the graph already, that kernels were made
// from?
void Bisection::look_at_graphs() const {
  const Evaluated imported = evaluate(task_.front.graph, inputs_, calls_);
  const Evaluated fused = evaluate(task_.fused.graph, inputs_, calls_);
  if (imported.failed != kNoNode || fused.failed != kNoNode) return;
  for (size_t i = 0; i < imported.outputs.size(); ++i) {
    const std::vector<int64_t> wrong =
        distant_elements(imported.outputs[i], fused.outputs[i]);
    if (wrong.empty()) continue;
    console_.error("the graph as it was imported and what passes made of it differ, both "
                   "evaluated: output '" +
                   escaped(task_.front.graph.outputs()[i].name) + "', " +
                   difference_text(imported.outputs[i], fused.outputs[i], wrong) +
                   "\n  --accuracy exact leaves out passes that round otherwise");
    return;
  }
  if (task_.data.name == "random") { // the evaluator made the data
    console_.error("the graph as it was imported, evaluated, differs from the program "
                   "by less than a bisection calls a difference: a matter of rounding");
    return;
  }
  console_.error("the graph as it was imported, evaluated, gives what the program gives: "
                 "operators are understood otherwise than by who made the data, or the "
                 "data are rounded otherwise");
}

Exit Bisection::walk() {
  RunMemory memory(code_->plan(), inputs_, code_->weights());
  std::optional<Judge> judge;
  if (task_.accuracy) judge = Judge::of(task_.fused, inputs_);
  Walk::Stored stored;
  if (judge) stored = [&](const StoredValue& value) { judge->look_at(value); };
  Walk walk(
      *code_, task_.fused, memory, calls_,
      [&](const std::string& kernel, const std::vector<std::string>& nodes) {
        line_.write(kernel + ", ONNX nodes " + list_of(nodes));
      },
      std::move(stored));
  const std::optional<Fault> fault = walk.run();
  if (judge) accuracy_.write(judge->json());
  if (fault) {
    report(*fault);
    return Exit::VerifyMismatch;
  }
  const WalkCounts& counts = walk.counts();
  if (counts.stopped)
    console_.note("the data ended the run at " + line_.read() +
                  ": an index out of range, or a loop over its limit");
  std::string text = "no kernel differs from the evaluator, on " + place_ + ": " +
                     std::to_string(counts.kernels) + " launches, CPU level " + level();
  if (counts.skipped != 0)
    text += "; " + std::to_string(counts.skipped) + " could not be compared";
  console_.remark(text);
  if (task_.wrong_answer) look_at_graphs();
  return Exit::Done;
}

// What runs in the child. Files of the parent are not its own: no handler and no
// destructor may remove them.
[[noreturn]] void Bisection::be_child() {
  for (int number : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
    std::signal(number, SIG_DFL);
  Exit status = Exit::Bug;
  try {
    status = walk();
  } catch (const std::exception& error) {
    console_.error("--bisect: at " + line_.read() + ": " + error.what());
  }
  messages_.write(text_of(std::span(console_.said()).subspan(said_before_)));
  std::cerr.flush();
  _exit(static_cast<int>(status));
}

Exit Bisection::walk_in_child() {
  console_.rest(); // a child has no clock, and must not find its lock held
  std::cout.flush(), std::cerr.flush();
  said_before_ = console_.said().size();
  const pid_t child = line_.good() ? fork() : -1;
  if (child < 0) {
    console_.error("--bisect: no process can be made");
    return Exit::File;
  }
  if (child == 0) be_child();
  set_interrupt_child(child);
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  set_interrupt_child(0);
  for (const Diagnostic& one : messages_in(messages_.read())) console_.keep(one);
  if (task_.accuracy) *task_.accuracy = accuracy_.read();
  if (WIFEXITED(status)) return static_cast<Exit>(WEXITSTATUS(status));
  console_.error("signal " + std::to_string(WTERMSIG(status)) + " ended kernel " +
                 line_.read());
  return Exit::VerifyMismatch;
}

Exit Bisection::run() {
  if (const Exit status = read(); status != Exit::Done) return status;
  std::string error;
  code_ = LoadedKernels::load(task_.options.target, task_.kernels, task_.build,
                              task_.contents, error);
  if (!code_) {
    console_.error("--bisect: the kernels could not be loaded\n" + error);
    return Exit::Toolchain;
  }
  if (code_->level() < 0) {
    console_.error("--bisect: this CPU has none of the levels that were packed");
    return Exit::Usage;
  }
  console_.progress("bisecting " + task_.options.model_name());
  return walk_in_child();
}

} // namespace

Exit bisect(const BisectTask& task, const Console& console) {
  return Bisection(task, console).run();
}

} // namespace svod::packager
