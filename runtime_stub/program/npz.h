// All inputs from one archive, all outputs into one.
#ifndef SVOD_PROGRAM_NPZ_H
#define SVOD_PROGRAM_NPZ_H

#include "runtime_stub/program/archive.h"
#include "runtime_stub/program/value.h"

namespace packed {

// Gives each input that has no data its member: NAME.npy, or else by its number
// arr_0.npy. Inputs that the archive does not have are left as they are; one that has
// none of them is an error.
Exit bind_archive(Session& session, const char* path, Printer& errors);

// Where input `i` is in the archive; false: it has no such member.
bool find_input_member(const Archive& archive, const Tensor& input, uint32_t i,
                       Member& member);

// Why outputs `first` to `end` cannot be in an archive; null: they can.
const char* unfit_for_archive(const Session& session, uint32_t first, uint32_t end);
// Writes them, those that are there. False: there is no memory, nothing was written.
bool write_archive(Printer& out, const Session& session, uint32_t first, uint32_t end);

} // namespace packed

#endif
