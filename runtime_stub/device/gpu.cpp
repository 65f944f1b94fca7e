// All memory is taken when the device is opened: arena, scratch, weights, and what a run
// exchanges, there and here. Then the steps are captured as a graph that begins and ends
// with a copy of it, so a run is two calls of the driver: one launch, one wait. Where the
// processor runs some, each row of the GPU's steps is a graph, which ends with what the
// processor needs of it.
#include "runtime_stub/device/gpu.h"

#include "runtime_stub/checksum.h"
#include "runtime_stub/device/steps.h"
#include "runtime_stub/platform.h"

namespace svod_device {

namespace {

constexpr uint64_t kAlign = 256; // of device memory, as the driver's own

const char* text_at(const SvodDevice& packed, uint32_t offset) {
  return static_cast<const char*>(packed.programs) + offset;
}

// Of all architectures: which of them the driver takes is found out later.
template <class Number>
uint64_t most_of_launches(const SvodDevice& packed, const Number& number) {
  const SvodDeviceHeader& header = header_of(packed);
  const auto* shapes =
      reinterpret_cast<const SvodLaunchShape*>(text_at(packed, header.first_launch));
  uint64_t out = 0;
  for (uint32_t i = 0; i < header.architectures * header.programs; i++)
    if (number(shapes[i]) > out) out = number(shapes[i]);
  return out;
}

// Whether a GPU of architecture `own` runs what was packed for `number`.
bool runs(uint32_t own, uint32_t number) {
  return (number & SVOD_ONLY_THIS) != 0 ? (number & ~SVOD_ONLY_THIS) == own
                                        : number <= own;
}

// Chooses the latest of the packed architectures before `end` that the device runs;
// false: there is none.
bool choose(Device& device, int32_t number, uint32_t end) {
  const SvodDeviceHeader& header = header_of(device.packed);
  const uint32_t own = architecture_of(device.driver, number);
  uint32_t level = end;
  while (level > 0 && !runs(own, architectures(device.packed)[level - 1])) level--;
  if (level == 0) return false;
  level--;
  device.number = number, device.chosen = level;
  device.launches = reinterpret_cast<const SvodLaunchShape*>(
                        text_at(device.packed, header.first_launch)) +
                    uint64_t{header.programs} * level;
  return true;
}

// What profiles call it: sm_90.
void name_level(Device& device) {
  const uint32_t packed = architectures(device.packed)[device.chosen];
  uint32_t number = packed & ~SVOD_ONLY_THIS;
  char digits[10];
  uint32_t count = 0;
  for (; number != 0; number /= 10)
    digits[count++] = static_cast<char>('0' + number % 10);
  char* to = device.level.name;
  memcpy(to, "sm_", 3);
  for (uint32_t i = 0; i < count; i++) to[3 + i] = digits[count - 1 - i];
  if ((packed & SVOD_ONLY_THIS) != 0) to[3 + count++] = 'a';
  to[3 + count] = 0;
  device.model.levels = &device.level;
  device.model.level_count = 1;
}

bool allocate(Device& device, uint64_t bytes, DevicePointer& out) {
  return went_well(device, device.driver.allocate(&out, bytes + kAlign), "its memory");
}

// Where outputs, words and inputs lie in what is exchanged; its bytes.
uint64_t lay_out_exchange(Device& device) {
  const SvodEntry& entry = *device.entry;
  const void* image = device.model.image;
  uint64_t end = 0;
  const auto place = [&](bool output, bool only_here, const auto& take) {
    const uint32_t slot_class = output ? SVOD_SLOT_OUTPUT : SVOD_SLOT_INPUT;
    for (uint32_t i = 0; i < (output ? entry.output_count : entry.input_count); i++) {
      if (is_only_here(device, slot_class, i) != only_here) continue;
      const SvodTensor* tensor =
          output ? svod_output(image, &entry, i) : svod_input(image, &entry, i);
      (output ? device.outputs : device.inputs)[i] = take(tensor->bytes);
    }
  };
  auto take = [&](uint64_t bytes) {
    const uint64_t at = end;
    end = (end + bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  };
  place(true, true, take);
  device.results = end;
  place(true, false, take);
  device.faults = take(sizeof(int32_t) * entry.step_count);
  device.faults_end = device.faults + sizeof(int32_t) * entry.step_count;
  // Of one launch: each leaves them as it found them.
  const uint64_t counters =
      most_of_launches(device.packed, [](auto& shape) { return shape.counters; });
  device.arrived = take(sizeof(uint32_t) * counters);
  place(false, false, take);
  device.sent_end = end;
  place(false, true, take);
  return end;
}

// The exchange on the GPU, and here in memory that the GPU reads and writes itself, so
// that a graph may hold the copies.
bool take_exchange(Device& device) {
  const SvodEntry& entry = *device.entry;
  const uint64_t bytes = lay_out_exchange(device),
                 here =
                     (header_of(device.packed).here_bytes + kAlign - 1) / kAlign * kAlign,
                 scratch = here == 0 ? 0 : entry.scratch_bytes;
  void* staging = nullptr;
  if (!allocate(device, bytes, device.exchange) ||
      !went_well(device, device.driver.pin(&staging, bytes + here + scratch + kAlign, 0),
                 "memory to copy from"))
    return false;
  device.staging = static_cast<uint8_t*>(staging);
  memset(device.staging, 0, static_cast<size_t>(bytes));
  device.here = device.staging + bytes;
  device.here_scratch = device.here + here;
  for (uint32_t i = 0; i < entry.output_count; i++) device.outputs[i] += device.exchange;
  for (uint32_t i = 0; i < entry.input_count; i++) device.inputs[i] += device.exchange;
  device.results += device.exchange;
  device.faults += device.exchange, device.faults_end += device.exchange;
  device.arrived += device.exchange;
  device.sent_end += device.exchange;
  return true;
}

bool take_weights(Device& device) {
  const auto bytes = static_cast<size_t>(device.packed.weight_bytes);
  return allocate(device, bytes, device.weights) &&
         (bytes == 0 ||
          went_well(device,
                    device.driver.upload(device.weights, device.packed.weights, bytes,
                                         device.stream),
                    "its weights"));
}

// Words and counters are zeros, too, before a run that copies nothing up.
bool take_memory(Device& device) {
  if (const Device* lender = device.lender; lender != nullptr) {
    device.arena = lender->arena, device.scratch = lender->scratch;
    device.weights = lender->weights;
  } else if (!allocate(device, device.arena_bytes, device.arena) ||
             !allocate(device, device.scratch_bytes, device.scratch) ||
             !take_weights(device)) {
    return false;
  }
  return take_exchange(device) && copy_up(device);
}

// A kernel of a module, which may share as much memory as its launch says.
int32_t find_kernel(Device& device, uint32_t program, CudaModule* module) {
  constexpr int32_t kShared = 8; // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
  const SvodLaunchShape& launch = device.launches[program];
  CudaFunction*& function = device.functions[program];
  const int32_t status =
      device.driver.find(&function, module, text_at(device.packed, launch.name));
  if (status != 0 || launch.shared_bytes == 0) return status;
  return device.driver.set(function, kShared, static_cast<int32_t>(launch.shared_bytes));
}

void unload(Device& device) {
  for (uint32_t p = 0; p < header_of(device.packed).programs; p++) {
    if (device.modules[p] != nullptr) device.driver.unload(device.modules[p]);
    device.modules[p] = nullptr, device.functions[p] = nullptr;
  }
}

bool is_to_load(const Device& device, uint32_t s) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, s);
  return step.kind == SVOD_STEP_LAUNCH && !runs_here(device, s) &&
         device.functions[step.program] == nullptr;
}

// All kernels as one module, where they were assembled and this GPU runs that: nothing is
// compiled then, and the driver is called once for all. What it refuses is no fault.
bool load_machine_code(Device& device) {
  const SvodDeviceHeader& header = header_of(device.packed);
  uint32_t at;
  memcpy(&at, text_at(device.packed, header.first_code) + sizeof(at) * device.chosen,
         sizeof(at));
  CudaModule* module = nullptr;
  if (at == 0 || device.driver.load(&module, text_at(device.packed, at)) != 0)
    return false;
  device.modules[0] = module;
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    if (!is_to_load(device, s)) continue;
    const uint32_t program = svod_step(device.model.image, device.entry, s)->program;
    if (find_kernel(device, program, module) == 0) continue;
    unload(device);
    return false;
  }
  return true;
}

