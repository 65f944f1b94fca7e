// Records on standard input, answers on standard output: one program serves a pipe, with
// no file and no start between two runs. A record is the inputs that no word of the
// command line gives, in the model's order, each as it lies in memory: row-major, little
// endian. An answer is all outputs likewise, and is written before the next record is
// read.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/modes.h"
#include "runtime_stub/program/open_inputs.h"
#ifdef SVOD_PICTURES
#include "runtime_stub/program/pictures.h"
#endif
#include "runtime_stub/program/tensor_file.h"
#include "runtime_stub/program/value.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

// Why records cannot hold the side's values; empty: they can.
Text unfit(const Session& session, Side side) {
  for (uint32_t k = 0, count = value_count(session, side); k < count; k++) {
    const Value value = value_at(session, side, k);
    if (!value.is_tensor() || value.has(SVOD_VALUE_OPTIONAL))
      return "sequences, maps and optionals have no fixed size";
    for (uint32_t i = 0; i < value.count; i++)
      if (is_text(*tensor_at(session, side, value.first + i).element))
        return "strings have no fixed size";
  }
  if (side == Side::Output &&
      model_outputs(session) + session.entry->state_count != session.entry->output_count)
    return "an output's size depends on the data";
  return {};
}

// The most that a record has of an input, whichever entry its run takes. What it has is
// counted_type(), where that follows from the rows that states hold.
uint64_t largest_bytes(const Session& session, uint32_t i) {
  uint64_t most = 0;
  for_each_entry(session, [&](const Session& at_entry) {
    const uint64_t bytes = input_type(at_entry, i).bytes();
    if (bytes > most) most = bytes;
  });
  return most;
}

// Memory for the inputs that no word gave, of `bytes` in all, and for the elements of one
// as they come; false: there is too little.
bool make_record(Session& session, const FreeInputs& streamed, uint64_t& bytes,
                 void*& elements) {
  uint64_t most = 0;
  for (uint32_t i = 0; i < session.entry->input_count; i++) {
    if (!streamed.has(i)) continue;
    const uint64_t size = largest_bytes(session, i);
    if ((session.inputs[i] = take_memory(size)) == nullptr) return false;
    bytes += size;
    if (is_open(session, i) && size > most) most = size;
  }
  elements = take_memory(most);
  return elements != nullptr;
}

Exit cannot_stream(Text why, Printer& errors) {
  errors << "error: --stream: " << why << "\n";
  return EXIT_USAGE;
}

struct Read {
  int64_t got = 0;    // bytes that were read, or a negative errno
  uint64_t bytes = 0; // of the record
};

// Fewer bytes than the record has where standard input ends.
Read read_record(Session& session, const FreeInputs& streamed, void* elements) {
  Read done;
  for (uint32_t i = 0; i < session.entry->input_count; i++) {
    if (!streamed.has(i)) continue;
    Tensor type = counted_type(session, i);
    const uint64_t size = type.bytes();
    done.bytes += size;
    if (done.got < 0 || static_cast<uint64_t>(done.got) + size < done.bytes) continue;
    const bool open = is_open(session, i);
    void* to = open ? elements : const_cast<void*>(session.inputs[i]);
    const int64_t got = svod_read(0, to, size);
    done.got = got < 0 ? got : done.got + got;
    type.data = to;
    if (open && got >= 0) spread_elements(session, i, type);
  }
  return done;
}

Exit write_answer(const Session& session, Printer& errors) {
  for (uint32_t i = 0; i < model_outputs(session); i++) {
    const Tensor tensor = output_type(session, i);
    const int64_t put = svod_write(1, tensor.data, tensor.bytes());
    if (put < 0)
      return file_error(errors, "standard output", "written", static_cast<int32_t>(-put));
  }
  return EXIT_DONE;
}

} // namespace

Exit stream(Session& session, const Options& options, Printer& errors) {
  if (options.output_count > 0)
    return cannot_stream("outputs go to standard output, not to --output", errors);
  constexpr Side kSides[] = {Side::Input, Side::Output};
  for (Side side : kSides)
    if (const Text why = unfit(session, side); why.size > 0)
      return cannot_stream(why, errors);
  Exit status = bind_words(session, options, errors);
  if (status != EXIT_DONE) return status;
  const FreeInputs streamed(session);
#ifdef SVOD_PICTURES
  if (has_picture(session, streamed)) return cannot_stream(kNoStreamOfPictures, errors);
#endif
  uint64_t bytes = 0;
  void* elements = nullptr;
  if (!make_record(session, streamed, bytes, elements)) return no_memory(errors);
  if (bytes == 0) return cannot_stream("no input is left for the records", errors);
  for (uint64_t number = 0;; number++) {
    enter_next(session);
    const auto [got, size] = read_record(session, streamed, elements);
    if (got == 0) return EXIT_DONE;
    if (got < 0)
      return file_error(errors, "standard input", "read", static_cast<int32_t>(-got));
    if (static_cast<uint64_t>(got) < size) {
      errors << "error: standard input ends within record " << number << ", after "
             << static_cast<uint64_t>(got) << " of " << size << " bytes\n";
      return EXIT_BAD_DATA;
    }
    status = check_finite(session, options, errors);
    if (status == EXIT_DONE) status = run(session, errors);
    if (status == EXIT_DONE) status = write_answer(session, errors);
    if (status != EXIT_DONE) return status;
  }
}

} // namespace packed
