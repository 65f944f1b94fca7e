// Inputs of which a run decides sizes. Dims of such an input are the most that it can
// have; its elements lie as in a tensor of these, and another input, which the program
// makes itself, holds its extents.
#ifndef SVOD_PROGRAM_OPEN_INPUTS_H
#define SVOD_PROGRAM_OPEN_INPUTS_H

#include "runtime_stub/program/session.h"

namespace packed {

// The inputs of the model come first, then those that hold extents.
uint32_t model_inputs(const Session& session);
bool is_open(const Session& session, uint32_t i);
// What an earlier run left, not what the caller gives.
bool is_state(const Session& session, uint32_t i);
// Whether input `i` takes these extents.
bool takes_shape(const Session& session, uint32_t i, const Tensor& tensor);
bool takes_type(const Session& session, uint32_t i, const Tensor& tensor);
// No input has data; open ones have the most extents. False: there is too little memory.
bool clear_inputs(Session& session);
// Input `i`, which is open, has this tensor's extents and a copy of its elements, with
// zeros around them. False: there is too little memory.
bool spread_input(Session& session, uint32_t i, const Tensor& tensor);
// The same, into the memory that the input has.
void spread_elements(Session& session, uint32_t i, const Tensor& tensor);
void set_extents(Session& session, uint32_t i, const Tensor& tensor);
// Name and type of input `i` as large as a run may be given it.
Tensor most_of(const Session& session, uint32_t i);
// f32[1,512], at most
void print_input_type(Printer& out, const Session& session, uint32_t i);

} // namespace packed

#endif
