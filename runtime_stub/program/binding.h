// Which data each input gets and where each output goes, from the words of the command
// line.
#ifndef SVOD_PROGRAM_BINDING_H
#define SVOD_PROGRAM_BINDING_H

#include "runtime_stub/program/options.h"

namespace packed {

// Sets session.inputs from --input and positional words. `fill`: inputs without a word
// get random data; else they are an error.
Exit bind_inputs(Session& session, const Options& options, bool fill, Printer& errors);

// Gives input `i` this tensor when its type is right; `origin` is named if not.
Exit bind_input(Session& session, uint32_t i, const Tensor& tensor, Text origin,
                Printer& errors);

// Writes or prints the outputs.
Exit write_outputs(const Session& session, const Options& options, Printer& errors);

// axes = [1, 2], of an input that was packed for one value.
void print_packed_value(Printer& out, const Session& session, uint32_t i);

// Uniform in [-1, 1) for floats; all values of integers of a byte and less, 0 and 1 of
// wider ones.
bool fill_random(const Tensor& type, uint64_t seed, Tensor& out);

// Number of the tensor that `word` starts with the name or number of, followed by =;
// `rest` is what follows. count when there is none.
uint32_t find_named(Text word, uint32_t count, const Session& session,
                    Tensor (*type)(const Session&, uint32_t), Text& rest);

} // namespace packed

#endif
