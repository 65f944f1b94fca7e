// Events that are recorded between calls of the host would count how long the host takes
// to make the calls, which is longer than a short kernel. So the events of a profile are
// in the graph, between the steps, and graphs are launched several in a row between two
// events: the next one is there before the last one ends.
#include "runtime_stub/program/device_times.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/device_graph.h"
#include "runtime_stub/program/stopwatch.h"

namespace packed {

namespace {

constexpr uint32_t kInARow = 16;

bool make_event(const Device& device, CudaEvent*& event, Printer& errors) {
  return went_well(device.driver, device.driver.event(&event, 0), "an event", errors);
}

bool record(Device& device, CudaEvent* event, Printer& errors) {
  return went_well(device.driver, device.driver.record(event, device.stream, 0),
                   "an event", errors);
}

// Of events that have been.
bool between(const Device& device, CudaEvent* begin, CudaEvent* end,
             uint64_t& nanoseconds, Printer& errors) {
  float milliseconds = 0;
  if (!went_well(device.driver, device.driver.elapsed(&milliseconds, begin, end),
                 "the time between two events", errors))
    return false;
  nanoseconds = static_cast<uint64_t>(static_cast<double>(milliseconds) * 1e6);
  return true;
}

bool run_and_wait(Device& device, CudaGraphRun* graph, Printer& errors) {
  int32_t status = device.driver.run(graph, device.stream);
  if (status == 0) status = device.driver.wait(device.stream);
  return went_well(device.driver, status, "a run", errors);
}

bool make_step_clock(Device& device, StepClock& clock, Printer& errors) {
  const uint64_t count = uint64_t{device.entry->step_count} + 1;
  clock.events = static_cast<CudaEvent**>(take_memory(count * sizeof(CudaEvent*)));
  if (clock.events == nullptr) {
    print_error(errors, "there is not enough memory");
    return false;
  }
  bool all = true;
  for (uint64_t i = 0; all && i < count; i++)
    all = make_event(device, clock.events[i], errors);
  return all && capture(device, {.events = clock.events}, clock.graph, errors);
}

bool time_graph(Device& device, SpanClock& clock, CudaGraphRun* graph,
                uint64_t& nanoseconds, Printer& errors) {
  int32_t status = 0;
  if (!record(device, clock.begin, errors)) return false;
  for (uint32_t i = 0; status == 0 && i < kInARow; i++)
    status = device.driver.run(graph, device.stream);
  if (!went_well(device.driver, status, "a run", errors) ||
      !record(device, clock.end, errors) ||
      !went_well(device.driver, device.driver.wait(device.stream), "a run", errors) ||
      !between(device, clock.begin, clock.end, nanoseconds, errors))
    return false;
  nanoseconds /= kInARow;
  return true;
}

bool time_launch(Device& device, uint64_t& nanoseconds, Printer& errors) {
  Stopwatch watch;
  watch.start();
  const int32_t status = device.driver.run(device.graph, device.stream);
  nanoseconds = watch.lap();
  return went_well(device.driver, status, "a run", errors) &&
         went_well(device.driver, device.driver.wait(device.stream), "a run", errors);
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
  if (clock.graph == nullptr && !make_step_clock(device, clock, errors)) return EXIT_CPU;
  if (!run_and_wait(device, clock.graph, errors)) return EXIT_CPU;
  for (uint32_t s = 0; s < device.entry->step_count; s++)
    if (!between(device, clock.events[s], clock.events[s + 1], took[s], errors))
      return EXIT_CPU;
  return EXIT_DONE;
}

Exit time_span(Device& device, SpanClock& clock, Span span, uint64_t& nanoseconds,
               Printer& errors) {
  if (clock.kernels == nullptr && (!make_event(device, clock.begin, errors) ||
                                   !make_event(device, clock.end, errors) ||
                                   !capture(device, {}, clock.kernels, errors)))
    return EXIT_CPU;
  const bool went =
      span == Span::Launch
          ? time_launch(device, nanoseconds, errors)
          : time_graph(device, clock, span == Span::Graph ? device.graph : clock.kernels,
                       nanoseconds, errors);
  return went ? EXIT_DONE : EXIT_CPU;
}

} // namespace packed
