// Code: a kernel's object has about nine tenths of the bytes of its text (0.4 to 1.6 on
// six models for x86-64-v3, aarch64 and cortex-m4), and the stub hardly differs from
// model to model.
//
// Time: a step computes at the machine's rate of products, reads and writes through its
// second cache, and waits for weights that no cache holds from one run to the next.
#include "packager/report/estimate.h"

namespace svod::packager {

namespace {

constexpr double kCodePerText = 0.9;
// Measured: 76 KB and 8 to 9 KB. Firmware calls its kernels: so much for each, and what
// checks arguments.
constexpr uint64_t kProgramStub = 76 << 10, kLibraryStub = 8 << 10;
constexpr uint64_t kFirmwareCall = 40, kFirmwareStub = 512;

uint64_t stub_bytes(const Options& options, const ImageContents& contents) {
  if (contents.straight)
    return kFirmwareStub + kFirmwareCall * contents.entries.front().steps.size();
  return (options.emit == Output::Executable ? kProgramStub : kLibraryStub) +
         build_image(contents).size();
}

// Bytes of a kernel's own text, behind the functions that many share.
size_t own_text(const std::string& text) {
  const size_t begin = text.rfind("\nnamespace kernel {\n");
  return begin == std::string::npos ? text.size() : text.size() - begin;
}

// Four products of bytes are one instruction at levels that are there for them, and a
// target keeps such a level only for a model that multiplies bytes.
double products_at_once(const Target& target) {
  return target.levels.back().has_dot_instruction() ? 4 : 1;
}

double step_ns(const ImageStep& step, const Target& target) {
  const Machine& machine = target.machine();
  const double second = machine.second.bytes_per_clock * machine.clock_ghz;
  const double once =
      static_cast<double>(step.flops) / (machine.gflops * products_at_once(target)) +
      static_cast<double>(step.bytes) / second + machine.launch_ns;
  return once * static_cast<double>(step.repeats);
}

} // namespace

Estimate estimate(const Options& options, const codegen::Kernels& kernels,
                  const ImageContents& contents) {
  const Machine& machine = options.target.machine();
  Estimate out;
  out.machine = machine.name;
  out.weights = contents.weight_bytes;
  double text = 0;
  for (const codegen::KernelSource& kernel : kernels.sources)
    text += static_cast<double>(own_text(kernel.text));
  out.code = static_cast<uint64_t>(text * kCodePerText) + stub_bytes(options, contents);
  const ImageEntry& entry = contents.entries.front();
  out.arena = arena_bytes(contents, entry, 1, options.target.pointer_bits / 8).all();
  uint64_t flops = 0;
  double ns = 0;
  for (const ImageStep& step : entry.steps) {
    if (step.kind != SVOD_STEP_LAUNCH) continue;
    ++out.kernels;
    flops += step.flops * step.repeats;
    ns += step_ns(step, options.target);
  }
  if (contents.weight_bytes > static_cast<uint64_t>(machine.last.bytes))
    ns += static_cast<double>(contents.weight_bytes) / machine.memory_bytes_per_ns *
          machine.memory_seen;
  out.macs = flops / 2;
  out.ms = ns / 1e6;
  return out;
}

} // namespace svod::packager
