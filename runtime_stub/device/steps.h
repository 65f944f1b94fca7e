// The steps of a run on a GPU: captured as one graph, or launched on a caller's stream.
#ifndef SVOD_DEVICE_STEPS_H
#define SVOD_DEVICE_STEPS_H

#include "runtime_stub/device/gpu.h"

namespace svod_device {

// What is in a graph beside the steps.
struct GraphParts {
  bool copies = false;          // of inputs up, before, and of outputs down, behind
  CudaEvent** events = nullptr; // recorded: one before each step and one behind the last
};

// Each is false when the driver refuses, with its reason in device.fault.
bool capture(Device& device, const GraphParts& parts, CudaGraphRun*& graph);
// On `stream`, with inputs and outputs of the caller's in the GPU's memory.
bool launch_all(Device& device, CudaStream* stream, const DevicePointer* inputs,
                const DevicePointer* outputs);
// Words, counters and inputs, from here.
bool copy_up(Device& device);

} // namespace svod_device

#endif
