// The steps of a run on a GPU: captured as graphs, or launched on a caller's stream; and
// those that the processor runs between them.
#ifndef SVOD_DEVICE_STEPS_H
#define SVOD_DEVICE_STEPS_H

#include "runtime_stub/device/gpu.h"

namespace svod_device {

// What is in a graph beside steps of the GPU.
struct GraphParts {
  uint32_t begin = 0, end = kNoStep; // of its steps; kNoStep: all that follow
  bool inputs = false;               // copied up, before
  bool results = false;              // outputs are copied down, behind
  bool copies = false;               // between steps of either side; words down, behind
  CudaEvent** events = nullptr; // recorded: one before each step and one behind the last
};

bool runs_here(const Device& device, uint32_t step);
// Whether steps of the processor touch an input or output, by slot class, and no others.
bool is_only_here(const Device& device, uint32_t slot_class, uint32_t io);

// Each is false when the driver refuses, with its reason in device.fault.
bool capture(Device& device, const GraphParts& parts, CudaGraphRun*& graph);
bool capture_run(Device& device); // its graphs
// On `stream`, with inputs and outputs of the caller's in the GPU's memory. The stream is
// waited for before the processor runs a step.
bool launch_all(Device& device, CudaStream* stream, const DevicePointer* inputs,
                const DevicePointer* outputs, Stop& stop);
// Words, counters and inputs, from here.
bool copy_up(Device& device);

// One of the processor's steps.
Stop run_here(Device& device, uint32_t step);
// From step `begin` on the processor's steps, which `begin` then is behind, or until one
// fails.
Stop run_turn_here(Device& device, uint32_t& begin);
// Of the GPU's steps from `begin` on, the end.
uint32_t turn_there_end(const Device& device, uint32_t begin);

} // namespace svod_device

#endif
