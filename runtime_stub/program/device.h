// Runs on a GPU, of a program that was packed for one.
#ifndef SVOD_PROGRAM_DEVICE_H
#define SVOD_PROGRAM_DEVICE_H

#include "runtime_stub/device/gpu.h"
#include "runtime_stub/program/session.h"

namespace packed {

using svod_device::Device;

// --device NAME, which is no option of other programs, is taken out of the words. False:
// it is none of auto, cpu, cuda.
bool take_device_name(int32_t& argc, char** argv, RunsOn& place);
void print_device_help(Printer& out);
// Of --info: what was packed for, and the GPUs that are here.
void print_devices();

// Once the session is prepared: session.device, or none where the CPU's kernels run. With
// RunsOn::Gpu the reason why there is none is printed, and the result is EXIT_CPU.
// Nothing is freed: the process ends.
Exit open_device(Session& session, RunsOn place, Printer& errors);
// Inputs are set. They are copied to where they go up from, and session.inputs says so
// afterwards: a further run with the same inputs copies nothing here.
Exit run_on_device(Session& session, Printer& errors);
// What the driver refused last, in its own words.
void print_fault(const Device& device, Printer& errors);

} // namespace packed

#endif
