// The same graph for a GPU: a plan of its own, whose kernels, weights and image lie
// beside those of the processor. What is not for GPUs leaves the program as it is without
// one.
#include "packager/artefact/machine_code.h"
#include "packager/packing.h"

namespace svod::packager {

Exit Packing::compile_device() {
  if (!options_.device) return Exit::Done;
  clock_.lap();
  console_.progress("compiling " + options_.model_name() + " for a GPU");
  CompileOptions options{*options_.device, options_.exact()};
  const codegen::Kernels kernels = compile(*front_->device_graph, options);
  if (const std::string why = device_fault(kernels); !why.empty()) {
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
  device_ = build_device(
      options_.target, *options_.device, kernels,
      image_contents(kernels.plan, front_->interface, front_->model.digest, key_), ptxas,
      error);
  if (!device_) return toolchain_error(error);
  for (const std::string& level : device_->refused)
    console_.warning(ptxas + " makes no machine code for " + level +
                     "; the driver compiles its kernels when the program starts");
  std::string code;
  for (const std::string& level : device_->assembled)
    code += (code.empty() ? ", machine code for " : ", ") + level;
  console_.remark("for a GPU: " + std::to_string(kernels.plan.programs.size()) +
                  " kernels as PTX for " + options_.device->levels.front().name +
                  " and later" + code + ", weights " + size_text(device_->sizes.weights));
  note_time("device", clock_.lap());
  return Exit::Done;
}

} // namespace svod::packager
