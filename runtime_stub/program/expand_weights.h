// Of a program packed with --weights=zstd: its weights, expanded when it starts.
#ifndef SVOD_PROGRAM_EXPAND_WEIGHTS_H
#define SVOD_PROGRAM_EXPAND_WEIGHTS_H

#include "runtime_stub/program/session.h"

namespace packed {

// The session's model gets its weights, made by at most `threads` threads; 0: as many as
// the package or the machine says. EXIT_DAMAGED where what is stored is not what was
// packed.
Exit expand_weights(Session& session, uint64_t threads, Printer& errors);
// The notice of zstd, whose decoder is in the program.
void print_zstd_licence(Printer& out);

} // namespace packed

#endif
