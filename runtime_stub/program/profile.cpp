// Time per kernel: the replay tells after each step, so a step's time is the gap between
// two tellings, summed over the times that a loop runs it. The fastest of many runs
// counts, since what disturbs only adds. As JSON it is what tuners and other programs
// read: one object for each step. On a GPU its own clock tells instead, between the steps
// of a graph.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/stopwatch.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/device/steps.h"
#include "runtime_stub/program/device_times.h"
#endif

namespace packed {

namespace {

struct Listener {
  Stopwatch watch;
  uint64_t* fastest; // per step
  uint64_t* took;    // in this run
  uint64_t* times;   // in this run
#ifdef SVOD_DEVICE
  StepClock clock;
#endif
};

void on_step(void* context, uint32_t step) {
  auto& listener = *static_cast<Listener*>(context);
  listener.took[step] += listener.watch.lap();
  listener.times[step]++;
}

// Of a step whose plan has steps on both sides; empty otherwise.
Text place_of([[maybe_unused]] const Session& session, [[maybe_unused]] uint32_t number) {
#ifdef SVOD_DEVICE
  const svod_device::Device* device = session.device;
  if (device != nullptr && device->packed.launch != nullptr)
    return svod_device::runs_here(*device, number) ? "cpu" : "gpu";
#endif
  return {};
}

struct StepTime {
  const SvodStep& step;
  Text place;
  uint64_t times;     // in a run
  double nanoseconds; // of all of them
};

StepTime time_of(const Session& session, const Listener& listener, uint32_t number,
                 bool in_chain) {
  const SvodStep& step = *svod_step(session.model.image, session.entry, number);
  uint64_t took = listener.fastest[number], times = listener.times[number];
  if (in_chain) times /= step.chunks; // told after each
  return {step, place_of(session, number), times,
          static_cast<double>(took == 0 ? 1 : took)};
}

void print_step(Printer& out, const Session& session, const StepTime& time,
                uint64_t total) {
  const auto& [step, place, times, nanoseconds] = time;
  uint64_t flops = step.flops * times, bytes = step.bytes * times;
  out << step_name(session, step);
  if (times != 1) out << "*" << times;
  if (place == Text("cpu")) out << " " << place;
  out.column(12).fixed(nanoseconds / 1e3, 2);
  out.column(24).fixed(100 * nanoseconds / static_cast<double>(total), 1);
  out.column(32) << flops;
  out.column(46).fixed(static_cast<double>(flops) / nanoseconds, 2);
  out.column(55) << bytes;
  out.column(68).fixed(static_cast<double>(bytes) / nanoseconds, 2);
  out.column(77).name(text_of(session, step.sources)) << "\n";
}

void print_json(Printer& out, const Session& session, const StepTime& time) {
  const auto& [step, place, times, nanoseconds] = time;
  out << "{\"name\": ";
  out.json(step_name(session, step));
  if (place.size > 0) out << ", \"place\": \"" << place << "\"";
  out << ", \"us\": ";
  out.fixed(nanoseconds / 1e3, 3)
      << ", \"calls\": " << times << ", \"flops\": " << step.flops * times
      << ", \"bytes\": " << step.bytes * times << ", \"nodes\": ";
  out.json(text_of(session, step.sources)) << "}";
}

// Times of the steps in one run.
Exit time_run(Session& session, Listener& listener, Printer& errors) {
  const uint32_t steps = session.entry->step_count;
#ifdef SVOD_DEVICE
  if (session.device != nullptr) {
    for (uint32_t s = 0; s < steps; s++) listener.times[s] = 1;
    return time_steps(*session.device, listener.clock, listener.took, errors);
  }
#endif
  for (uint32_t s = 0; s < steps; s++) listener.took[s] = listener.times[s] = 0;
  listener.watch.start();
  return run(session, errors);
}

// One run; its times count where they are better.
Exit run_once(Session& session, Listener& listener, Printer& errors) {
  const Exit status = time_run(session, listener, errors);
  for (uint32_t s = 0; s < session.entry->step_count; s++) {
    if (listener.took[s] < listener.fastest[s]) listener.fastest[s] = listener.took[s];
  }
  return status;
}

// Whether the replay tells after each chunk of a step of a chain.
bool tells_chunks(const Session& session) {
#ifdef SVOD_DEVICE
  if (session.device != nullptr) return false;
#endif
  return session.threads == 1;
}

void print_times(const Session& session, const Listener& listener, uint64_t total,
                 uint64_t runs, bool json) {
  Printer out(1);
  if (json)
    out << "{\"kernels\": [";
  else
    out << "kernel      us          share % flops         GFLOP/s  bytes        GB/s     "
           "nodes\n";
  uint64_t chain_end = 0;
  for (uint32_t s = 0; s < session.entry->step_count; s++) {
    const uint32_t followers =
        svod_step(session.model.image, session.entry, s)->followers;
    if (followers != 0) chain_end = uint64_t{s} + followers + 1;
    const StepTime time =
        time_of(session, listener, s, s < chain_end && tells_chunks(session));
    if (json)
      print_json(out << (s == 0 ? "\n" : ",\n"), session, time);
    else
      print_step(out, session, time, total);
  }
  if (json) {
    out << "\n], \"total_us\": ";
    out.fixed(static_cast<double>(total) / 1e3, 3)
        << ", \"level\": \"" << session.model.levels[session.level].name
        << "\", \"threads\": " << session.threads << ", \"runs\": " << runs
        << ", \"unit\": \"us\"}\n";
    return;
  }
  out << "total";
  out.column(12).fixed(static_cast<double>(total) / 1e3, 2)
      << " us, best of " << runs << " runs\n";
}

} // namespace

static Exit profile_steps(Session& session, const Options& options, Printer& errors) {
  uint32_t steps = session.entry->step_count;
  auto* memory = static_cast<uint64_t*>(take_memory((uint64_t{steps} + 1) * 24));
  if (memory == nullptr) return no_memory(errors);
  Listener listener = {};
  listener.fastest = memory;
  listener.took = memory + steps;
  listener.times = memory + uint64_t{2} * steps;
  for (uint32_t s = 0; s < steps; s++) listener.fastest[s] = ~uint64_t{0};
  session.step_done = on_step;
  session.listener = &listener;
  auto measure = static_cast<uint64_t>(options.min_time * 1e9);
  uint64_t start = svod_now(), runs = 0;
  do {
    Exit status = run_once(session, listener, errors);
    if (status != EXIT_DONE) return status;
    runs++;
  } while (svod_now() - start < measure);
  uint64_t total = 0;
  for (uint32_t s = 0; s < steps; s++) total += listener.fastest[s];
  if (total == 0) total = 1;
  print_times(session, listener, total, runs, options.json);
  return EXIT_DONE;
}

Exit profile(Session& session, const Options& options, Printer& errors) {
#ifdef SVOD_DEVICE
  if (session.device != nullptr) {
    // One run sets the inputs there: indices among them must be in range.
    const Exit status = run(session, errors);
    if (status != EXIT_DONE) return status;
    Session there = device_session(session);
    return profile_steps(there, options, errors);
  }
#endif
  return profile_steps(session, options, errors);
}

} // namespace packed
