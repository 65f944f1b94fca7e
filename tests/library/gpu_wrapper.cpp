// svod::Model of a library for a GPU, against the driver that stands in for NVIDIA's.
// Words: what is tried, its input, where the output goes. Built without exceptions and
// type information.
#include "libnet.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <dlfcn.h>
#include <memory>

using svod::Place;
using svod::Status;

namespace {

std::array<float, svod::InputTensor<net, 0>::count> input;
std::array<float, svod::OutputTensor<net, 0>::count> output;
alignas(net::arena_align) std::byte memory[net::arena_bytes];

void must(bool good, const char* what) {
  if (good) return;
  std::fprintf(stderr, "not true: %s\n", what);
  std::exit(1);
}

template <class Function> Function* of_driver(const char* name) {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  return driver == nullptr ? nullptr : reinterpret_cast<Function*>(dlsym(driver, name));
}

// How much the driver has lent; 0 where it is not the stand-in.
int left() {
  auto* count = of_driver<int()>("svod_stand_in_left");
  return count == nullptr ? 0 : count();
}

void run_here(svod::Model<net>& model) {
  must(model.run(input, output) == Status::Ok, "it runs");
}

void there() {
  svod::Model<net> model;
  static_assert(noexcept(model.open()));
  must(!model.runs_on_device() && left() == 0, "nobody opened it");
  must(model.open() == Status::Ok && model.runs_on_device(), "a GPU is there");
  std::puts(model.device_text());
  run_here(model);
  svod::Model<net> moved = std::move(model);
  must(moved.runs_on_device() && !model.runs_on_device(), "what is open moves");
  must(model.open() == Status::ArenaSmall && model.device_text() != nullptr,
       "the other one has no arena");
  run_here(moved);
  must(moved.open(Place::Cuda) == Status::Ok, "it may be opened again");
  moved.close();
  must(!moved.runs_on_device() && left() == 0, "closed, it leaves nothing behind");
  {
    svod::Model<net> lent{memory};
    must(lent.open(Place::Cuda) == Status::Ok && left() > 0, "in memory of the caller");
    run_here(lent);
    moved = std::move(lent);
  }
  must(moved.runs_on_device() && left() > 0, "it is open as long as its model is there");
  run_here(moved);
}

// Tensors on the GPU.
void in_place() {
  svod::Model<net> model;
  CUdeviceptr x = 0, y = 0;
  must(model.open(Place::Cuda) == Status::Ok, "a GPU is there");
  of_driver<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(&x, sizeof(input));
  of_driver<CUresult(CUdeviceptr*, size_t)>("cuMemAlloc_v2")(&y, sizeof(output));
  of_driver<CUresult(CUdeviceptr, const void*, size_t, CUstream)>("cuMemcpyHtoDAsync_v2")(
      x, input.data(), sizeof(input), nullptr);
  const auto* image = reinterpret_cast<const float*>(x);
  auto* scores = reinterpret_cast<float*>(y);
  must(model.run_device(image, scores) == Status::Ok, "it runs on the default stream");
  must(model.run_device(image, scores, nullptr) == Status::Ok, "or on one that is named");
  must(model.finish_device() == Status::Ok, "and is done");
  must(model.run_device(image + 1, scores) == Status::Misaligned, "tensors are aligned");
  of_driver<CUresult(void*, CUdeviceptr, size_t, CUstream)>("cuMemcpyDtoHAsync_v2")(
      output.data(), y, sizeof(output), nullptr);
  of_driver<CUresult(CUdeviceptr)>("cuMemFree_v2")(x);
  of_driver<CUresult(CUdeviceptr)>("cuMemFree_v2")(y);
}

void nowhere() {
  svod::Model<net> model;
  const Status status = model.open(Place::Cuda);
  must((status == Status::NoDevice || status == Status::DeviceFault) &&
           !model.runs_on_device(),
       "a GPU is asked for, and none is there");
  std::printf("%s: %s\n", model.text(status), model.device_text());
  must(model.run_device(input.data(), output.data()) == Status::NoDevice,
       "nothing runs there");
  must(model.finish_device() == Status::NoDevice, "nor is waited for");
  must(model.open() == Status::Ok && !model.runs_on_device(), "the processor is as good");
  run_here(model);
}

// The driver gives up in the second run.
void lost() {
  svod::Model<net> model;
  must(model.open(Place::Cuda) == Status::Ok, "a GPU is there");
  run_here(model);
  must(model.run(input, output) == Status::DeviceFault, "the second run");
  std::puts(model.device_text());
}

} // namespace

int main(int count, char** words) {
  must(count == 4, "three words");
  FILE* file = std::fopen(words[2], "rb");
  must(file != nullptr && std::fread(input.data(), sizeof(input), 1, file) == 1,
       "the input is there");
  std::fclose(file);
  if (std::strcmp(words[1], "there") == 0) there();
  if (std::strcmp(words[1], "in_place") == 0) in_place();
  if (std::strcmp(words[1], "nowhere") == 0) nowhere();
  if (std::strcmp(words[1], "lost") == 0) lost();
  must(left() == 0, "with the model goes what it held");
  file = std::fopen(words[3], "wb");
  must(file != nullptr && std::fwrite(output.data(), sizeof(output), 1, file) == 1,
       "the output is written");
  return std::fclose(file);
}
