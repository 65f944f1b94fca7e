// The functions are looked up by name, all or none: a driver too old for one of them is
// no driver. Names end with the version of the ABI where the library has several.
#include "runtime_stub/device/driver.h"

#include "runtime_stub/platform.h"

// Of the system's C library, whose loader started this program or the library's.
extern "C" __attribute__((visibility("default"))) void* dlopen(const char*, int);
extern "C" __attribute__((visibility("default"))) void* dlsym(void*, const char*);

namespace svod_device {

namespace {

constexpr char kNames[][32] = {
    "cuInit",
    "cuDeviceGetCount",
    "cuDeviceGet",
    "cuDeviceGetName",
    "cuDeviceGetAttribute",
    "cuDevicePrimaryCtxRetain",
    "cuDevicePrimaryCtxRelease_v2",
    "cuCtxSetCurrent",
    "cuCtxGetCurrent",
    "cuCtxGetDevice",
    "cuCtxPushCurrent_v2",
    "cuCtxPopCurrent_v2",
    "cuModuleLoadData",
    "cuModuleUnload",
    "cuModuleGetFunction",
    "cuFuncSetAttribute",
    "cuMemAlloc_v2",
    "cuMemFree_v2",
    "cuMemHostAlloc",
    "cuMemFreeHost",
    "cuMemcpyHtoDAsync_v2",
    "cuMemcpyDtoHAsync_v2",
    "cuMemcpyDtoDAsync_v2",
    "cuStreamCreate",
    "cuStreamDestroy_v2",
    "cuStreamSynchronize",
    "cuStreamBeginCapture_v2",
    "cuStreamEndCapture",
    "cuGraphInstantiateWithFlags",
    "cuGraphDestroy",
    "cuGraphExecDestroy",
    "cuGraphLaunch",
    "cuLaunchKernel",
    "cuEventCreate",
    "cuEventRecordWithFlags",
    "cuEventElapsedTime",
    "cuGetErrorString",
};
constexpr uint32_t kCount = sizeof(kNames) / sizeof(kNames[0]);
static_assert(sizeof(Driver) == kCount * sizeof(void*), "a name for each function");

} // namespace

const char* open_driver(Driver& driver) {
  constexpr int kNow = 2; // RTLD_NOW
  void* library = dlopen("libcuda.so.1", kNow);
  if (library == nullptr) return "no libcuda.so.1 is found, which NVIDIA's driver brings";
  void* functions[kCount];
  for (uint32_t i = 0; i < kCount; i++) {
    functions[i] = dlsym(library, kNames[i]);
    if (functions[i] == nullptr)
      return "the driver is too old: CUDA graphs need one of 2021, R470, or later";
  }
  memcpy(&driver, functions, sizeof(driver));
  return nullptr;
}

} // namespace svod_device
