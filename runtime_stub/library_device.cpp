// An arena that is opened for a GPU has, behind what the processor needs, for each entry
// the state of a device with all pointers to its memory; arena and weights there are the
// first one's. Each call makes the device's context current and leaves the caller's as it
// was. A run on the caller's stream is the steps, launched one by one with the caller's
// addresses: nothing is copied, and a caller who captures the stream gets them in a graph
// of its own. That is not possible where the processor runs some of them: the stream is
// waited for before those.
#include "runtime_stub/library_device.h"

#include "runtime_stub/cpu.h"
#include "runtime_stub/device/steps.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/replay.h"

namespace svod_library {

using svod_device::CudaStream;
using svod_device::Device;

namespace {

struct Room {
  uint64_t key;
  char text[228];
};
static_assert(sizeof(Room) <= SVOD_DEVICE_LINE);

// Of an entry; its device follows.
struct Seat {
  CudaStream* last; // where a run went that nobody has waited for
  uint32_t waits;   // whether there is one
};
static_assert(sizeof(Seat) <= SVOD_DEVICE_SEAT);

constexpr uint64_t kOnGpu = 0x757067u, kOnCpu = 0x757063u; // beside the arena's own key

SvodDevice packed_device(uint32_t entry) {
  SvodDevice out;
  svod_get_device(&out, entry);
  return out;
}

uint32_t entry_count() {
  SvodModel model;
  svod_get_model(&model);
  return svod_header(model.image)->entries.count;
}

uint64_t end_of(uint32_t entries) {
  uint64_t out = SVOD_DEVICE_LINE;
  for (uint32_t e = 0; e < entries; e++)
    out += SVOD_DEVICE_SEAT + svod_device::room_of(packed_device(e));
  return out;
}

Seat& seat_of(Room& room, uint32_t entry) {
  return *reinterpret_cast<Seat*>(reinterpret_cast<uint8_t*>(&room) +
                                  static_cast<size_t>(end_of(entry)));
}

Device& device_of(Room& room, uint32_t entry) {
  return *reinterpret_cast<Device*>(reinterpret_cast<uint8_t*>(&seat_of(room, entry)) +
                                    SVOD_DEVICE_SEAT);
}

// Text that ends where the room for it does.
class Line {
public:
  explicit Line(Room& room) : at_(room.text), end_(room.text + sizeof(room.text) - 1) {}
  Line& operator<<(const char* text) {
    while (*text != 0) put(*text++);
    *at_ = 0;
    return *this;
  }
  Line& operator<<(uint32_t number) {
    char digits[11] = {};
    uint32_t at = 10;
    do digits[--at] = static_cast<char>('0' + number % 10);
    while ((number /= 10) != 0);
    return *this << digits + at;
  }
  void add(const char* text, uint32_t size) {
    while (size-- > 0) put(*text++);
    *at_ = 0;
  }

private:
  void put(char c) {
    if (at_ < end_) *at_++ = c;
  }
  char *at_, *end_;
};

void name_step(Line& line, const Device& device, uint32_t number) {
  const SvodText& sources = svod_step(device.model.image, device.entry, number)->sources;
  line << "kernel " << svod_device::kernel_of(device, number) << " of node ";
  line.add(svod_text(device.model.image, sources), sources.size);
}

int32_t tell_fault(Room& room, const Device& device) {
  Line line(room);
  line << device.fault.what << ": ";
  if (const char* words = svod_device::words_of(device.driver, device.fault.status))
    line << words << ", ";
  line << "status " << static_cast<uint32_t>(device.fault.status) << " of the driver";
  if (device.fault.step != svod_device::kNoStep) {
    line << ", in ";
    name_step(line, device, device.fault.step);
  }
  return SVOD_DEVICE_FAULT;
}

// Why a run ended early; SVOD_OK: it did not.
int32_t tell_stop(Room& room, const Device& device, const svod_device::Stop& stop) {
  if (stop.status == SVOD_OK) return SVOD_OK;
  Line line(room);
  line << (stop.status == SVOD_INDEX   ? "an index in the data is out of range"
           : stop.status == SVOD_LIMIT ? "the data asks for more than was packed"
                                       : "what the data holds is not of its kind")
       << ", in ";
  name_step(line, device, stop.step);
  return stop.status;
}

// Whether the processor has what its steps of the plan take; it does where there are
// none.
bool choose_here(Device& device) {
  if (device.packed.launch == nullptr) return true;
  SvodModel model;
  svod_get_model(&model);
  const int32_t level = svod_choose_level(&model);
  device.here_level = static_cast<uint32_t>(level);
  return level >= 0;
}

void tell_device(Room& room) {
  const Device& device = device_of(room, 0);
  char name[128] = {};
  (void)device.driver.name(name, sizeof(name) - 1, device.number);
  Line(room) << name << ", kernels of " << device.level.name;
}

// Frees what was taken, also where that is not all.
void give_back(Device& device) {
  if (svod_device::enter(device)) {
    svod_device::close(device);
    svod_device::leave(device);
  }
  if (device.owns) (void)device.driver.release(device.number);
}

// Of all entries, not open. False: what was packed for a GPU is damaged.
bool place_all(Room& room) {
  for (uint32_t entry = 0; entry < entry_count(); entry++) {
    seat_of(room, entry) = {};
    Device* device = svod_device::place(&device_of(room, entry), packed_device(entry));
    if (device == nullptr) return false;
    if (entry != 0) svod_device::lend(device_of(room, 0), *device);
  }
  return true;
}

int32_t open_entry(Room& room, Device& device) {
  if (const char* why = svod_device::find(device, true); why != nullptr) {
    Line(room) << why;
    return SVOD_NO_DEVICE;
  }
  if (!choose_here(device)) {
    Line(room) << "this processor lacks what was packed for steps that it runs";
    return SVOD_CPU;
  }
  bool all = svod_device::enter(device);
  if (all) {
    all = svod_device::open(device);
    svod_device::leave(device);
  }
  if (all) return SVOD_OK;
  const svod_device::Fault fault = device.fault;
  give_back(device);
  device.fault = fault;
  return tell_fault(room, device);
}

// The first one, which lends its memory, comes last.
void give_back(Room& room, uint32_t entries) {
  while (entries > 0) give_back(device_of(room, --entries));
}

// All entries, or none.
int32_t try_gpu(Room& room) {
  if (!place_all(room)) {
    Line(room) << "what this library holds for a GPU is damaged";
    return SVOD_CORRUPT;
  }
  for (uint32_t entry = 0; entry < entry_count(); entry++) {
    const int32_t status = open_entry(room, device_of(room, entry));
    if (status == SVOD_OK) continue;
    give_back(room, entry);
    return status;
  }
  tell_device(room);
  return SVOD_OK;
}

// Whether pointers are there, aligned as their tensors, or on the GPU as arenas.
int32_t check(const Device& device, const void* const inputs[], void* const outputs[],
              bool there) {
  if (inputs == nullptr || outputs == nullptr) return SVOD_BAD_ARGUMENT;
  const void* image = device.model.image;
  const SvodEntry* entry = device.entry;
  for (uint32_t i = 0; i < entry->input_count + entry->output_count; i++) {
    const bool in = i < entry->input_count;
    const SvodTensor* tensor = in ? svod_input(image, entry, i)
                                  : svod_output(image, entry, i - entry->input_count);
    const void* data = in ? inputs[i] : outputs[i - entry->input_count];
    if (data == nullptr) return SVOD_BAD_ARGUMENT;
    const uintptr_t align = there ? SVOD_ALIGN : tensor->alignment;
    if ((reinterpret_cast<uintptr_t>(data) & (align - 1)) != 0) return SVOD_MISALIGNED;
    if (in && !there && !svod_has_packed_value(image, tensor, data))
      return SVOD_BAD_ARGUMENT;
  }
  return SVOD_OK;
}

} // namespace

uint64_t gpu_room() { return end_of(entry_count()); }

int32_t open_gpu(void* memory, uint64_t key, int32_t place) {
  if (place < RUNS_AUTO || place > RUNS_GPU) return SVOD_BAD_ARGUMENT;
  close_gpu(memory, key);
  auto& room = *static_cast<Room*>(memory);
  room = {};
  room.key = key ^ kOnCpu;
  if (place == RUNS_CPU) {
    Line(room) << "the processor was asked for";
    return SVOD_OK;
  }
  const int32_t status = try_gpu(room);
  if (status == SVOD_OK) room.key = key ^ kOnGpu;
  return place == RUNS_AUTO && status != SVOD_CORRUPT ? SVOD_OK : status;
}

void close_gpu(void* memory, uint64_t key) {
  auto& room = *static_cast<Room*>(memory);
  if (room.key == (key ^ kOnGpu)) give_back(room, entry_count());
  room.key = 0;
}

bool runs_on_gpu(const void* memory, uint64_t key) {
  return static_cast<const Room*>(memory)->key == (key ^ kOnGpu);
}

const char* gpu_text(const void* memory, uint64_t key) {
  const auto& room = *static_cast<const Room*>(memory);
  const bool known = room.key == (key ^ kOnGpu) || room.key == (key ^ kOnCpu);
  return known ? room.text : "the arena is not open";
}

int32_t run_gpu(void* memory, uint32_t number, const void* const inputs[],
                void* const outputs[]) {
  auto& room = *static_cast<Room*>(memory);
  Device& device = device_of(room, number);
  const int32_t wrong = check(device, inputs, outputs, false);
  if (wrong != SVOD_OK) return wrong;
  const void* image = device.model.image;
  const SvodEntry* entry = device.entry;
  for (uint32_t i = 0; i < entry->input_count; i++)
    memcpy(svod_device::staged(device, device.inputs[i]), inputs[i],
           static_cast<size_t>(svod_input(image, entry, i)->bytes));
  if (!svod_device::enter(device)) return tell_fault(room, device);
  svod_device::Stop stop;
  const bool went = svod_device::run(device, stop);
  svod_device::leave(device);
  if (!went) return tell_fault(room, device);
  if (stop.status != SVOD_OK) return tell_stop(room, device, stop);
  for (uint32_t i = 0; i < entry->output_count; i++)
    memcpy(outputs[i], svod_device::staged(device, device.outputs[i]),
           static_cast<size_t>(svod_output(image, entry, i)->bytes));
  return SVOD_OK;
}

int32_t run_gpu_there(void* memory, uint32_t number, const void* const inputs[],
                      void* const outputs[], void* stream) {
  auto& room = *static_cast<Room*>(memory);
  Device& device = device_of(room, number);
  Seat& seat = seat_of(room, number);
  const int32_t wrong = check(device, inputs, outputs, true);
  if (wrong != SVOD_OK) return wrong;
  if (!svod_device::enter(device)) return tell_fault(room, device);
  seat = {static_cast<CudaStream*>(stream), 1};
  static_assert(sizeof(void*) == sizeof(svod_device::DevicePointer));
  svod_device::Stop stop;
  const bool went = svod_device::launch_all(
      device, seat.last, reinterpret_cast<const svod_device::DevicePointer*>(inputs),
      reinterpret_cast<const svod_device::DevicePointer*>(outputs), stop);
  svod_device::leave(device);
  return went ? tell_stop(room, device, stop) : tell_fault(room, device);
}

static int32_t finish(Room& room, uint32_t entry) {
  Device& device = device_of(room, entry);
  Seat& seat = seat_of(room, entry);
  if (seat.waits == 0) return SVOD_OK;
  seat.waits = 0;
  if (!svod_device::enter(device)) return tell_fault(room, device);
  svod_device::Stop stop;
  const bool went = svod_device::fetch_stop(device, seat.last, stop);
  svod_device::leave(device);
  return went ? tell_stop(room, device, stop) : tell_fault(room, device);
}

int32_t finish_gpu(void* memory) {
  auto& room = *static_cast<Room*>(memory);
  int32_t out = SVOD_OK;
  for (uint32_t entry = 0; entry < entry_count(); entry++) {
    const int32_t status = finish(room, entry);
    if (out == SVOD_OK) out = status;
  }
  return out;
}

} // namespace svod_library
