// The same graph for a GPU: a plan of its own for each set of shapes, whose kernels,
// weights and image lie beside those of the processor. What is not for GPUs leaves the
// program as it is without one.
#include "packager/artefact/machine_code.h"
#include "packager/packing.h"

namespace svod::packager {

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

Exit Packing::compile_device() {
  if (!options_.device) return Exit::Done;
  clock_.lap();
  console_.progress("compiling " + options_.model_name() + " for a GPU");
  std::vector<DeviceEntry> entries;
  size_t kernels = 0;
  for (size_t i = 0; i <= sets_.size(); i++) {
    entries.push_back((i == 0 ? *this : *sets_[i - 1]).device_entry(kernels));
    kernels += entries.back().kernels.plan.programs.size();
    const std::string why = device_fault(entries.back().kernels);
    if (why.empty()) continue;
    console_.note("the model is packed for the CPU alone, since " + why);
    return Exit::Done;
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
  console_.remark("for a GPU: " + std::to_string(kernels) + " kernels as PTX for " +
                  options_.device->levels.front().name + " and later" + code +
                  ", weights " + size_text(device_->sizes.front().weights));
  note_time("device", clock_.lap());
  return Exit::Done;
}

} // namespace svod::packager
