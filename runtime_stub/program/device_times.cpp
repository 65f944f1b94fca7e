// Events that are recorded between calls of the host would count how long the host takes
// to make the calls, which is longer than a short kernel. So the events of a profile are
// in the graph, between the steps, and graphs are launched several in a row between two
// events: the next one is there before the last one ends.
#include "runtime_stub/program/device_times.h"

#include "runtime_stub/device/steps.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/program/stopwatch.h"

namespace packed {

using svod_device::capture;
using svod_device::CudaEvent;
using svod_device::CudaGraphRun;
using svod_device::header_of;
using svod_device::run_here;
using svod_device::runs_here;
using svod_device::went_well;

namespace {

constexpr uint32_t kInARow = 16;

bool make_event(Device& device, CudaEvent*& event) {
  return went_well(device, device.driver.event(&event, 0), "an event");
}

bool record(Device& device, CudaEvent* event) {
  return went_well(device, device.driver.record(event, device.stream, 0), "an event");
}

// Of events that have been.
bool between(Device& device, CudaEvent* begin, CudaEvent* end, uint64_t& nanoseconds) {
  float milliseconds = 0;
  if (!went_well(device, device.driver.elapsed(&milliseconds, begin, end),
                 "the time between two events"))
    return false;
  nanoseconds = static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
  return true;
}

bool run_and_wait(Device& device, CudaGraphRun* graph) {
  int32_t status = device.driver.run(graph, device.stream);
  if (status == 0) status = device.driver.wait(device.stream);
  return went_well(device, status, "a run");
}

// There is memory for the events.
bool make_step_clock(Device& device, StepClock& clock) {
  bool all = true;
  for (uint32_t i = 0; all && i <= device.entry->step_count; i++)
    all = make_event(device, clock.events[i]);
  const bool copies = device.packed.launch != nullptr;
  return all && capture(device, {.copies = copies, .events = clock.events}, clock.graph);
}

// Of `count` graphs, one after the other.
bool time_graphs(Device& device, SpanClock& clock, CudaGraphRun* const* graphs,
                 uint32_t count, uint64_t& nanoseconds) {
  int32_t status = 0;
  if (!record(device, clock.begin)) return false;
  for (uint32_t i = 0; status == 0 && i < kInARow * count; i++)
    status = device.driver.run(graphs[i % count], device.stream);
  if (!went_well(device, status, "a run") || !record(device, clock.end) ||
      !went_well(device, device.driver.wait(device.stream), "a run") ||
      !between(device, clock.begin, clock.end, nanoseconds))
    return false;
  nanoseconds /= kInARow;
  return true;
}

bool time_launch(Device& device, uint64_t& nanoseconds) {
  nanoseconds = 0;
  for (uint32_t i = 0; i < header_of(device.packed).graphs; i++) {
    Stopwatch watch;
    watch.start();
    const int32_t status = device.driver.run(device.graphs[i], device.stream);
    nanoseconds += watch.lap();
    if (!went_well(device, status, "a run") ||
        !went_well(device, device.driver.wait(device.stream), "a run"))
      return false;
  }
  return true;
}

// Of all steps that the processor runs, each once more with what it read in the run
// before, where it did not fail; by step, too, if there is room for that.
uint64_t time_here(Device& device, uint64_t* took = nullptr) {
  uint64_t all = 0;
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    if (!runs_here(device, s)) continue;
    Stopwatch watch;
    watch.start();
    (void)run_here(device, s);
    const uint64_t nanoseconds = watch.lap();
    if (took != nullptr) took[s] = nanoseconds;
    all += nanoseconds;
  }
  return all;
}

bool take_step_times(Device& device, StepClock& clock, uint64_t* took) {
  if (clock.graph == nullptr && !make_step_clock(device, clock)) return false;
  if (!run_and_wait(device, clock.graph)) return false;
  for (uint32_t s = 0; s < device.entry->step_count; s++)
    if (!between(device, clock.events[s], clock.events[s + 1], took[s])) return false;
  time_here(device, took);
  return true;
}

bool make_span_clock(Device& device, SpanClock& clock) {
  return clock.kernels != nullptr ||
         (make_event(device, clock.begin) && make_event(device, clock.end) &&
          capture(device, {}, clock.kernels));
}

Exit told(const Device& device, bool went, Printer& errors) {
  if (!went) print_fault(device, errors);
  return went ? EXIT_DONE : EXIT_CPU;
}

} // namespace

Session device_session(const Session& session) {
  Session out = session;
  out.model = session.device->model;
  out.entry = session.device->entry;
  out.level = 0;
  out.threads = 1;
  return out;
}

Exit time_steps(Device& device, StepClock& clock, uint64_t* took, Printer& errors) {
  const uint64_t count = uint64_t{device.entry->step_count} + 1;
  if (clock.events == nullptr)
    clock.events = static_cast<CudaEvent**>(take_memory(count * sizeof(CudaEvent*)));
  if (clock.events == nullptr) return no_memory(errors);
  return told(device, take_step_times(device, clock, took), errors);
}

Exit time_span(Device& device, SpanClock& clock, Span span, uint64_t& nanoseconds,
               Printer& errors) {
  if (!make_span_clock(device, clock)) return told(device, false, errors);
  const uint32_t graphs = header_of(device.packed).graphs;
  switch (span) {
  case Span::Kernels:
    return told(device, time_graphs(device, clock, &clock.kernels, 1, nanoseconds),
                errors);
  case Span::Graph:
    return told(device, time_graphs(device, clock, device.graphs, graphs, nanoseconds),
                errors);
  case Span::Launch:
    return told(device, time_launch(device, nanoseconds), errors);
  case Span::Here:
    nanoseconds = time_here(device);
  }
  return EXIT_DONE;
}

} // namespace packed
