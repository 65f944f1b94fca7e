// The command line of a packed program.
#ifndef SVOD_PROGRAM_OPTIONS_H
#define SVOD_PROGRAM_OPTIONS_H

#include "runtime_stub/program/labels.h"

namespace packed {

enum class Mode : uint8_t {
  Run,
  Info,
  Verify,
  Bench,
  Profile,
  Stream,
  Batch,
  SelfCheck,
  CpuCheck,
  Licenses,
  Help,
  Version
};

constexpr uint32_t kMostWords = 2048; // --input and --output together

struct Options {
  Mode mode = Mode::Run;
  bool json = false;  // --info, --bench, --profile=json; --stream=jsonl
  bool trace = false; // --profile=trace.json
  SessionOptions session;
  const char* verify = nullptr;
  const char* batch = nullptr; // the folder of inputs
  const char* output_folder = nullptr;
  Labels labels;
  const char* weights = nullptr;
  double rtol = 1e-3, atol = 1e-5, min_time = 1;
  bool strict = false;   // each element of --verify on its own
  bool unsecure = false; // no filter of system calls
  bool finite = false;   // inputs that are infinite or no number are refused
  uint64_t began = 0;    // of --bench: when the program began, svod_now
  // What follows --input and --output, in the order of the command line, whose own memory
  // holds the list. A word without an option is an input.
  char** words = nullptr;
  uint32_t word_count = 0, output_count = 0;
  uint64_t output_bits[kMostWords / 64] = {};

  bool is_output(uint32_t word) const {
    return (output_bits[word / 64] >> word % 64 & 1) != 0;
  }
};

// EXIT_DONE, or EXIT_USAGE with the reason on `errors`.
Exit read_options(int32_t argc, char** argv, Options& options, Printer& errors);
void print_help(Printer& out, Text program);

} // namespace packed

#endif
