// Runs on a GPU, of a program that was packed for one: the device that fits, its memory,
// the kernels there, and a run as one graph.
#ifndef SVOD_PROGRAM_DEVICE_H
#define SVOD_PROGRAM_DEVICE_H

#include "runtime_stub/device_format.h"
#include "runtime_stub/program/driver.h"
#include "runtime_stub/program/session.h"

namespace packed {

// A GPU that is open. All its memory is taken when it is opened.
struct Device {
  Driver driver;
  SvodDevice packed;
  SvodModel model; // of the plan there, with one level: the chosen architecture
  SvodLevel level;
  const SvodEntry* entry;
  const SvodLaunchShape* launches; // by program, of the chosen architecture
  CudaFunction** functions;        // by program
  CudaStream* stream;
  CudaGraphRun* graph;
  DevicePointer arena, scratch, weights;
  // What goes up and down in a run: outputs, then a word for each step, in which its
  // kernel tells of an index out of range, then counters of blocks, then inputs. A run's
  // first copy is all from the words on, which clears them and the counters, its last one
  // all up to their end.
  DevicePointer exchange, faults, faults_end, arrived, exchange_end;
  DevicePointer *inputs, *outputs; // in `exchange`
  uint8_t* staging;                // `exchange` here, in memory that the GPU reads itself
};

// --device NAME, which is no option of other programs, is taken out of the words. False:
// it is none of auto, cpu, cuda.
bool take_device_name(int32_t& argc, char** argv, RunsOn& place);
void print_device_help(Printer& out);
// Of --info: what was packed for, and the GPUs that are here.
void print_devices();

// Once the session is prepared: session.device, or none where the CPU's kernels run. With
// RunsOn::Gpu the reason why there is none is printed, and the result is EXIT_CPU.
Exit open_device(Session& session, RunsOn place, Printer& errors);
// Inputs are set. They are copied to where they go up from, and session.inputs says so
// afterwards: a further run with the same inputs copies nothing here.
Exit run_on_device(Session& session, Printer& errors);
// The kernel and the ONNX nodes of a step, and the line's end.
void name_step(const Device& device, const SvodStep& step, Printer& errors);

} // namespace packed

#endif