// Each kernel is a module of its own, of those that steps launch, so that one which the
// driver's compiler refuses has a name.
bool load_texts(Device& device) {
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    if (!is_to_load(device, s)) continue;
    const uint32_t program = svod_step(device.model.image, device.entry, s)->program;
    CudaModule*& module = device.modules[program];
    int32_t status =
        device.driver.load(&module, text_at(device.packed, device.launches[program].ptx));
    if (status == 0) status = find_kernel(device, program, module);
    if (!went_well(device, status, "a kernel is refused", s)) return false;
  }
  return true;
}

// Takes those for an earlier architecture where the driver refuses some: one that is
// older than the version of their PTX does. The reason is that of the first ones.
bool load_kernels(Device& device) {
  Fault first = {};
  for (;;) {
    if (load_machine_code(device) || load_texts(device)) break;
    if (first.what == nullptr) first = device.fault;
    unload(device);
    if (choose(device, device.number, device.chosen)) continue;
    device.fault = first;
    return false;
  }
  device.fault = {};
  return true;
}

} // namespace

const uint32_t* architectures(const SvodDevice& packed) {
  return reinterpret_cast<const uint32_t*>(&header_of(packed) + 1);
}

// Of all that is read as an offset.
bool is_whole(const SvodDevice& packed) {
  const SvodDeviceHeader& header = header_of(packed);
  const uint64_t bytes = packed.program_bytes;
  if (bytes < sizeof(header) || memcmp(header.magic, "SVODPTX", 8) != 0 ||
      header.version != SVOD_DEVICE_VERSION || header.bytes != bytes)
    return false;
  SvodDeviceHeader plain = header;
  plain.checksum = 0;
  SvodChecksum sum;
  sum.add(&plain, sizeof(plain));
  sum.add(&header + 1, bytes - sizeof(header));
  return sum.finish() == header.checksum;
}

