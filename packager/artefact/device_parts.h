// What a program holds for a GPU: for each entry the image of the plan there and a blob
// with the kernels as PTX (runtime_stub/device_format.h), and the weights of all.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/toolchain/memory_file.h"
#include "packager/artefact/glue.h"
#include "packager/artefact/image.h"

#include <map>
#include <optional>
#include <string>

namespace svod::packager {

// Programs of a GPU's plan that the processor runs, by their numbers there.
using ProcessorCalls = std::map<uint32_t, ScheduledKernel>;

struct DeviceParts {
  std::vector<toolchain::MemoryFile> objects;
  std::vector<DeviceSizes> sizes;              // by entry
  uint64_t arena_bytes = 0;                    // what a library's arena holds for it
  std::vector<ProcessorCalls> calls;           // by entry
  std::vector<std::string> assembled, refused; // architectures, where ptxas was asked
};

// One entry there.
struct DeviceEntry {
  codegen::Kernels kernels;
  ImageContents contents;
};

// Why the plan cannot run on a GPU, with steps on the processor where it has some of
// `here`; empty: it can.
std::string device_fault(const plan::Plan& plan, const plan::Plan& here);

// The numbers that these programs, functions in C++, have in a plan of the processor;
// those that it lacks are left out.
ProgramsHere programs_here(const ProcessorCalls& calls, const plan::Plan& here);
// The ONNX nodes of a step: "a, b".
std::string nodes_of(const plan::Plan& plan, const plan::Step& step);

// The PTX of one kernel, named by its symbol; what the compiler says goes to `error`.
std::string ptx_text(const Target& device, const codegen::Kernels& kernels,
                     const codegen::KernelSource& kernel, std::string& error);

// `host`: what the program is made for. `ptxas` is empty where there is none. None when a
// kernel does not compile.
std::optional<DeviceParts> build_device(const Target& host, const Target& device,
                                        const std::vector<DeviceEntry>& entries,
                                        const std::string& ptxas, std::string& error);

} // namespace svod::packager
