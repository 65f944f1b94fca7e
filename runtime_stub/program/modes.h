// What a packed program can do besides a plain run.
#ifndef SVOD_PROGRAM_MODES_H
#define SVOD_PROGRAM_MODES_H

#include "runtime_stub/program/options.h"

namespace packed {

// Compares with a test data set, or with every test_data_set_N of a folder.
Exit verify(Session& session, const Options& options, Printer& errors);
Exit verify_set(Session& session, Text folder, const Options& options, Printer& out,
                Printer& errors);
Exit bench(Session& session, const Options& options, Printer& errors);
// Runs on records of standard input until it ends.
Exit stream(Session& session, const Options& options, Printer& errors);
// Likewise, of JSON, a record a line.
Exit json_lines(Session& session, const Options& options, Printer& errors);
// Runs on each input in a folder.
Exit batch(Session& session, const Options& options, Printer& errors);
Exit profile(Session& session, const Options& options, Printer& errors);
// When each kernel of a few runs ran, for viewers of traces.
Exit trace(Session& session, Printer& errors);
void print_info(const Session& session, bool json);
void print_version(const Session& session);
void print_licenses(const Session& session); // of all that is in the file
// Which packed levels run here; EXIT_CPU when none does, or not the one of --isa.
Exit check_cpu(Session& session, const SessionOptions& options, Printer& errors);

} // namespace packed

#endif