const char* start_driver(Driver& driver) {
  if (const char* why = open_driver(driver); why != nullptr) return why;
  return driver.init(0) != 0 ? "the driver does not start, as without a GPU" : nullptr;
}

uint32_t architecture_of(const Driver& driver, int32_t device) {
  constexpr int32_t kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  int32_t major = 0, minor = 0;
  if (driver.attribute(&major, kMajor, device) != 0 ||
      driver.attribute(&minor, kMinor, device) != 0)
    return 0;
  return static_cast<uint32_t>(10 * major + minor);
}

uint64_t room_of(const SvodDevice& packed) {
  const void* image = packed.image;
  const SvodEntry* entry = svod_entry(image, 0);
  return svod_device_bytes(entry->input_count, entry->output_count,
                           svod_header(image)->programs.count,
                           svod_header(image)->max_buffers, header_of(packed).graphs);
}

Device* place(void* memory, const SvodDevice& packed) {
  const void* image = packed.image;
  SvodModel model = {};
  model.image = image, model.image_bytes = packed.image_bytes;
  model.weights = packed.weights, model.weight_bytes = packed.weight_bytes;
  if (!is_whole(packed) || svod_check_image(&model) != SVOD_OK ||
      svod_header(image)->programs.count != header_of(packed).programs)
    return nullptr;
  memset(memory, 0, static_cast<size_t>(room_of(packed)));
  auto* device = static_cast<Device*>(memory);
  device->packed = packed, device->model = model, device->entry = svod_entry(image, 0);
  device->arena_bytes = device->entry->arena_bytes;
  device->scratch_bytes =
      most_of_launches(packed, [](auto& shape) { return shape.scratch_bytes; });
  auto* at =
      reinterpret_cast<uint64_t*>(static_cast<uint8_t*>(memory) + SVOD_DEVICE_ROOM);
  const auto take = [&](uint64_t count) {
    uint64_t* const begin = at;
    at += count;
    return begin;
  };
  const uint32_t programs = header_of(packed).programs;
  const uint64_t most =
      uint64_t{svod_header(image)->max_buffers} + SVOD_DEVICE_OWN_PARAMETERS;
  device->inputs = take(device->entry->input_count);
  device->outputs = take(device->entry->output_count);
  device->functions = reinterpret_cast<CudaFunction**>(take(programs));
  device->modules = reinterpret_cast<CudaModule**>(take(programs));
  device->graphs = reinterpret_cast<CudaGraphRun**>(take(header_of(packed).graphs));
  device->places =
      reinterpret_cast<const uint64_t*>(text_at(packed, header_of(packed).first_place));
  device->values = take(most);
  device->parameters = reinterpret_cast<void**>(take(most));
  return device;
}

void lend(Device& lender, Device& to) {
  to.lender = &lender;
  if (lender.arena_bytes < to.arena_bytes) lender.arena_bytes = to.arena_bytes;
  if (lender.scratch_bytes < to.scratch_bytes) lender.scratch_bytes = to.scratch_bytes;
}

