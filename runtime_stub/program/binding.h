// Which data each input gets and where each output goes, from the words of the command
// line.
#ifndef SVOD_PROGRAM_BINDING_H
#define SVOD_PROGRAM_BINDING_H

#include "runtime_stub/program/options.h"

namespace packed {

struct Path;

// Sets session.inputs from --input and positional words. `fill`: inputs without a word
// get random data; else they are an error.
Exit bind_inputs(Session& session, const Options& options, bool fill, Printer& errors);

// Of these the inputs that words give or that were packed for one value; others are null.
Exit bind_words(Session& session, const Options& options, Printer& errors);

// The inputs that no word gives, once bind_words is done: each of many runs has its own.
class FreeInputs {
public:
  explicit FreeInputs(const Session& session);
  bool has(uint32_t i) const { return (bits_[i / 64] >> i % 64 & 1) != 0; }
  bool any() const;
  void clear(Session& session) const; // they have no data again

private:
  uint64_t bits_[kMostTensors / 64] = {};
};
// A file, as a positional word is: a tensor, a value or an archive.
Exit bind_path(Session& session, const char* path, Printer& errors);
// Input `i`, from a file that is there.
Exit bind_file(Session& session, uint32_t i, const char* path, Printer& errors);
// Whether every input has data; `origin` is named if not.
Exit check_given(const Session& session, Text origin, Printer& errors);

// With --finite, whether all inputs are finite numbers.
Exit check_finite(const Session& session, const Options& options, Printer& errors);

// Gives input `i` this tensor when its type is right; `origin` is named if not.
Exit bind_input(Session& session, uint32_t i, const Tensor& tensor, Text origin,
                Printer& errors);

// Whether every --output names an output and says how to write it.
Exit check_outputs(const Session& session, const Options& options, Printer& errors);
// Writes all outputs of one of many runs to the path and a suffix: .npy of a tensor, .pb
// of another value, .npz of several.
Exit write_answer(const Session& session, Path& path, Printer& errors);
// Writes or prints the outputs.
Exit write_outputs(const Session& session, const Options& options, Printer& errors);

// axes = [1, 2], of an input that was packed for one value.
void print_packed_value(Printer& out, const Session& session, uint32_t i);

} // namespace packed

#endif
