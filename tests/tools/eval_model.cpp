// Runs ONNX test cases through the importer and the evaluator, without a compiler:
//     eval_model [--jobs N] [--seconds N] [--bind] [--simplify] [--device NAME]
//                [--double FOLDER] [--results FOLDER] CASE...
// A CASE is a folder with model.onnx and test_data_set_*, or MODEL=DATA where the test
// data lie elsewhere. Each is one process, so that a crash or a hanging case costs only
// itself, and prints one line: pass, wrong, refused, crash or slow, the name, and what
// there is to say.
// --bind: inputs whose values must be known when packing become initializers with the
// test data's values, which tests rules whose shapes depend on them.
// --simplify: evaluates what simplify makes of the graph.
// --double FOLDER: writes what the model gives in double precision for the first data
// set, into FOLDER/NAME/K.f64, one double for each element, and compares nothing.
// --results FOLDER: writes what the graph gives for the first data set as its bytes, into
// FOLDER/NAME/K.raw, and compares nothing.
// --device sm_80: runs its kernels for that GPU, on the executor of tests/support/simt.h.
#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/pipeline.h"
#include "compiler/rewrite/in_double.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/support/check.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "importer/model/read_tensor.h"
#include "tests/support/compare.h"
#include "tests/support/run_kernels.h"

#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>

namespace fs = std::filesystem;
using namespace svod;
using namespace svod::importer;

