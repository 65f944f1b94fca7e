// A plan on a GPU: the device that fits, its memory, the kernels there, and a run as one
// graph. Programs and libraries have it; memory is the caller's, and what goes wrong is
// said as data, which a program prints and a library keeps for who asks.
#ifndef SVOD_DEVICE_GPU_H
#define SVOD_DEVICE_GPU_H

#include "runtime_stub/device/driver.h"
#include "runtime_stub/device_format.h"
#include "runtime_stub/replay.h"

namespace svod_device {

constexpr uint32_t kNoStep = 0xffffffff;

// What a call of the driver was for, its status, and the step of the plan that it was of.
struct Fault {
  const char* what; // null: there is none
  int32_t status;
  uint32_t step; // or kNoStep
};

// Why a run ended early: SVOD_INDEX, or what a step of the processor returned. SVOD_OK:
// it did not.
struct Stop {
  int32_t status = SVOD_OK;
  uint32_t step = kNoStep;
};

// A GPU that is open. All its memory is taken when it is opened.
struct Device {
  Driver driver;
  SvodDevice packed;
  SvodModel model; // of the plan there, with one level: the chosen architecture
  SvodLevel level;
  const SvodEntry* entry;
  const SvodLaunchShape* launches; // by program, of the chosen architecture
  CudaFunction** functions;        // by program
  CudaModule** modules;            // by program; machine code: one, the first
  CudaContext* context;
  int32_t number;  // of the device
  bool owns;       // the context is the device's own, which is released at the end
  uint32_t chosen; // of the packed architectures
  CudaStream* stream;
  CudaGraphRun** graphs; // of a run, as many as the header says
  DevicePointer arena, scratch, weights;
  const Device* lender;                // of these three; null: they are the device's own
  uint64_t arena_bytes, scratch_bytes; // of its own; a lender's are as others need, too
  // What goes up and down in a run: outputs, then a word for each step, in which its
  // kernel tells of an index out of range, then counters of blocks, then inputs. A run's
  // first copy is all from the words on, which clears them and the counters, its last one
  // all up to their end. Around that lie outputs and inputs that only the processor's
  // steps touch: they are not copied.
  DevicePointer exchange, results, faults, faults_end, arrived, sent_end;
  DevicePointer *inputs, *outputs; // in `exchange`
  uint8_t* staging;                // `exchange` here, in memory that the GPU reads itself
  const uint64_t* places;          // of slots in `here`
  uint8_t *here, *here_scratch;    // of the processor's steps, behind `staging`
  uint32_t here_level;             // of their kernels; the owner sets it
  // Of a launch: its parameters, which point to their values.
  void** parameters;
  DevicePointer* values;
  Fault fault;
};
static_assert(sizeof(Device) <= SVOD_DEVICE_ROOM);

// Bytes that a device takes here, from its image: svod_device_bytes.
uint64_t room_of(const SvodDevice& packed);
// Makes a device, not open, in memory of that size and the alignment of arenas. Null:
// what was packed for a GPU is damaged.
Device* place(void* memory, const SvodDevice& packed);
bool is_whole(const SvodDevice& packed);
const uint32_t* architectures(const SvodDevice& packed); // as many as the header says
inline const SvodDeviceHeader& header_of(const SvodDevice& packed) {
  return *static_cast<const SvodDeviceHeader*>(packed.programs);
}

// Both are placed and not open: runs of `to`, which never overlap with those of `lender`,
// are in its memory.
void lend(Device& lender, Device& to);

// Null, or why there is no driver that works.
const char* start_driver(Driver& driver);
// 80 of sm_80; 0 where the driver does not say.
uint32_t architecture_of(const Driver& driver, int32_t device);
// Chooses the device: that of the calling thread's context, where `joins` and it fits, or
// the first one that runs one of the packed architectures, with the highest such. Null,
// or why there is none.
const char* find(Device& device, bool joins);

// Each is false where the driver refuses, with its reason in device.fault. The device's
// context is the calling thread's from `enter` to `leave`, or from `stay` on.
bool stay(Device& device);
bool enter(Device& device);
void leave(Device& device);
// Takes memory, loads weights and kernels, makes the graph of a run.
bool open(Device& device);
void close(Device& device); // of one that is open, or partly
// Those graphs, each waited for, and the processor's steps between them.
bool run(Device& device, Stop& stop);

// What lies at `place` of the exchange, here.
inline uint8_t* staged(const Device& device, DevicePointer place) {
  return device.staging + (place - device.exchange);
}

// Whether a run that went to `stream` met an index out of range, once it is done: its
// words are fetched, and cleared where one is set. False: the driver refuses.
bool fetch_stop(Device& device, CudaStream* stream, Stop& stop);

// Keeps what a call was for unless it went well.
bool went_well(Device& device, int32_t status, const char* what, uint32_t step = kNoStep);
// The driver's words for a status, or null.
const char* words_of(const Driver& driver, int32_t status);
const char* kernel_of(const Device& device, uint32_t step);

} // namespace svod_device

#endif
