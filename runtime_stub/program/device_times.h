// What takes how long on a GPU, by the driver's events, for --profile and --bench.
#ifndef SVOD_PROGRAM_DEVICE_TIMES_H
#define SVOD_PROGRAM_DEVICE_TIMES_H

#include "runtime_stub/program/device.h"

namespace packed {

// The plan of the session's GPU, as the tables of --profile and --bench read it: not to
// be run.
Session device_session(const Session& session);

// Nanoseconds of each step in one run, the GPU's own, and the host's of steps that the
// processor runs: `took` holds as many as there are steps. `graph` is the caller's
// between calls, null before the first.
struct StepClock {
  svod_device::CudaGraphRun* graph = nullptr;
  svod_device::CudaEvent** events = nullptr; // one more than steps
};
Exit time_steps(Device& device, StepClock& clock, uint64_t* took, Printer& errors);

// What a run consists of.
enum class Span : uint8_t {
  Kernels, // the steps as a graph, without the copies: the GPU's time
  Graph,   // with them: the GPU's time
  Launch,  // the calls that start the graphs: the host's time
  Here,    // the steps that the processor runs between them: the host's time
};
// Of Kernels; null before the first sample.
struct SpanClock {
  svod_device::CudaGraphRun* kernels = nullptr;
  svod_device::CudaEvent *begin = nullptr, *end = nullptr;
};
// One sample, in nanoseconds, once a run has set the inputs.
Exit time_span(Device& device, SpanClock& clock, Span span, uint64_t& nanoseconds,
               Printer& errors);

} // namespace packed

#endif
