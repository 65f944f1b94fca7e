// Time per kernel: the replay tells after each step, so a step's time is the gap between
// two tellings. The fastest of many runs counts, since what disturbs only adds.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/modes.h"

namespace packed {

namespace {

struct Listener {
  uint64_t last;
  uint64_t* fastest; // per step
};

void on_step(void* context, uint32_t step) {
  auto& listener = *static_cast<Listener*>(context);
  uint64_t now = svod_now();
  uint64_t took = now - listener.last;
  if (took < listener.fastest[step]) listener.fastest[step] = took;
  listener.last = now;
}

void print_step(Printer& out, const Session& session, const SvodStep& step, uint64_t took,
                uint64_t total) {
  double nanoseconds = static_cast<double>(took == 0 ? 1 : took);
  if (step.kind == SVOD_STEP_COPY) {
    out << "copy";
  } else {
    out << text_of(session, svod_program(session.model.image, step.program)->name);
  }
  out.column(8).fixed(nanoseconds / 1e3, 2);
  out.column(20).fixed(100 * nanoseconds / static_cast<double>(total), 1);
  out.column(28) << step.flops;
  out.column(42).fixed(static_cast<double>(step.flops) / nanoseconds, 2);
  out.column(51) << step.bytes;
  out.column(64).fixed(static_cast<double>(step.bytes) / nanoseconds, 2);
  out.column(73).name(text_of(session, step.sources)) << "\n";
}

} // namespace

Exit profile(Session& session, const Options& options, Printer& errors) {
  uint32_t steps = session.entry->step_count;
  Listener listener = {0, static_cast<uint64_t*>(take_memory((steps + 1) * 8))};
  if (listener.fastest == nullptr) {
    print_error(errors, "there is not enough memory");
    return EXIT_FILE;
  }
  for (uint32_t s = 0; s < steps; s++) listener.fastest[s] = ~uint64_t{0};
  session.step_done = on_step;
  session.listener = &listener;
  auto measure = static_cast<uint64_t>(options.min_time * 1e9);
  uint64_t start = svod_now(), runs = 0;
  do {
    listener.last = svod_now();
    Exit status = run(session, errors);
    if (status != EXIT_DONE) return status;
    runs++;
  } while (svod_now() - start < measure);
  uint64_t total = 0;
  for (uint32_t s = 0; s < steps; s++) total += listener.fastest[s];
  if (total == 0) total = 1;
  Printer out(1);
  out << "kernel      us      share % flops         GFLOP/s  bytes        GB/s     "
         "nodes\n";
  for (uint32_t s = 0; s < steps; s++) {
    print_step(out, session, *svod_step(session.model.image, session.entry, s),
               listener.fastest[s], total);
  }
  out << "total";
  out.column(8).fixed(static_cast<double>(total) / 1e3, 2)
      << " us, best of " << runs << " runs\n";
  return EXIT_DONE;
}

} // namespace packed
