// NVIDIA's driver library, opened at run time: the few of its functions that a run takes.
// Its types are numbers and pointers here, as its ABI has them.
#ifndef SVOD_DEVICE_DRIVER_H
#define SVOD_DEVICE_DRIVER_H

#include "runtime_stub/types.h"

namespace svod_device {

using DevicePointer = uint64_t;
struct CudaContext;
struct CudaModule;
struct CudaFunction;
struct CudaStream;
struct CudaGraph;
struct CudaGraphRun;
struct CudaEvent;

struct Driver {
  int32_t (*init)(uint32_t flags);
  int32_t (*count)(int32_t* count);
  int32_t (*device)(int32_t* device, int32_t number);
  int32_t (*name)(char* name, int32_t room, int32_t device);
  int32_t (*attribute)(int32_t* value, int32_t attribute, int32_t device);
  int32_t (*context)(CudaContext** context, int32_t device);
  int32_t (*release)(int32_t device); // that context
  int32_t (*use)(CudaContext* context);
  int32_t (*current)(CudaContext** context);
  int32_t (*current_device)(int32_t* device);
  int32_t (*push)(CudaContext* context);
  int32_t (*pop)(CudaContext** context);
  int32_t (*load)(CudaModule** module, const void* ptx);
  int32_t (*unload)(CudaModule* module);
  int32_t (*find)(CudaFunction** function, CudaModule* module, const char* name);
  int32_t (*set)(CudaFunction* function, int32_t attribute, int32_t value);
  int32_t (*allocate)(DevicePointer* pointer, size_t bytes);
  int32_t (*free)(DevicePointer pointer);
  int32_t (*pin)(void** memory, size_t bytes, uint32_t flags);
  int32_t (*unpin)(void* memory);
  int32_t (*upload)(DevicePointer to, const void* from, size_t bytes, CudaStream* stream);
  int32_t (*download)(void* to, DevicePointer from, size_t bytes, CudaStream* stream);
  int32_t (*copy)(DevicePointer to, DevicePointer from, size_t bytes, CudaStream* stream);
  int32_t (*stream)(CudaStream** stream, uint32_t flags);
  int32_t (*end_stream)(CudaStream* stream);
  int32_t (*wait)(CudaStream* stream);
  int32_t (*capture)(CudaStream* stream, int32_t mode);
  int32_t (*captured)(CudaStream* stream, CudaGraph** graph);
  int32_t (*instantiate)(CudaGraphRun** run, CudaGraph* graph, uint64_t flags);
  int32_t (*drop)(CudaGraph* graph);
  int32_t (*drop_run)(CudaGraphRun* run);
  int32_t (*run)(CudaGraphRun* run, CudaStream* stream);
  int32_t (*launch)(CudaFunction* function, uint32_t blocks, uint32_t blocks_y,
                    uint32_t blocks_z, uint32_t threads, uint32_t threads_y,
                    uint32_t threads_z, uint32_t shared, CudaStream* stream,
                    void** parameters, void** extra);
  int32_t (*event)(CudaEvent** event, uint32_t flags);
  int32_t (*record)(CudaEvent* event, CudaStream* stream, uint32_t flags);
  int32_t (*elapsed)(float* milliseconds, CudaEvent* begin, CudaEvent* end);
  int32_t (*error)(int32_t status, const char** text);
};

// Null, or why there is none.
const char* open_driver(Driver& driver);

} // namespace svod_device

#endif