namespace {

struct Case {
  std::string name;
  fs::path model, data;
};

struct Options {
  int jobs = 2;
  unsigned seconds = 60;
  bool bind = false, simplify = false;
  std::optional<Target> device;
  fs::path doubles, results; // where to; empty: none are asked for
  bool only_writes() const { return !doubles.empty() || !results.empty(); }
  std::vector<Case> cases;
};

struct Verdict {
  std::string word, detail;
};

std::string read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The tensor of a .pb file; nothing when it holds something else.
std::optional<ModelTensor> load_tensor(const fs::path& path, const Limits& limits) {
  const auto text = std::make_shared<std::string>(read_file(path));
  ExternalData external("", limits);
  TensorSource source{limits, external, text};
  try {
    return read_tensor(*text, source);
  } catch (const ReadFailure&) {
    return std::nullopt;
  }
}

// As the node has it whose caller sees `seen`: its bytes are the caller's. Early test
// data call bf16 elements uint16.
std::optional<Tensor> to_tensor(const ModelTensor& tensor, const Interface& seen,
                                const Node& node) {
  auto dtype = dtype_from_onnx(tensor.onnx_type);
  if (!dtype) return std::nullopt;
  if (*dtype == DType::U16 && node.dtype == DType::BF16) dtype = DType::BF16;
  Tensor out{*dtype, tensor.dims, {tensor.bytes.begin(), tensor.bytes.end()}};
  if (info(*dtype).onnx == seen.onnx_type && tensor.dims == seen.shape)
    out.dtype = node.dtype, out.shape = node.shape;
  return out;
}

std::vector<ModelTensor> load_all(const fs::path& folder, const std::string& kind,
                                  const Limits& limits) {
  std::vector<ModelTensor> tensors;
  for (int i = 0;; ++i) {
    const fs::path path = folder / (kind + "_" + std::to_string(i) + ".pb");
    if (!fs::exists(path)) return tensors;
    auto tensor = load_tensor(path, limits);
    if (!tensor) return {};
    tensors.push_back(*tensor);
  }
}

std::string shape_of(const Tensor& tensor) {
  std::string text(info(tensor.dtype).text);
  for (int64_t extent : tensor.shape) text += "," + std::to_string(extent);
  return text;
}

// Empty when equal: integers exactly, others within rtol 1e-3 and atol 1e-5.
std::string difference(const Tensor& got, const Tensor& want) {
  if (got.dtype != want.dtype || got.shape != want.shape)
    return "type " + shape_of(got) + " instead of " + shape_of(want);
  if (!is_float(want.dtype)) return got.bytes == want.bytes ? "" : "the integers differ";
  for (int64_t i = 0; i < element_count(want.shape); ++i) {
    const auto at = static_cast<size_t>(i);
    const double a = test::element_value(got, at), b = test::element_value(want, at);
    if (a == b || (std::isnan(a) && std::isnan(b))) continue;
    if (std::abs(a - b) <= 1e-5 + 1e-3 * std::abs(b)) continue;
    return "[" + std::to_string(i) + "] is " + std::to_string(a) + " instead of " +
           std::to_string(b);
  }
  return "";
}

// The inputs that test data are for: those without an initializer.
std::vector<std::string> fed_inputs(const Model& model) {
  std::vector<std::string> names;
  for (const ModelValue& input : model.graph.inputs)
    if (std::ranges::none_of(model.graph.initializers,
                             [&](const ModelTensor& t) { return t.name == input.name; }))
      names.push_back(input.name);
  return names;
}

void bind_inputs(Model& model, std::vector<ModelTensor>& tensors,
                 const std::vector<std::string>& names) {
  for (size_t i = 0; i < tensors.size(); ++i) {
    tensors[i].name = names[i];
    model.graph.initializers.push_back(tensors[i]);
    std::erase_if(model.graph.inputs,
                  [&](const ModelValue& input) { return input.name == names[i]; });
  }
  tensors.clear();
}

std::string first_error(const Diags& diags) {
  for (const Diagnostic& entry : diags.all())
    if (entry.severity == Severity::Error) return entry.place.op + ": " + entry.message;
  return "no error was reported";
}

// By the evaluator, or by a GPU's kernels: what goes wrong there.
std::string results_of(const Graph& graph, const std::vector<Tensor>& inputs,
                       const std::optional<Target>& device, std::vector<Tensor>& out) {
  if (!device) {
    Evaluated result = evaluate(graph, inputs);
    out = std::move(result.outputs);
    return result.failed != kNoNode ? "an index is out of range" : "";
  }
  CompileOptions options;
  options.target = *device;
  const codegen::Kernels kernels = compile(graph, options);
  for (const ScheduledKernel& k : kernels.plan.programs)
    if (k.call()) return "a custom operator";
  test::KernelRun run = test::run_kernels(kernels, *device, inputs);
  out = std::move(run.outputs);
  if (!run.error.empty()) return run.error;
  if (!run.faults.empty()) return run.faults.front();
  return run.status != 0 ? "status " + std::to_string(run.status) : "";
}

// The same numbers, whatever their type.
Tensor as_doubles(const Tensor& from) {
  if (from.dtype == DType::F64) return from;
  std::vector<double> values(static_cast<size_t>(element_count(from.shape)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = test::element_value(from, i);
  return test::make_tensor(DType::F64, from.shape, values);
}

void write_tensor(const fs::path& path, const Tensor& tensor) {
  fs::create_directories(path.parent_path());
  std::ofstream out(path, std::ios::binary);
  out.write(reinterpret_cast<const char*>(tensor.bytes.data()), std::ssize(tensor.bytes));
}

Verdict write_doubles(const Graph& graph, std::vector<Tensor> inputs,
                      const fs::path& folder) {
  const std::optional<Graph> wide = rewrite::in_double(graph);
  if (!wide) return {"refused", "a custom operator"};
  for (Tensor& input : inputs) input = rewrite::in_double(std::move(input));
  const Evaluated result = evaluate(*wide, inputs);
  if (result.failed != kNoNode) return {"wrong", "an index is out of range"};
  for (size_t i = 0; i < result.outputs.size(); ++i)
    write_tensor(folder / (std::to_string(i) + ".f64"), as_doubles(result.outputs[i]));
  return {"pass", ""};
}

Verdict run_set(const Case& test, const fs::path& folder, bool bind, const Options& how) {
  Diags diags;
  ImportOptions options;
  auto model = read_model(test.model, options.limits, diags);
  if (!model) return {"refused", first_error(diags)};
  std::vector<ModelTensor> given = load_all(folder, "input", options.limits);
  const std::vector<ModelTensor> wanted = load_all(folder, "output", options.limits);
  const std::vector<std::string> names = fed_inputs(*model);
  if (given.size() > names.size()) return {"refused", "more test inputs than inputs"};
  if (bind) bind_inputs(*model, given, names);
  for (size_t i = 0; i < given.size(); ++i) options.data_shapes[names[i]] = given[i].dims;

  auto graph = import_model(*model, options, diags);
  if (!graph) return {"refused", first_error(diags)};
  if (how.simplify) graph = rewrite::simplify(*graph);
  std::vector<Tensor> inputs;
  for (const GraphInput& input : graph->inputs()) {
    const auto at = std::ranges::find(names, input.name) - names.begin();
    if (at >= std::ssize(given)) return {"refused", "no test data for an input"};
    const auto tensor = to_tensor(given[at], input.seen, (*graph)[input.node]);
    if (!tensor) return {"refused", "the test data have an element type we lack"};
    inputs.push_back(*tensor);
  }
  if (!how.doubles.empty()) return write_doubles(*graph, inputs, how.doubles / test.name);
  std::vector<Tensor> results;
  if (std::string why = results_of(*graph, inputs, how.device, results); !why.empty())
    return {"wrong", why};
  if (!how.results.empty()) {
    for (size_t i = 0; i < results.size(); ++i)
      write_tensor(how.results / test.name / (std::to_string(i) + ".raw"), results[i]);
    return {"pass", ""};
  }
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (i >= results.size()) return {"wrong", "an output is missing"};
    const GraphOutput& output = graph->outputs()[i];
    const auto want = to_tensor(wanted[i], output.seen, (*graph)[output.node]);
    if (!want) return {"refused", "the expected output is no tensor of ours"};
    const std::string text = difference(results[i], *want);
    if (!text.empty()) return {"wrong", "output " + std::to_string(i) + " " + text};
  }
  return wanted.empty() ? Verdict{"refused", "no expected output"} : Verdict{"pass", ""};
}

Verdict run_case(const Case& test, const Options& options) {
  Verdict last{"refused", "no test data"};
  for (int i = 0;; ++i) {
    const fs::path folder = test.data / ("test_data_set_" + std::to_string(i));
    if (!fs::exists(folder)) return last;
    last = run_set(test, folder, false, options);
    if (options.bind && last.word == "refused")
      last = run_set(test, folder, true, options);
    if (last.word != "pass" || options.only_writes()) return last;
  }
}

void say(const Verdict& verdict, const Case& test) {
  std::string detail = verdict.detail.substr(0, 300);
  std::ranges::replace(detail, '\n', ' ');
  const std::string line = verdict.word + " " + test.name + " " + detail + "\n";
  if (write(STDOUT_FILENO, line.data(), line.size()) < 0) _exit(1);
}

// In the child: the memory limit keeps one case from taking the machine.
[[noreturn]] void child(const Case& test, const Options& options) {
  const rlimit memory{rlim_t{6} << 30, rlim_t{6} << 30};
  setrlimit(RLIMIT_AS, &memory);
  alarm(options.seconds);
  try {
    say(run_case(test, options), test);
  } catch (const std::exception& error) {
    say({"crash", error.what()}, test);
  }
  _exit(0);
}

void reap(std::map<pid_t, const Case*>& running) {
  int status = 0;
  const pid_t pid = wait(&status);
  if (WIFSIGNALED(status)) {
    const bool slow = WTERMSIG(status) == SIGALRM;
    say({slow ? "slow" : "crash",
         slow ? "" : "signal " + std::to_string(WTERMSIG(status))},
        *running.at(pid));
  }
  running.erase(pid);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string text = arguments[i];
    if (text == "--jobs" && i + 1 < count) {
      options.jobs = std::stoi(arguments[++i]);
    } else if (text == "--seconds" && i + 1 < count) {
      options.seconds = static_cast<unsigned>(std::stoi(arguments[++i]));
    } else if (text == "--bind") {
      options.bind = true;
    } else if (text == "--device" && i + 1 < count) {
      options.device = find_device(arguments[++i]);
    } else if (text == "--double" && i + 1 < count) {
      options.doubles = arguments[++i];
    } else if (text == "--results" && i + 1 < count) {
      options.results = arguments[++i];
    } else if (text == "--simplify") {
      options.simplify = true;
    } else if (const size_t equals = text.find('='); equals != std::string::npos) {
      options.cases.push_back(
          {text.substr(0, equals), text.substr(0, equals), text.substr(equals + 1)});
    } else {
      options.cases.push_back(
          {fs::path(text).filename(), fs::path(text) / "model.onnx", text});
    }
  }
  return options;
}

} // namespace

int main(int count, char** arguments) {
  const Options options = parse(count, arguments);
  std::map<pid_t, const Case*> running;
  for (const Case& test : options.cases) {
    if (static_cast<int>(running.size()) >= options.jobs) reap(running);
    const pid_t pid = fork();
    if (pid == 0) child(test, options);
    running[pid] = &test;
  }
  while (!running.empty()) reap(running);
}
