// Of a program whose weights are stored in another form than kernels read: memory is
// filled with them when it starts.
#ifndef SVOD_PROGRAM_MAKE_WEIGHTS_H
#define SVOD_PROGRAM_MAKE_WEIGHTS_H

#include "runtime_stub/program/session.h"

namespace packed {

// The session's model gets the weights that its entry reads, made by at most `threads`
// threads; 0: as many as the package or the machine says. EXIT_DAMAGED where what is
// stored is not what was packed.
Exit make_weights(Session& session, uint64_t threads, Printer& errors);
// The whole section, whoever reads it.
Exit make_all_weights(Session& session, Printer& errors);

// What is stored, and what becomes of it.
struct WeightMaking {
  const uint8_t* stored;
  uint64_t bytes;
  uint8_t* weights;
  uint64_t weight_bytes;
  uint64_t entries;         // one bit for each entry that reads what is made
  uint32_t parts;           // that know nothing of each other
  uint64_t workspace_bytes; // that a part needs
};

// Of the form that the program has, zstd_weights.cpp or expanded_weights.cpp. False: what
// is stored is damaged.
bool open_stored(WeightMaking& all); // says the last two
bool make_part(const WeightMaking& all, uint32_t part, uint8_t* workspace);

// The notice of zstd, whose decoder is in a program of that form.
void print_zstd_licence(Printer& out);

} // namespace packed

#endif
