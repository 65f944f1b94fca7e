#include "packager/firmware/test_vectors.h"

#include "packager/verify/read_inputs.h"
#include "packager/verify/run_calls.h"
#include "packager/verify/test_data.h"

#include <algorithm>

namespace svod::packager {

static bool only_tensors(const std::vector<importer::ModelPort>& ports) {
  return std::ranges::all_of(ports, &importer::ModelPort::is_tensor);
}

std::optional<TestVectors> test_vectors(const Options& options, const Front& front,
                                        const VerifyChoice& choice, std::string& error) {
  if (!only_tensors(front.interface.inputs) || !only_tensors(front.interface.outputs) ||
      !front.interface.extents.empty()) {
    error = "a self-test has tensors of fixed sizes only, and the model has others";
    return std::nullopt;
  }
  const size_t states = front.graph.states().size();
  TestVectors out;
  if (choice.name != "random" && states != 0) {
    error = "a self-test begins with states of zeros, and a data set has others; use "
            "--verify random";
    return std::nullopt;
  }
  if (choice.name != "random") {
    const std::string folder = first_set(choice.name);
    const importer::Limits& limits = options.import.limits;
    auto inputs = read_inputs(folder, front, limits, error);
    auto outputs = inputs ? read_outputs(folder, front, limits, error) : std::nullopt;
    if (!outputs) return std::nullopt;
    return TestVectors{std::move(*inputs), std::move(*outputs)};
  }
  out.inputs = random_inputs(front.graph, front.interface);
  Evaluated result = evaluate(front.graph, out.inputs, calls_run_by());
  if (result.failed != kNoNode) {
    error = "random inputs lead to an index out of range; give a data set";
    return std::nullopt;
  }
  out.outputs = std::move(result.outputs);
  out.inputs.resize(out.inputs.size() - states);
  out.outputs.resize(out.outputs.size() - states);
  return out;
}

std::string selftest_text(const Options& options, const Front& front,
                          const ImageContents& contents, std::string& error) {
  VerifyChoice choice = verify_choice(options);
  if (choice.name.empty()) choice = {"random", true};
  const auto vectors = test_vectors(options, front, choice, error);
  if (!vectors) return "";
  return testbench_text(options.name, "lib" + options.name + ".h",
                        contents.entries.front(), *vectors);
}

} // namespace svod::packager
