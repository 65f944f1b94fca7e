// The same graph for a GPU: a plan of its own for each set of shapes, whose kernels,
// weights and image lie beside those of the processor. Functions in C++ are steps of the
// processor in it. Where that is no gain, or something is for neither side of it, the
// program is as it is without a GPU.
#include "packager/artefact/machine_code.h"
#include "packager/packing.h"

#include "compiler/mixed_cost.h"
#include "compiler/plan/place_steps.h"

namespace svod::packager {

// "12.3 us"
static std::string microseconds(double ns) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.1f us", ns / 1e3);
  return text;
}

// Notes what the processor runs of the plan there, whose kernels have numbers from
// `first` on; `here`: the processor's of the same shapes. Returns whether the plan is
// worth these steps; it is where it has none.
bool Packing::pays_on_device(const plan::Plan& there, const plan::Plan& here,
                             size_t first) {
  DeviceFacts::Entry& facts = device_facts_.entries.emplace_back();
  for (const plan::Step& step : there.steps)
    if (step.is_here)
      facts.here.push_back(
          {"k" + std::to_string(first + step.program), nodes_of(there, step)});
  if (facts.here.empty()) return true;
  const plan::Crossings crossings = plan::crossings_of(there);
  const MixedCost cost = mixed_cost(here, options_.target, std::max(1, options_.threads),
                                    there, *options_.device);
  facts.graphs = crossings.graphs;
  facts.copies = crossings.copies;
  facts.copied_bytes = crossings.bytes;
  facts.here_us = cost.here_ns / 1e3;
  facts.there_us = cost.there_ns / 1e3;
  return cost.pays;
}

// What the processor runs of the GPU's plans, and what that costs.
void Packing::tell_steps_here() const {
  for (const DeviceFacts::Entry& entry : device_facts_.entries) {
    for (const DeviceFacts::Here& step : entry.here)
      console_.remark("on the processor, as C++ of its own: " + step.program + " (" +
                      step.nodes + ")");
    if (entry.here.empty()) continue;
    console_.remark("so a run is " + std::to_string(entry.graphs) + " graphs, with " +
                    std::to_string(entry.copies) + " copies of " +
                    size_text(static_cast<uint64_t>(entry.copied_bytes)) +
                    " between; beside C++ it is predicted to take " +
                    microseconds(entry.there_us * 1e3) + ", and " +
                    microseconds(entry.here_us * 1e3) + " on the processor alone");
  }
}

Exit Packing::stay_on_processor(const std::string& why) {
  console_.note("the model is packed for the CPU alone, since " + why);
  device_facts_.why = why;
  return Exit::Done;
}

// Kernels have the names of numbers from `first` on, which no other entry's have.
DeviceEntry Packing::device_entry(size_t first) const {
  CompileOptions options{*options_.device, options_.exact()};
  DeviceEntry out{compile(*front_->device_graph, options), {}};
  for (codegen::KernelSource& source : out.kernels.sources)
    source.symbol = codegen::program_symbol(static_cast<uint32_t>(first + source.program),
                                            source.level);
  out.contents =
      image_contents(out.kernels.plan, front_->interface, front_->model.digest, key_);
  for (std::string& name : out.contents.programs) name = "k" + std::to_string(first++);
  return out;
}

// Empty where the plan goes to a GPU.
std::string Packing::why_not_there(const plan::Plan& there, const plan::Plan& here,
                                   size_t first) {
  if (std::string why = device_fault(there, here); !why.empty()) return why;
  if (pays_on_device(there, here, first)) return "";
  const DeviceFacts::Entry& facts = device_facts_.entries.back();
  return "with steps on the processor (" + facts.here[0].nodes +
         ") a GPU is predicted to take " + microseconds(facts.there_us * 1e3) +
         " for what the processor does in " + microseconds(facts.here_us * 1e3);
}

Exit Packing::compile_device() {
  if (!options_.device) return Exit::Done;
  clock_.lap();
  console_.progress("compiling " + options_.model_name() + " for a GPU");
  std::vector<DeviceEntry> entries;
  size_t kernels = 0, calls = 0;
  for (size_t i = 0; i <= sets_.size(); i++) {
    const Packing& set = i == 0 ? *this : *sets_[i - 1];
    entries.push_back(set.device_entry(kernels));
    const plan::Plan& there = entries.back().kernels.plan;
    if (const std::string why = why_not_there(there, set.kernels_->plan, kernels);
        !why.empty())
      return stay_on_processor(why);
    kernels += there.programs.size();
  }
  const std::string ptxas = find_ptxas(options_.ptxas);
  if (ptxas.empty() && !options_.ptxas.empty() && options_.ptxas != "off") {
    console_.error("--ptxas: there is no " + options_.ptxas + " on PATH");
    return Exit::Usage;
  }
  console_.rest();
  std::string error;
  device_ = build_device(options_.target, *options_.device, entries, ptxas, error);
  if (!device_) return toolchain_error(error);
  for (const std::string& level : device_->refused)
    console_.warning(ptxas + " makes no machine code for " + level +
                     "; the driver compiles its kernels when the program starts");
  std::string code;
  for (const std::string& level : device_->assembled)
    code += (code.empty() ? ", machine code for " : ", ") + level;
  for (const ProcessorCalls& entry : device_->calls) calls += entry.size();
  console_.remark("for a GPU: " + std::to_string(kernels - calls) +
                  " kernels as PTX for " + options_.device->levels.front().name +
                  " and later" + code + ", weights " +
                  size_text(device_->sizes.front().weights));
  tell_steps_here();
  note_time("device", clock_.lap());
  return Exit::Done;
}

} // namespace svod::packager
