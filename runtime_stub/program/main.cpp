// A packed program: reads its words, then does one thing. Everything it says goes to
// standard output, everything that is wrong to standard error.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/entries.h"
#include "runtime_stub/program/modes.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/program/device.h"
#endif
#ifdef SVOD_MAKES_WEIGHTS
#include "runtime_stub/program/make_weights.h"
#endif

namespace packed {

namespace {

Exit self_check(Session& session, Printer& errors) {
#ifdef SVOD_MAKES_WEIGHTS
  if (Exit status = make_all_weights(session, errors); status != EXIT_DONE) return status;
#endif
  if (svod_check_bytes(&session.model) != SVOD_OK) {
    print_error(errors, "checksums of image or weights are wrong");
    return EXIT_DAMAGED;
  }
  Printer(1) << "image and weights are as they were packed\n";
  return EXIT_DONE;
}

Exit run_once(Session& session, const Options& options, Printer& errors) {
  Exit status = check_finite(session, options, errors);
  if (status == EXIT_DONE) status = run(session, errors);
  return status == EXIT_DONE ? write_outputs(session, options, errors) : status;
}

Exit run_mode(Session& session, Options& options, Printer& errors) {
  if (options.mode == Mode::SelfCheck) return self_check(session, errors);
  if (options.mode == Mode::Info) {
    print_info(session, options.json);
#ifdef SVOD_DEVICE
    if (!options.json) print_devices();
#endif
    return EXIT_DONE;
  }
  if (options.mode == Mode::CpuCheck) return check_cpu(session, options.session, errors);
  Exit status = prepare(session, options.session, errors);
#ifdef SVOD_DEVICE
  if (status == EXIT_DONE) status = open_device(session, options.session.place, errors);
#endif
#ifdef SVOD_MAKES_WEIGHTS
  if (status == EXIT_DONE)
    status = make_weights(session, options.session.threads, errors);
#endif
  if (status != EXIT_DONE) return status;
  if (options.labels.path != nullptr)
    status = read_labels(session, options.labels, errors);
  if (status != EXIT_DONE) return status;
  if (options.mode == Mode::Verify) return verify(session, options, errors);
#ifdef SVOD_WITH_BATCH
  if (options.mode == Mode::Batch) return batch(session, options, errors);
#endif
#ifdef SVOD_WITH_JSONL
  if (options.mode == Mode::Stream && options.json)
    return json_lines(session, options, errors);
#endif
  if (options.mode == Mode::Stream) return stream(session, options, errors);
  // A wrong name must cost neither the reading of inputs nor the run.
  if (options.mode == Mode::Run) status = check_outputs(session, options, errors);
  if (status != EXIT_DONE) return status;
  // Times hardly depend on values, so measuring needs no data.
  status = bind_inputs(session, options, options.mode != Mode::Run, errors);
  if (status != EXIT_DONE) return status;
#ifdef SVOD_STATES
  if (options.mode != Mode::Run) repeat_step(session);
#endif
  if (options.mode == Mode::Bench) return bench(session, options, errors);
#ifdef SVOD_WITH_TRACE
  if (options.trace) return trace(session, errors);
#endif
  if (options.mode == Mode::Profile) return profile(session, options, errors);
  return run_once(session, options, errors);
}

Text last_part(Text path) {
  for (uint64_t i = path.size; i > 0; i--) {
    if (path.data[i - 1] == '/') return path.from(i);
  }
  return path;
}

Exit start(int32_t argc, char** argv) {
  Printer errors(2);
  Text program = argc > 0 ? Text(argv[0]) : Text("infer");
  Options options;
#ifdef SVOD_SEVERAL_ENTRIES
  const Text entry = take_entry_name(argc, argv);
#endif
#ifdef SVOD_DEVICE
  if (!take_device_name(argc, argv, options.session.place)) {
    print_error(errors, "--device is one of auto, cpu, cuda");
    return EXIT_USAGE;
  }
#endif
  Exit status = read_options(argc, argv, options, errors);
  if (status != EXIT_DONE) return status;
  if (options.mode == Mode::Help) {
    Printer out(1);
    print_help(out, last_part(program));
#ifdef SVOD_SEVERAL_ENTRIES
    print_entry_help(out);
#endif
#ifdef SVOD_DEVICE
    print_device_help(out);
#endif
    return EXIT_DONE;
  }
#ifndef SVOD_DEVICE
  // A driver of a GPU makes calls of its own.
  if (!options.unsecure)
    svod_keep_to_own_calls(options.output_count > 0 || options.output_folder != nullptr);
#endif
  Session session;
  status = open_model(session, options.weights, errors);
  if (status != EXIT_DONE) return status;
  if (options.mode == Mode::Version) {
    print_version(session);
    return EXIT_DONE;
  }
  if (options.mode == Mode::Licenses) {
    print_licenses(session);
    return EXIT_DONE;
  }
#ifdef SVOD_SEVERAL_ENTRIES
  bool done = false;
  status = enter(session, options, entry, done, errors);
  if (done || status != EXIT_DONE) return status;
#endif
  return run_mode(session, options, errors);
}

} // namespace

} // namespace packed

int32_t svod_main(int32_t argc, char** argv, char**) { return packed::start(argc, argv); }