const char* find(Device& device, bool joins) {
  const Driver& driver = device.driver;
  if (const char* why = start_driver(device.driver); why != nullptr) return why;
  CudaContext* context = nullptr;
  int32_t number = 0;
  const uint32_t all = header_of(device.packed).architectures;
  if (joins && driver.current(&context) == 0 && context != nullptr &&
      driver.current_device(&number) == 0 && choose(device, number, all)) {
    device.context = context;
    return nullptr;
  }
  int32_t count = 0;
  if (driver.count(&count) != 0) count = 0;
  for (int32_t i = 0; i < count; i++)
    if (driver.device(&number, i) == 0 && choose(device, number, all)) return nullptr;
  return "no GPU here runs what was packed";
}

static bool retain(Device& device) {
  if (device.context != nullptr) return true;
  device.owns = went_well(device, device.driver.context(&device.context, device.number),
                          "a context");
  return device.owns;
}

bool stay(Device& device) {
  return retain(device) &&
         went_well(device, device.driver.use(device.context), "a context");
}

bool enter(Device& device) {
  return retain(device) &&
         went_well(device, device.driver.push(device.context), "a context");
}

void leave(Device& device) {
  CudaContext* context = nullptr;
  (void)device.driver.pop(&context);
}

bool open(Device& device) {
  constexpr uint32_t kApart = 1; // CU_STREAM_NON_BLOCKING
  // Weights are on their way while kernels are loaded.
  if (!went_well(device, device.driver.stream(&device.stream, kApart), "a stream") ||
      !take_memory(device) || !load_kernels(device))
    return false;
  name_level(device);
  return capture_run(device) &&
         went_well(device, device.driver.wait(device.stream), "its weights");
}

// What the driver says then helps nobody.
void close(Device& device) {
  const Driver& driver = device.driver;
  if (device.stream != nullptr) (void)driver.wait(device.stream);
  for (uint32_t i = 0; i < header_of(device.packed).graphs; i++)
    if (device.graphs[i] != nullptr) (void)driver.drop_run(device.graphs[i]);
  unload(device);
  const DevicePointer all[] = {device.exchange, device.arena, device.scratch,
                               device.weights};
  const uint32_t own = device.lender == nullptr ? 4 : 1;
  for (uint32_t i = 0; i < own; i++)
    if (all[i] != 0) (void)driver.free(all[i]);
  if (device.staging != nullptr) (void)driver.unpin(device.staging);
  if (device.stream != nullptr) (void)driver.end_stream(device.stream);
}

// The first step whose index was out of range, if there is one; the words are zeros
// afterwards, as the next run sends them.
static Stop take_index_fault(Device& device) {
  auto* found = reinterpret_cast<int32_t*>(staged(device, device.faults));
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    if (found[s] == 0) continue;
    memset(found, 0, sizeof(int32_t) * device.entry->step_count);
    return {SVOD_INDEX, s};
  }
  return {};
}

// No step of the processor sees what a step left that met an index out of range.
bool run(Device& device, Stop& stop) {
  uint32_t at = 0;
  for (uint32_t graph = 0; graph < header_of(device.packed).graphs; graph++) {
    stop = run_turn_here(device, at);
    if (stop.status != SVOD_OK) return true;
    int32_t status = device.driver.run(device.graphs[graph], device.stream);
    if (status == 0) status = device.driver.wait(device.stream);
    if (!went_well(device, status, "a run")) return false;
    stop = take_index_fault(device);
    if (stop.status != SVOD_OK) return true;
    at = turn_there_end(device, at);
  }
  stop = run_turn_here(device, at);
  return true;
}

bool fetch_stop(Device& device, CudaStream* stream, Stop& stop) {
  const auto bytes = static_cast<size_t>(device.faults_end - device.faults);
  stop = {};
  if (!went_well(device, device.driver.wait(stream), "a run")) return false;
  if (bytes == 0) return true;
  uint8_t* words = staged(device, device.faults);
  int32_t status = device.driver.download(words, device.faults, bytes, device.stream);
  if (status == 0) status = device.driver.wait(device.stream);
  if (!went_well(device, status, "a copy")) return false;
  stop = take_index_fault(device);
  if (stop.status == SVOD_OK) return true;
  status = device.driver.upload(device.faults, words, bytes, device.stream);
  if (status == 0) status = device.driver.wait(device.stream);
  return went_well(device, status, "a copy");
}

bool went_well(Device& device, int32_t status, const char* what, uint32_t step) {
  if (status == 0) return true;
  device.fault = {what, status, step};
  return false;
}

const char* words_of(const Driver& driver, int32_t status) {
  const char* text = nullptr;
  return driver.error(status, &text) == 0 ? text : nullptr;
}

const char* kernel_of(const Device& device, uint32_t step) {
  const uint32_t program = svod_step(device.model.image, device.entry, step)->program;
  return text_at(device.packed, device.launches[program].name);
}

} // namespace svod_device
