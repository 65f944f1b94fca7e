#include "tests/support/check_kernels.h"

#include "compiler/codegen/check_cpp.h"
#include "compiler/pipeline.h"
#include "compiler/support/check.h"
#include "tests/support/run_kernels.h"

#include <algorithm>

namespace svod::test {

std::optional<Target> target_for(const LevelChoice& choice) {
  Target native = *find_target("native"), all = default_target();
  auto level = std::ranges::find(all.levels, choice.name, &Level::name);
  if (choice.name == std::string("native")) level = all.levels.end();
  auto best = std::ranges::find(all.levels, native.levels.back().name, &Level::name);
  if (level != all.levels.end() && level > best) return std::nullopt;
  if (level != all.levels.end()) native.levels = {*level};
  if (choice.lanes != 0) native.levels[0].lanes = choice.lanes;
  return native;
}

static std::string check_texts(const codegen::Kernels& kernels) {
  for (const codegen::KernelSource& source : kernels.sources)
    for (const std::string& fault : codegen::check_cpp(source.text))
      return source.symbol + " does more than compute: " + fault;
  return "";
}

std::string check_answers(const RandomGraph& random, const codegen::Kernels& kernels,
                          const Target& target) {
  if (target.kind != TargetKind::Gpu)
    if (std::string what = check_texts(kernels); !what.empty()) return what;
  KernelRun run = run_kernels(kernels, target, random.inputs);
  if (!run.error.empty()) return "does not compile: " + run.error;
  if (!run.faults.empty()) return run.faults.front();
  Evaluated want = evaluate(random.graph, random.inputs);
  if (want.failed != kNoNode)
    return run.status == 0 ? "an index error went unnoticed" : "";
  if (run.status != 0) return "status " + std::to_string(run.status);
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    // Where every order of operations gives the same bits, kernels must give them too.
    double tolerance = random.tolerance[random.graph.outputs()[i].node];
    std::string what =
        compare_tensors(run.outputs[i], want.outputs[i], tolerance, tolerance);
    if (!what.empty()) return "output " + std::to_string(i) + ": " + what;
  }
  return "";
}

std::string check_kernels(const RandomGraph& random, const Target& target,
                          size_t* overlaps, size_t* streams) {
  CompileOptions options;
  options.target = target;
  // Contractions as they are written: the forms with fewer products round otherwise, and
  // tests of their own compare them within their bounds.
  options.as_written = true;
  options.one_thread = overlaps != nullptr || streams != nullptr;
  options.work_for_ram = streams != nullptr ? 1e9 : 0;
  std::optional<codegen::Kernels> kernels;
  try {
    kernels = compile(random.graph, options);
  } catch (const InternalError& error) {
    return error.what();
  }
  if (streams != nullptr) *streams += kernels->plan.streams.size();
  if (overlaps != nullptr) *overlaps += kernels->plan.overlaps.size();
  return check_answers(random, *kernels, target);
}

} // namespace svod::test
