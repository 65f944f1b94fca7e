// The steps of a run on a GPU, captured as one graph.
#ifndef SVOD_PROGRAM_DEVICE_GRAPH_H
#define SVOD_PROGRAM_DEVICE_GRAPH_H

#include "runtime_stub/program/device.h"

namespace packed {

// What is in a graph beside the steps.
struct GraphParts {
  bool copies = false;          // of inputs up, before, and of outputs down, behind
  CudaEvent** events = nullptr; // recorded: one before each step and one behind the last
};

// False when the driver refuses, with its reason on `errors`.
bool capture(Device& device, const GraphParts& parts, CudaGraphRun*& graph,
             Printer& errors);

} // namespace packed

#endif
