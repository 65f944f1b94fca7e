// Of a program that was packed for several sets of shapes: which of its entries a run
// takes. A program with one entry is built without it.
#ifndef SVOD_PROGRAM_ENTRIES_H
#define SVOD_PROGRAM_ENTRIES_H

#include "runtime_stub/program/options.h"

namespace packed {

// --entry NAME, which is no option of other programs, is taken out of the words. No data:
// it is not there.
Text take_entry_name(int32_t& argc, char** argv);
void print_entry_help(Printer& out);
// The session gets its entry. `done`: the mode was that of all entries, and is over.
Exit enter(Session& session, const Options& options, Text name, bool& done,
           Printer& errors);

} // namespace packed

#endif
