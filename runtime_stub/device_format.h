// What a program holds for a GPU beside its image: an image of the same model's plan
// there, whose kernels are texts of PTX, and the weights as those read them. One blob has
// the texts and how each is launched, and for an architecture that was assembled when
// packing all of its kernels as one module of machine code; all of it is read in place,
// by offsets.
//
// Some steps may run on the processor, with tensors in its memory, between copies of
// them: then a run is several graphs. Their programs are kernels of the processor's own,
// by the numbers that this plan has for them.
//
// History:  1  first layout
//           2  machine code
//           3  counters and shared memory of a launch
//           4  architectures that no later GPU runs
//           5  steps of the processor
#ifndef SVOD_DEVICE_FORMAT_H
#define SVOD_DEVICE_FORMAT_H

#include "runtime_stub/format.h"

#define SVOD_DEVICE_VERSION 5u

// In the number of an architecture: of this one alone, as sm_90a.
#define SVOD_ONLY_THIS 0x80000000u

struct SvodDeviceHeader {
  uint8_t magic[8]; // "SVODPTX", 0
  uint32_t version;
  uint32_t bytes;         // of the blob
  uint64_t checksum;      // svod_checksum of the blob with this field zero
  uint32_t architectures; // behind the header: uint32_t each, ascending: 80 is sm_80,
                          // with SVOD_ONLY_THIS sm_80a
  uint32_t programs;
  uint32_t first_launch; // offset of SvodLaunchShape, by architecture, then by program
  uint32_t first_code; // offset of uint32_t, by architecture: offset of its machine code,
                       // aligned to SVOD_ALIGN; 0: there is none
  uint32_t first_place; // offset of uint64_t, by slot: where a temporary lies in the
                        // memory that the processor's steps have; SVOD_NO_PLACE: nowhere
  uint32_t graphs;      // that a run is
  uint64_t here_bytes;  // of that memory
};

#define SVOD_NO_PLACE 0xffffffffffffffffu

// `program` of a copy whose source and destination are one slot: it goes from the GPU's
// memory to the processor's, or back. Any other copy stays on the GPU.
enum SvodCopyKind { SVOD_COPY_THERE = 0, SVOD_COPY_DOWN = 1, SVOD_COPY_UP = 2 };

// How a program is launched.
struct SvodLaunchShape {
  uint32_t blocks, threads; // blocks 0: the processor runs it
  uint64_t scratch_bytes;   // of all its threads
  uint32_t name, ptx;       // offsets of terminated texts
  uint32_t counters;        // of 32 bits each: zero before a launch and after it
  uint32_t shared_bytes;    // of memory that a block's threads share
};

#ifdef __cplusplus
static_assert(sizeof(SvodDeviceHeader) == 56, "layout change: new version, history line");
static_assert(sizeof(SvodLaunchShape) == 32, "layout change: new version, history line");
#endif

// All of it. Pointers are made by code.
struct SvodDevice {
  const void* image; // format.h
  uint64_t image_bytes;
  const void* weights; // null: there are none
  uint64_t weight_bytes;
  const void* programs; // SvodDeviceHeader
  uint64_t program_bytes;
  SvodLaunch launch; // of its steps of the processor, by this plan's programs
};

// What a device takes here: itself, a pointer for each input, output, kernel and graph,
// another for each kernel's module, and two for each parameter of a launch, of which some
// are not the plan's.
#define SVOD_DEVICE_ROOM 768u
#define SVOD_DEVICE_OWN_PARAMETERS 3u
// In a library's arena, in front of those of all entries: what is said of them; and in
// front of each: which runs are on their way.
#define SVOD_DEVICE_LINE 256u
#define SVOD_DEVICE_SEAT 64u

#ifdef __cplusplus
inline uint64_t svod_device_bytes(uint64_t inputs, uint64_t outputs, uint64_t programs,
                                  uint64_t max_buffers, uint64_t graphs) {
  const uint64_t words = inputs + outputs + 2 * programs + graphs +
                         2 * (max_buffers + SVOD_DEVICE_OWN_PARAMETERS);
  return SVOD_DEVICE_ROOM + (words + 7) / 8 * 64;
}
#endif

#ifdef __cplusplus
extern "C"
#endif
    // Written by the packager beside the launch switch. Each entry has an image and
    // kernels of its own, all have the same weights.
    void
    svod_get_device(struct SvodDevice* device, uint32_t entry);

#endif
