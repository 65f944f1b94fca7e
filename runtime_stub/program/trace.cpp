// When each kernel ran, on which thread: --profile=trace.json, as trace viewers read it
// (the Trace Event Format, which Perfetto and Chrome take). Launches are timed where they
// happen, by a function in front of the model's: a thread's list of buffers, which a
// launch is given, tells which thread it is. What a thread does of one kernel, chunk
// after chunk, is one event.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/modes.h"

namespace packed {

namespace {

constexpr uint32_t kRuns = 5, kMostLanes = 256;
constexpr uint32_t kMostLaunches = 1 << 16, kMostEvents = 1 << 17;

struct Launch {
  uint64_t begin, end;
  void* const* buffers; // of the thread
  uint32_t program;
};

struct Event {
  uint64_t begin, end;
  uint32_t step, telling; // the event goes on while both are the same
  uint32_t lane, chunks;
};

struct Tracer {
  const Session* session;
  SvodLaunch launch;
  Launch* launches; // since the last telling; threads count them up
  uint32_t launched;
  Event* events;
  uint64_t count;
  uint32_t tellings;
  uint64_t told; // when
  void* const* first_buffers;
  uint32_t last_of_lane[kMostLanes]; // number of its last event and one, 0: none
};
Tracer* tracer = nullptr; // a launch has no context

int32_t traced_launch(uint32_t level, uint32_t program, void* const* buffers,
                      void* scratch, uint32_t chunk) {
  Tracer& t = *tracer;
  const uint64_t begin = svod_now();
  const int32_t status = t.launch(level, program, buffers, scratch, chunk);
  const uint32_t at = __atomic_fetch_add(&t.launched, 1u, __ATOMIC_RELAXED);
  if (at < kMostLaunches) t.launches[at] = {begin, svod_now(), buffers, program};
  return status;
}

void add_event(Tracer& t, uint32_t lane, uint32_t step, uint64_t begin, uint64_t end) {
  if (lane >= kMostLanes || t.count == kMostEvents) return;
  uint32_t& last = t.last_of_lane[lane];
  Event* before = last == 0 ? nullptr : &t.events[last - 1];
  if (before != nullptr && before->step == step && before->telling == t.tellings) {
    before->end = end;
    before->chunks++;
    return;
  }
  t.events[t.count++] = {begin, end, step, t.tellings, lane, 1};
  last = static_cast<uint32_t>(t.count);
}

// What was launched since the last telling is of this step, or, where it begins a chain,
// of one of those behind it.
void on_step(void* context, uint32_t step) {
  auto& t = *static_cast<Tracer*>(context);
  const void* image = t.session->model.image;
  const SvodEntry* entry = t.session->entry;
  const uint32_t launched = t.launched < kMostLaunches ? t.launched : kMostLaunches;
  const uint32_t end = step + svod_step(image, entry, step)->followers + 1;
  for (uint32_t i = 0; i < launched; i++) {
    const Launch& launch = t.launches[i];
    uint32_t own = step;
    while (own < end && svod_step(image, entry, own)->program != launch.program) own++;
    const auto lane = static_cast<uint64_t>(launch.buffers - t.first_buffers) /
                      svod_header(image)->max_buffers;
    add_event(t, static_cast<uint32_t>(lane), own < end ? own : step, launch.begin,
              launch.end);
  }
  const uint64_t now = svod_now();
  if (svod_step(image, entry, step)->kind == SVOD_STEP_COPY)
    add_event(t, 0, step, t.told, now);
  t.launched = 0;
  t.tellings++;
  t.told = now;
}

// Where the buffers of the first thread are listed, as the replay has them.
void* const* first_buffers(const Session& session) {
  const SvodEntry& entry = *session.entry;
  constexpr uint64_t kAlign = SVOD_ALIGN;
  const uint64_t temporaries = (entry.arena_bytes + kAlign - 1) / kAlign * kAlign;
  return reinterpret_cast<void* const*>(static_cast<const uint8_t*>(session.arena) +
                                        SVOD_ARENA_NOTES + temporaries +
                                        entry.scratch_bytes * session.threads);
}

void print_span(Printer& out, uint64_t begin, uint64_t end, uint64_t start,
                uint32_t lane) {
  out << ", \"ph\": \"X\", \"pid\": 1, \"tid\": " << lane << ", \"ts\": ";
  out.fixed(static_cast<double>(begin - start) / 1e3, 3) << ", \"dur\": ";
  out.fixed(static_cast<double>(end - begin) / 1e3, 3);
}

void print_name(Printer& out, const char* kind, uint32_t lane) {
  out << "{\"name\": \"" << kind << "\", \"ph\": \"M\", \"pid\": 1, \"tid\": " << lane
      << ", \"args\": {\"name\": ";
}

void print_trace(Printer& out, const Session& session, const Tracer& t,
                 const uint64_t (&runs)[kRuns + 1]) {
  const uint64_t start = runs[0];
  out << "{\"displayTimeUnit\": \"ns\", \"traceEvents\": [\n";
  print_name(out, "process_name", 0);
  out.json(manifest_text(session, "\"name\": ")) << "}}";
  for (uint32_t i = 0; i < session.threads; i++) {
    print_name(out << ",\n", "thread_name", i);
    out << "\"thread " << i << "\"}}";
  }
  for (uint32_t i = 0; i < kRuns; i++) {
    out << ",\n{\"name\": \"run " << i << "\", \"cat\": \"run\"";
    print_span(out, runs[i], runs[i + 1], start, 0);
    out << "}";
  }
  for (uint64_t i = 0; i < t.count; i++) {
    const Event& event = t.events[i];
    const SvodStep& step = *svod_step(session.model.image, session.entry, event.step);
    out << ",\n{\"name\": ";
    out.json(step_name(session, step)) << ", \"cat\": \"kernel\"";
    print_span(out, event.begin, event.end, start, event.lane);
    out << ", \"args\": {\"nodes\": ";
    out.json(text_of(session, step.sources))
        << ", \"flops\": " << step.flops << ", \"bytes\": " << step.bytes
        << ", \"chunks\": " << event.chunks << ", \"of\": " << step.chunks << "}}";
  }
  out << "\n], \"otherData\": {\"level\": \"" << session.model.levels[session.level].name
      << "\", \"threads\": " << session.threads << "}}\n";
}

} // namespace

Exit trace(Session& session, Printer& errors) {
#ifdef SVOD_DEVICE
  if (session.device != nullptr) {
    print_error(errors, "--profile=trace.json is of the processor; say --device=cpu");
    return EXIT_USAGE;
  }
#endif
  // A first run, which finds nothing in the caches, is not shown.
  Exit status = run(session, errors);
  Tracer t = {};
  t.launches = static_cast<Launch*>(take_memory(kMostLaunches * sizeof(Launch)));
  t.events = static_cast<Event*>(take_memory(kMostEvents * sizeof(Event)));
  if (status != EXIT_DONE) return status;
  if (t.launches == nullptr || t.events == nullptr) return no_memory(errors);
  t.session = &session;
  t.launch = session.model.launch;
  t.first_buffers = first_buffers(session);
  tracer = &t;
  session.model.launch = traced_launch;
  session.step_done = on_step;
  session.listener = &t;
  uint64_t runs[kRuns + 1];
  for (uint32_t i = 0; i < kRuns && status == EXIT_DONE; i++) {
    runs[i] = t.told = svod_now();
    status = run(session, errors);
    runs[i + 1] = svod_now();
  }
  if (status != EXIT_DONE) return status;
  if (t.count == kMostEvents)
    errors << "note: the trace ends after " << kMostEvents << " events\n";
  Printer out(1);
  print_trace(out, session, t, runs);
  return EXIT_DONE;
}

} // namespace packed
