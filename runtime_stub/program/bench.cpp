// Times whole runs: a first one, a warm-up, then as many as fit into the asked time. What
// comes before the first, from the program's own beginning on, is the start-up time; the
// operating system's part of starting a process is not in it. On a GPU also what a run
// consists of: the kernels and the copies by the GPU's clock, the launch, and steps that
// the processor runs, by the host's. Medians and percentiles come from the sorted
// samples; the JSON is laid out as Google Benchmark's, so that scripts made for it can
// read it.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/stopwatch.h"
#include "runtime_stub/program/tensor_file.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/program/device_times.h"
#endif

namespace packed {

namespace {

constexpr uint64_t kMostSamples = 1 << 20;

// Heap sort: no recursion, no memory.
void sift_down(uint64_t* heap, uint64_t at, uint64_t count) {
  for (;;) {
    uint64_t child = 2 * at + 1;
    if (child >= count) return;
    if (child + 1 < count && heap[child + 1] > heap[child]) child++;
    if (heap[at] >= heap[child]) return;
    uint64_t larger = heap[child];
    heap[child] = heap[at];
    heap[at] = larger;
    at = child;
  }
}

void sort(uint64_t* samples, uint64_t count) {
  for (uint64_t i = count / 2; i-- > 0;) sift_down(samples, i, count);
  for (uint64_t end = count; end-- > 1;) {
    uint64_t largest = samples[0];
    samples[0] = samples[end];
    samples[end] = largest;
    sift_down(samples, 0, end);
  }
}

struct Row {
  char name[16];      // run/min
  char aggregate[12]; // min
  double nanoseconds;
};

struct Results {
  Row rows[15];
  uint32_t count;
  uint64_t runs;
  uint64_t peak_bytes; // of memory, when the runs had warmed up; 0: not known
};

// What the kernel counts of this process; getrusage would count what it was before exec.
uint64_t peak_memory() {
  constexpr char kField[] = "VmHWM:";
  Text status;
  if (read_file("/proc/self/status", status) < 0) return 0;
  while (status.size > 0 && !status.starts_with(kField)) {
    const uint64_t line = status.find('\n');
    status = status.from(line < status.size ? line + 1 : line);
  }
  if (status.size == 0) return 0;
  status = status.from(sizeof(kField) - 1);
  while (status.size > 0 && (status.data[0] == ' ' || status.data[0] == '\t')) {
    status = status.from(1);
  }
  uint64_t kibibytes = 0;
  return read_unsigned(status.first(status.find(' ')), &kibibytes) ? kibibytes * 1024 : 0;
}

Exit timed_run(Session& session, Stopwatch& watch, Printer& errors,
               uint64_t& nanoseconds) {
  watch.start();
  Exit status = run(session, errors);
  nanoseconds = watch.lap();
  return status;
}

Results summarize(uint64_t* samples, uint64_t count, uint64_t first, uint64_t start_up) {
  double sum = 0;
  for (uint64_t i = 0; i < count; i++) sum += static_cast<double>(samples[i]);
  sort(samples, count);
  auto at = [&](uint64_t i) { return static_cast<double>(samples[i]); };
  return {{{"run/min", "min", at(0)},
           {"run/median", "median", at(count / 2)},
           {"run/p95", "p95", at(count * 95 / 100)},
           {"run/p99", "p99", at(count * 99 / 100)},
           {"run/mean", "mean", sum / static_cast<double>(count)},
           {"first_run", "first", static_cast<double>(first)},
           {"start_up", "start_up", static_cast<double>(start_up)}},
          7,
          count,
          0};
}

#ifdef SVOD_DEVICE
struct SpanRow {
  Span span;
  Row least, median;
};
constexpr SpanRow kSpans[] = {
    {Span::Kernels, {"kernels/min", "min", 0}, {"kernels/median", "median", 0}},
    {Span::Graph, {"graph/min", "min", 0}, {"graph/median", "median", 0}},
    {Span::Launch, {"launch/min", "min", 0}, {"launch/median", "median", 0}},
    {Span::Here, {"host/min", "min", 0}, {"host/median", "median", 0}},
};

void add_row(Results& results, const Row& row, uint64_t nanoseconds) {
  results.rows[results.count] = row;
  results.rows[results.count++].nanoseconds = static_cast<double>(nanoseconds);
}

// Each in a fifth of the measured time.
Exit add_spans(Device& device, uint64_t* samples, uint64_t measure, Results& results,
               Printer& errors) {
  SpanClock clock;
  for (const SpanRow& row : kSpans) {
    if (row.span == Span::Here && device.packed.launch == nullptr) continue;
    uint64_t count = 0;
    const uint64_t start = svod_now();
    while (count < kMostSamples && (count == 0 || svod_now() - start < measure / 5)) {
      const Exit status = time_span(device, clock, row.span, samples[count++], errors);
      if (status != EXIT_DONE) return status;
    }
    sort(samples, count);
    add_row(results, row.least, samples[0]);
    add_row(results, row.median, samples[count / 2]);
  }
  return EXIT_DONE;
}
#endif

void print_text(Printer& out, const Session& session, const Results& results) {
  for (uint32_t i = 0; i < results.count; i++) {
    const Row& row = results.rows[i];
    out << row.name;
    out.column(16).fixed(row.nanoseconds / 1e3, 3) << " us\n";
  }
  if (results.peak_bytes != 0) {
    out << "peak memory";
    out.column(16).fixed(static_cast<double>(results.peak_bytes) / 1e6, 2) << " MB\n";
  }
  out << results.runs << " runs, " << session.threads << " threads, level "
      << session.model.levels[session.level].name << "\n";
}

void print_json(Printer& out, const Session& session, const Results& results) {
  out << "{\"context\": {\"num_cpus\": " << svod_cpu_count()
      << ", \"threads\": " << session.threads << ", \"isa\": \""
      << session.model.levels[session.level].name
      << "\", \"peak_memory_bytes\": " << results.peak_bytes
      << ", \"library_build_type\": \"release\"},\n\"benchmarks\": [\n";
  for (uint32_t i = 0; i < results.count; i++) {
    const Row& row = results.rows[i];
    out << (i == 0 ? "" : ",\n") << "{\"name\": \"" << row.name
        << "\", \"run_name\": \"run\", \"run_type\": \"aggregate\", \"aggregate_name\": "
           "\""
        << row.aggregate << "\", \"iterations\": " << results.runs << ", \"real_time\": ";
    out.fixed(row.nanoseconds / 1e3, 3) << ", \"cpu_time\": ";
    out.fixed(row.nanoseconds / 1e3, 3) << ", \"time_unit\": \"us\"}";
  }
  out << "\n]}\n";
}

void print(const Session& session, const Results& results, bool json) {
  Printer out(1);
  if (json)
    print_json(out, session, results);
  else
    print_text(out, session, results);
}

} // namespace

Exit bench(Session& session, const Options& options, Printer& errors) {
  auto samples = static_cast<uint64_t*>(take_memory(kMostSamples * sizeof(uint64_t)));
  if (samples == nullptr) return no_memory(errors);
  Stopwatch watch;
  const uint64_t start_up = svod_now() - options.began;
  uint64_t first = 0, count = 0, sample = 0;
  Exit status = timed_run(session, watch, errors, first);
  // A fifth of the measured time warms up caches and clock.
  auto measure = static_cast<uint64_t>(options.min_time * 1e9);
  uint64_t start = svod_now();
  while (status == EXIT_DONE && svod_now() - start < measure / 5) {
    status = timed_run(session, watch, errors, sample);
  }
  const uint64_t peak = peak_memory();
  start = svod_now();
  while (status == EXIT_DONE && count < kMostSamples &&
         (count == 0 || svod_now() - start < measure)) {
    status = timed_run(session, watch, errors, samples[count++]);
  }
  if (status != EXIT_DONE) return status;
  Results results = summarize(samples, count, first, start_up);
  results.peak_bytes = peak;
#ifdef SVOD_DEVICE
  if (session.device != nullptr) {
    status = add_spans(*session.device, samples, measure, results, errors);
    if (status != EXIT_DONE) return status;
    const Session there = device_session(session);
    print(there, results, options.json);
    return EXIT_DONE;
  }
#endif
  print(session, results, options.json);
  return EXIT_DONE;
}

} // namespace packed
