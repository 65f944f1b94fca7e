// Values that stand in the command line itself: random, zeros, 1x3xf32=[1 2 3].
#ifndef SVOD_PROGRAM_LITERAL_H
#define SVOD_PROGRAM_LITERAL_H

#include "runtime_stub/program/tensor.h"

namespace packed {

// 1x3xf32, what stands in front of =[...]
bool read_literal_type(Text text, Tensor& out);
// A whole literal; one value stands for all. Why it is none, or null.
const char* read_literal(Text text, Tensor& out);

// One number or truth value as text into element `i`; false: it is malformed.
bool store_word(const Element& element, void* data, uint64_t i, Text word);

// Uniform in [-1, 1) for floats; all values of integers of a byte and less, 0 and 1 of
// wider ones.
bool fill_random(const Tensor& type, uint64_t seed, Tensor& out);

} // namespace packed

#endif
