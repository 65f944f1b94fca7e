// The command line of a packed program.
#ifndef SVOD_PROGRAM_OPTIONS_H
#define SVOD_PROGRAM_OPTIONS_H

#include "runtime_stub/program/session.h"

namespace packed {

enum class Mode : uint8_t {
  Run,
  Info,
  Verify,
  Bench,
  Profile,
  SelfCheck,
  CpuCheck,
  Licenses,
  Help,
  Version
};

constexpr uint32_t kMostWords = 1024; // --input and --output, each

struct Options {
  Mode mode = Mode::Run;
  bool json = false; // --info=json, --bench=json
  SessionOptions session;
  const char* verify = nullptr;
  const char* weights = nullptr;
  double rtol = 1e-3, atol = 1e-5, min_time = 1;
  const char* inputs[kMostWords]; // with positional ones among them
  uint32_t input_count = 0;
  const char* outputs[kMostWords];
  uint32_t output_count = 0;
};

// EXIT_DONE, or EXIT_USAGE with the reason on `errors`.
Exit read_options(int32_t argc, char** argv, Options& options, Printer& errors);
void print_help(Printer& out, Text program);

} // namespace packed

#endif
