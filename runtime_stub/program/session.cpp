// Memory is taken here, once: a run that follows makes no system call but those of
// sleeping threads.
#include "runtime_stub/program/session.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/element_runs.h"
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/words.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#ifdef SVOD_STATES
#include "runtime_stub/states.h"
#endif
#include "runtime_stub/ticks.h"
#ifdef SVOD_DEVICE
#include "runtime_stub/program/device.h"
#endif

namespace packed {

namespace {

// Weights that were packed with --weights=file lie beside the program: its own name and
// ".weights".
bool weights_beside(char* path, uint64_t room) {
  constexpr char kSuffix[] = ".weights";
  int64_t size = svod_program_path(path, room - sizeof(kSuffix));
  if (size < 0) return false;
  memcpy(path + size, kSuffix, sizeof(kSuffix));
  return true;
}

// Why a file that was read is not this program's weights. EXIT_DAMAGED.
Exit wrong_weights(const Session& session, const char* path, const SvodWeightsEnd* end,
                   Printer& errors) {
  const SvodHeader& header = *svod_header(session.model.image);
  errors << "error: " << path;
  if (end == nullptr || memcmp(end->magic, "SVODWTS", sizeof(end->magic)) != 0) {
    errors << ": is no file of weights that svod-pack wrote, or is cut short\n";
  } else if (memcmp(end->model_sha256, header.model_sha256, 32) != 0) {
    errors << ": holds the weights of another model, sha256 ";
    errors.hexadecimal(end->model_sha256, 32) << "; this program's is ";
    errors.hexadecimal(header.model_sha256, 32) << "\n";
  } else {
    errors
        << ": holds the weights of this model as they were packed with other options\n";
  }
  return EXIT_DAMAGED;
}

// The end of the file says whose weights it holds, so that not all must be read to tell.
Exit map_weights(Session& session, const char* path, Printer& errors) {
  const SvodHeader& header = *svod_header(session.model.image);
  if (session.model.weights != nullptr || header.weight_bytes == 0) return EXIT_DONE;
  char beside[1024];
  if (path == nullptr && weights_beside(beside, sizeof(beside))) path = beside;
  if (path == nullptr) {
    print_error(errors, "the path of this program is too long; use --weights");
    return EXIT_FILE;
  }
  Text content;
  int32_t status = read_file(path, content);
  if (status < 0) return file_error(errors, path, "read", -status);
  constexpr uint64_t kEnd = sizeof(SvodWeightsEnd);
  const SvodWeightsEnd* end = nullptr;
  SvodWeightsEnd found;
  if (content.size >= kEnd) {
    memcpy(&found, content.data + (content.size - kEnd), sizeof(found));
    end = &found;
  }
  const bool right = end != nullptr && content.size == header.weight_bytes + kEnd &&
                     memcmp(end->magic, "SVODWTS", sizeof(end->magic)) == 0 &&
                     end->weight_bytes == header.weight_bytes &&
                     end->weight_checksum == header.weight_checksum &&
                     memcmp(end->model_sha256, header.model_sha256, 32) == 0;
  if (!right) return wrong_weights(session, path, end, errors);
  session.model.weights = content.data;
  session.model.weight_bytes = header.weight_bytes;
  return EXIT_DONE;
}

// No more threads than the widest step has chunks.
uint32_t useful_threads(const Session& session) {
  uint32_t most = 1;
  for (uint32_t i = 0; i < session.entry->step_count; i++) {
    uint32_t chunks = svod_step(session.model.image, session.entry, i)->chunks;
    if (chunks > most) most = chunks;
  }
  return most;
}

uint32_t choose_threads(const Session& session, uint64_t asked) {
  uint32_t bound = svod_header(session.model.image)->threads;
  uint64_t threads = asked != 0 ? asked : svod_cpu_count();
  if (bound != 0 && threads > bound) threads = bound;
  uint32_t useful = useful_threads(session);
  if (threads > useful) threads = useful;
  return threads > 256 ? 256 : static_cast<uint32_t>(threads);
}

} // namespace

// Of one string; 32 bits, so that no product wraps.
static uint64_t width_of(const SvodTensor* tensor) {
  return tensor->elements == 0 ? 0 : (tensor->bytes / tensor->elements) & 0xffffffff;
}

void print_error(Printer& errors, Text what) { errors << "error: " << what << "\n"; }

Exit no_memory(Printer& errors) {
  print_error(errors, "there is not enough memory");
  return EXIT_FILE;
}

Text text_of(const Session& session, SvodText text) {
  return {svod_text(session.model.image, text), text.size};
}

Text step_name(const Session& session, const SvodStep& step) {
#ifdef SVOD_DEVICE
  if (step.kind == SVOD_STEP_COPY && step.program == SVOD_COPY_DOWN) return "down";
  if (step.kind == SVOD_STEP_COPY && step.program == SVOD_COPY_UP) return "up";
#endif
  if (step.kind == SVOD_STEP_COPY) return "copy";
  if (step.kind == SVOD_STEP_LOOP) return "loop";
  if (step.kind == SVOD_STEP_IF) return "if";
  return text_of(session, svod_program(session.model.image, step.program)->name);
}

// Why none of the levels, or not the one, can run.
static Exit level_error(const Session& session, Text isa, bool packed, Printer& errors) {
  if (isa.size > 0 && !packed) {
    errors << "error: --isa: " << isa << " is none of the packed levels:";
    for (uint32_t i = 0; i < session.model.level_count; i++) {
      errors << " " << session.model.levels[i].name;
    }
    errors << "\n";
    return EXIT_USAGE;
  }
  errors << "error: this CPU lacks what was packed\n";
  for (uint32_t i = 0; i < session.model.level_count; i++) {
    const SvodLevel& level = session.model.levels[i];
    if (isa.size > 0 && !(isa == Text(level.name))) continue;
    errors << "level " << level.name << " needs ";
    print_missing(errors, level.features);
    errors << "\n";
  }
  return EXIT_CPU;
}

Exit choose_level(Session& session, Text isa, Printer& errors) {
  int32_t level = isa.size > 0 ? -1 : svod_choose_level(&session.model);
  bool packed = false;
  for (uint32_t i = 0; isa.size > 0 && i < session.model.level_count; i++) {
    const SvodLevel& named = session.model.levels[i];
    if (!(isa == Text(named.name))) continue;
    packed = true;
    if (svod_missing_features(named.features) == 0) level = static_cast<int32_t>(i);
  }
  if (level < 0) return level_error(session, isa, packed, errors);
  session.level = static_cast<uint32_t>(level);
  return EXIT_DONE;
}

Exit open_model(Session& session, const char* weights, Printer& errors) {
  svod_get_model(&session.model);
  if (svod_check_image(&session.model) != SVOD_OK) {
    print_error(errors, "the image in this program is damaged");
    return EXIT_DAMAGED;
  }
  const void* image = session.model.image;
  session.entry = svod_entry(image, 0);
  bool fits = svod_header(image)->entries.count > 0 &&
              session.entry->input_count <= kMostTensors &&
              session.entry->output_count <= kMostTensors && values_hold(session);
  for (uint32_t i = 0; fits && i < svod_header(image)->tensors.count; i++) {
    const SvodTensor* tensor = svod_at<SvodTensor>(image, svod_header(image)->tensors, i);
    const Element* element = find_element(tensor->dtype);
    uint64_t bytes = element == nullptr ? 0 : element->bytes(tensor->elements);
    if (element != nullptr && is_text(*element))
      bytes = tensor->elements * width_of(tensor);
    fits = element != nullptr && tensor->bytes == bytes;
  }
  if (!fits) {
    print_error(errors, "the image in this program is of another kind");
    return EXIT_DAMAGED;
  }
#ifdef SVOD_MAKES_WEIGHTS
  return EXIT_DONE; // make_weights makes them, of what does not only ask
#else
  return map_weights(session, weights, errors);
#endif
}

static Tensor type_of(const Session& session, const SvodTensor* tensor) {
  Tensor out;
  out.name = text_of(session, tensor->name);
  out.element = find_element(tensor->dtype);
  if (is_text(*out.element)) out.width = width_of(tensor);
  out.rank = tensor->rank;
  const int64_t* dims = svod_dims(session.model.image, tensor);
  for (uint32_t i = 0; i < tensor->rank; i++) out.dims[i] = dims[i];
  return out;
}

Tensor input_type(const Session& session, uint32_t i) {
  return type_of(session, svod_input(session.model.image, session.entry, i));
}

// The extents of a run, for an output that has its own; null without.
static const int64_t* extents_of(const Session& session, const SvodTensor* tensor) {
  if (tensor->shape_output == 0 || tensor->role == SVOD_ROLE_STATE) return nullptr;
  return static_cast<const int64_t*>(session.outputs[tensor->shape_output - 1]);
}

Tensor output_type(const Session& session, uint32_t i) {
  const SvodTensor* tensor = svod_output(session.model.image, session.entry, i);
  Tensor out = type_of(session, tensor);
  if (session.outputs != nullptr) out.data = session.outputs[i];
  const int64_t* extents = session.settled ? extents_of(session, tensor) : nullptr;
  for (uint32_t axis = 0; extents != nullptr && axis < out.rank; axis++) {
    out.dims[axis] = extents[axis];
  }
  return out;
}

uint32_t model_outputs(const Session& session) {
  uint32_t count = 0;
  while (count < session.entry->output_count &&
         svod_output(session.model.image, session.entry, count)->role == SVOD_ROLE_MODEL)
    count++;
  return count;
}

static uint64_t state_bytes([[maybe_unused]] const Session& session) {
#ifdef SVOD_STATES
  return svod_states_bytes(session.model.image, session.entry);
#else
  return 0;
#endif
}

Tensor packed_value(const Session& session, uint32_t i) {
  const SvodTensor* tensor = svod_input(session.model.image, session.entry, i);
  Tensor out = type_of(session, tensor);
  if (tensor->fixed.size > 0) out.data = svod_text(session.model.image, tensor->fixed);
  return out;
}

// Moves the elements together that lie within the extents. Their places only go down, so
// front to back none is overwritten before it has moved.
static void pack_elements(uint8_t* data, const Tensor& bounds, const int64_t* extents) {
  const Element& element = *bounds.element;
  const uint64_t bytes = bounds.element_bytes();
  each_run(bounds, extents, [&](uint64_t apart, uint64_t together, uint64_t count) {
    if (apart == together) return;
    if (element.packed()) {
      store_bits(element, data, together, load_bits(element, data, apart));
    } else {
      memmove(data + together * bytes, data + apart * bytes,
              static_cast<size_t>(count * bytes));
    }
  });
}

// False when a run gave extents beyond their bounds.
static bool settle(Session& session) {
  session.settled = false;
  for (uint32_t i = 0; i < session.entry->output_count; i++) {
    const SvodTensor* tensor = svod_output(session.model.image, session.entry, i);
    const int64_t* extents = extents_of(session, tensor);
    if (extents == nullptr) continue;
    Tensor bounds = type_of(session, tensor);
    for (uint32_t axis = 0; axis < bounds.rank; axis++) {
      if (extents[axis] < 0 || extents[axis] > bounds.dims[axis]) return false;
    }
    pack_elements(static_cast<uint8_t*>(session.outputs[i]), bounds, extents);
  }
  session.settled = true;
  return true;
}

uint64_t arena_bytes(const Session& session, uint32_t threads) {
  return SVOD_ARENA_NOTES + state_bytes(session) +
         svod_arena_bytes(session.model.image, session.entry, threads);
}

// Runs of loops take the time that the data asks for, so no two of them compare.
static bool has_loops(const Session& session) {
  for (uint32_t i = 0; i < session.entry->step_count; i++) {
    const uint32_t kind = svod_step(session.model.image, session.entry, i)->kind;
    if (kind == SVOD_STEP_LOOP || kind == SVOD_STEP_IF) return true;
  }
  return false;
}

Exit prepare(Session& session, const SessionOptions& options, Printer& errors) {
  Exit status = choose_level(session, options.isa, errors);
  if (status != EXIT_DONE) return status;
  session.threads = choose_threads(session, options.threads);
  session.arena_bytes = arena_bytes(session, session.threads);
#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
  // Runs go from entry to entry as states grow, in the same memory.
  for_each_entry(session, [&](const Session& other) {
    const uint64_t bytes = arena_bytes(other, session.threads);
    if (bytes > session.arena_bytes) session.arena_bytes = bytes;
  });
#endif
  const SvodEntry& entry = *session.entry;
  const uint64_t pointers = uint64_t{entry.input_count} + entry.output_count;
  auto memory =
      static_cast<uint8_t*>(take_memory(session.arena_bytes + pointers * sizeof(void*)));
  bool all = memory != nullptr;
  if (!all) return no_memory(errors);
  session.arena = memory;
  session.outputs = reinterpret_cast<void**>(memory + session.arena_bytes);
  session.inputs = const_cast<const void**>(session.outputs) + entry.output_count;
  // A first run touches all of it: resnet50's 2600 pages take 2 ms, five large ones 0.5.
  svod_want_large_pages(session.arena, session.arena_bytes);
  if (session.threads > 1) {
    void* pool = take_memory(svod_pool_bytes(session.threads));
    all = pool != nullptr;
    if (all) session.pool = svod_pool_make(pool, session.threads);
    session.always_shares = has_loops(session);
  }
#ifdef SVOD_STATES
  session.states = static_cast<uint8_t*>(session.arena) + SVOD_ARENA_NOTES;
  session.state_bytes = state_bytes(session);
  session.forgets = options.forgets;
#endif
  for (uint32_t i = 0; i < entry.output_count; i++) {
    const SvodTensor* output = svod_output(session.model.image, &entry, i);
    if (output->role == SVOD_ROLE_STATE) continue;
    uint64_t bytes = output->bytes;
#if defined(SVOD_STATES) && defined(SVOD_SEVERAL_ENTRIES)
    for_each_entry(session, [&](const Session& other) {
      const SvodTensor* there = svod_output(session.model.image, other.entry, i);
      if (there->bytes > bytes) bytes = there->bytes;
    });
#endif
    session.outputs[i] = take_memory(bytes);
    all = all && session.outputs[i] != nullptr;
  }
  return all ? EXIT_DONE : no_memory(errors);
}

#ifdef SVOD_DEVICE
static Exit run_there(Session& session, Printer& errors) {
  const Exit status = run_on_device(session, errors);
  if (status != EXIT_DONE || settle(session)) return status;
  print_error(errors, "a result is larger than its bound");
  return EXIT_INDEX;
}
#endif

Exit print_failure(const Session& session, int32_t status, uint32_t failed_step,
                   Printer& errors) {
  if (status != SVOD_INDEX && status != SVOD_LIMIT) {
    errors << "error: the run failed with status " << status << "\n";
    return EXIT_DAMAGED;
  }
  const SvodStep* step = svod_step(session.model.image, session.entry, failed_step);
  const bool is_loop = step->kind == SVOD_STEP_LOOP;
  if (status == SVOD_LIMIT && !is_loop) {
    errors
        << "error: a picture in the data is larger than was packed (pack with a larger "
           "--limit-image), in node ";
  } else if (status == SVOD_LIMIT) {
    errors << "error: the data asks for more than the "
           << svod_region(session.model.image, step)->limit
           << " iterations that were packed, in the loop of node ";
  } else {
    Text left_out = manifest_text(session, "\"left_out\": ");
    errors << "error: an index in the data is out of range";
    if (text_of(session, step->sources).starts_with("--dim "))
      errors
          << ", or the inputs do not agree on a size that was left open, or it is less "
             "than was packed";
    if (left_out.size > 0)
      errors << ", or this run takes what was left out when packing (" << left_out << ")";
    errors << ", in kernel "
           << text_of(session, svod_program(session.model.image, step->program)->name)
           << " of node ";
  }
  errors.name(text_of(session, step->sources));
  errors << "\n";
  return EXIT_INDEX;
}

Exit run(Session& session, Printer& errors) {
#ifdef SVOD_DEVICE
  if (session.device != nullptr) return run_there(session, errors);
#endif
  SvodRun run = {};
  run.model = &session.model;
  run.entry = session.entry;
  run.level = session.level;
  run.threads = session.threads;
  uint64_t before = SVOD_ARENA_NOTES;
#ifdef SVOD_STATES
  before += session.state_bytes;
#endif
  run.arena = static_cast<uint8_t*>(session.arena) + before;
  run.arena_bytes = session.arena_bytes - before;
  run.inputs = session.inputs;
  run.outputs = session.outputs;
  // A profile is of what it was asked for.
  const bool asks =
      session.pool != nullptr && !session.always_shares && session.step_done == nullptr;
  const bool shared = session.pool != nullptr && (!asks || session.sharing.shares());
  run.parallel = shared ? svod_pool_run : nullptr;
  run.pool = session.pool;
  run.step_done = session.step_done;
  run.listener = session.listener;
  const uint64_t waited = asks ? svod_pool_waited(session.pool) : 0;
  const uint64_t begin = asks ? svod_ticks() : 0;
#ifdef SVOD_STATES
  if (session.forgets) reset_states(session);
  if (const Exit full = check_full(session, errors); full != EXIT_DONE) return full;
  svod_bind_states(session.model.image, session.entry, session.states, session.inputs,
                   session.outputs);
#endif
  int32_t status = svod_replay(&run);
#ifdef SVOD_STATES
  if (status == SVOD_OK && !session.repeats)
    svod_keep_states(session.model.image, session.entry, session.states);
#endif
  if (asks)
    session.sharing.took(svod_ticks() - begin, svod_pool_waited(session.pool) - waited);
  if (status == SVOD_OK && settle(session)) return EXIT_DONE;
  if (status == SVOD_OK) {
    print_error(errors, "a result is larger than its bound");
    return EXIT_INDEX;
  }
#ifdef SVOD_PICTURES
  const SvodStep* at = svod_step(session.model.image, session.entry, run.failed_step);
  if (picture_of(session, *at) < session.entry->input_count)
    return picture_error(session, *at, status, run.arena, errors);
#endif
  return print_failure(session, status, run.failed_step, errors);
}

} // namespace packed
