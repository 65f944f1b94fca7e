// One packed model, ready to run: image checked, CPU level chosen, arena and pool made.
#ifndef SVOD_PROGRAM_SESSION_H
#define SVOD_PROGRAM_SESSION_H

#include "runtime_stub/cpu.h"
#include "runtime_stub/pool.h"
#include "runtime_stub/program/sharing.h"
#include "runtime_stub/program/tensor.h"

#ifdef SVOD_DEVICE
namespace svod_device {
struct Device;
}
#endif

namespace packed {

// What the program ends with; numbers are INTERFACE's.
enum Exit : int32_t {
  EXIT_DONE = 0,
  EXIT_BAD_DATA = 1,
  EXIT_USAGE = 2,
  EXIT_FILE = 4,
  EXIT_MISMATCH = 7,
  EXIT_CPU = 9,
  EXIT_DAMAGED = 10,
  EXIT_INDEX = 11,
};

constexpr uint32_t kMostTensors = 1024; // inputs, and outputs

#ifdef SVOD_DEVICE
enum class RunsOn : uint8_t { Auto, Cpu, Gpu };
#endif

struct SessionOptions {
  Text isa;             // empty: the best that runs
  uint64_t threads = 0; // 0: what the package or the machine says
#ifdef SVOD_STATES
  bool forgets = false; // every run begins with states of zeros
#endif
#ifdef SVOD_DEVICE
  RunsOn place = RunsOn::Auto;
#endif
};

struct Session {
  SvodModel model;
  const SvodEntry* entry = nullptr;
  uint32_t level = 0;
  uint32_t threads = 1;
  void* arena = nullptr;
  uint64_t arena_bytes = 0;
  SvodPool* pool = nullptr;
  Sharing sharing; // of runs between the pool's threads
  bool always_shares = false;
  const void** inputs = nullptr; // behind the arena
  void** outputs = nullptr;
#ifdef SVOD_STATES
  void* states = nullptr; // their memory (states.h)
  uint64_t state_bytes = 0;
  bool forgets = false;
  bool repeats = false; // each run begins with the states that the one before began with
#endif
  SvodStepDone step_done = nullptr; // for profiles
  void* listener = nullptr;
  uint32_t failed_step = 0;
#ifdef SVOD_DEVICE
  svod_device::Device* device = nullptr; // where runs are on a GPU
#endif
  Text* origins = nullptr; // of inputs that are pictures: files, for messages
  bool settled = false;    // outputs have the extents of a run that has ended
};

// Prints the reason on `errors` when the result is not EXIT_DONE, as all of these.
// The model, checked; nothing else of the session is used before. `weights`: the file of
// weights that are not in the program, null: the one beside it.
Exit open_model(Session& session, const char* weights, Printer& errors);
// The level that is asked for, or the best that runs here.
Exit choose_level(Session& session, Text isa, Printer& errors);
// What this CPU lacks of SvodCpuFeature bits.
void print_missing(Printer& out, uint32_t needed);
// The packer's bytes.arena for one thread.
uint64_t arena_bytes(const Session& session, uint32_t threads);
// Level, threads, arena, pool, and memory for the outputs. `entry` is set.
Exit prepare(Session& session, const SessionOptions& options, Printer& errors);
// Inputs and outputs are set.
Exit run(Session& session, Printer& errors);
// Says why a step ended a run, and what the program ends with.
Exit print_failure(const Session& session, int32_t status, uint32_t failed_step,
                   Printer& errors);

Tensor input_type(const Session& session, uint32_t i); // name and type, no data
// With data, once prepared. Before a run, extents that depend on the data are their
// bounds.
Tensor output_type(const Session& session, uint32_t i);
// The model's outputs come first, then its states, then those that hold extents.
uint32_t model_outputs(const Session& session);
// States of zeros; nothing where there are none.
void reset_states(Session& session);
// Input `i`, a state, begins the next run as this tensor.
void set_state(Session& session, uint32_t i, const Tensor& tensor);
#ifdef SVOD_STATES
// Measures one step: its states do not grow. Where none that grow is given they hold the
// most rows that a run may begin with.
void repeat_step(Session& session);
// Whether a run may begin with the rows that its states hold.
Exit check_full(const Session& session, Printer& errors);
#endif
// The entry of the next run is the first that has room for what the states hold; nothing
// where there is one entry, or no state.
void enter_next(Session& session);
// Name and type of an input in the next run, where it follows from the rows that states
// hold; else of the largest.
Tensor counted_type(const Session& session, uint32_t i);
template <class Do> void for_each_entry(const Session& session, const Do& run) {
  for (uint32_t e = 0; e < svod_header(session.model.image)->entries.count; e++) {
    Session other = session;
    other.entry = svod_entry(session.model.image, e);
    run(other);
  }
}
// What an input was packed for, with data; no data: any value.
Tensor packed_value(const Session& session, uint32_t i);
Text text_of(const Session& session, SvodText text);
// A text of the manifest by its key ("\"license\": "); empty: there is none.
Text manifest_text(const Session& session, Text key);
// "k3", "copy", "loop" or "if".
Text step_name(const Session& session, const SvodStep& step);
void print_error(Printer& errors, Text what);
Exit no_memory(Printer& errors);

} // namespace packed

#endif
