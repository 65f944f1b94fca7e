// All memory is taken when the device is opened: arena, scratch, weights, and what a run
// exchanges, there and here. Then the steps are captured as a graph that begins and ends
// with a copy of it, so a run is two calls of the driver: one launch, one wait. Nothing
// is freed: the process ends.
#include "runtime_stub/program/device.h"

#include "runtime_stub/checksum.h"
#include "runtime_stub/platform.h"
#include "runtime_stub/program/device_graph.h"
#include "runtime_stub/program/words.h"

namespace packed {

namespace {

constexpr uint64_t kAlign = 256; // of device memory, as the driver's own

const SvodDeviceHeader& header_of(const SvodDevice& packed) {
  return *static_cast<const SvodDeviceHeader*>(packed.programs);
}

const uint32_t* architectures(const SvodDevice& packed) {
  return reinterpret_cast<const uint32_t*>(&header_of(packed) + 1);
}

const char* text_at(const SvodDevice& packed, uint32_t offset) {
  return static_cast<const char*>(packed.programs) + offset;
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

struct Found {
  int32_t device = -1;
  uint32_t level = 0; // of the packed architectures
};

// 80 of sm_80; 0 where the driver does not say.
uint32_t architecture_of(const Driver& driver, int32_t device) {
  constexpr int32_t kMajor = 75, kMinor = 76; // CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_*
  int32_t major = 0, minor = 0;
  if (driver.attribute(&major, kMajor, device) != 0 ||
      driver.attribute(&minor, kMinor, device) != 0)
    return 0;
  return static_cast<uint32_t>(10 * major + minor);
}

// Why there is no driver that works; empty: there is one.
Text start_driver(Driver& driver) {
  if (const Text why = open_driver(driver); why.size > 0) return why;
  return driver.init(0) != 0 ? Text("the driver does not start, as without a GPU")
                             : Text();
}

// Whether a GPU of architecture `own` runs what was packed for `number`.
bool runs(uint32_t own, uint32_t number) {
  return (number & SVOD_ONLY_THIS) != 0 ? (number & ~SVOD_ONLY_THIS) == own
                                        : number <= own;
}

// The first GPU that runs one of the packed architectures, with the highest such.
Found find_device(const Driver& driver, const SvodDevice& packed) {
  Found out;
  int32_t count = 0;
  if (driver.count(&count) != 0) return out;
  for (int32_t i = 0; i < count && out.device < 0; i++) {
    int32_t device = 0;
    if (driver.device(&device, i) != 0) continue;
    const uint32_t own = architecture_of(driver, device);
    for (uint32_t level = 0; level < header_of(packed).architectures; level++)
      if (runs(own, architectures(packed)[level])) out = {device, level};
  }
  return out;
}

// Why there is none; empty: there is one.
Text no_device(Device& device, Found& found) {
  if (const Text why = start_driver(device.driver); why.size > 0) return why;
  found = find_device(device.driver, device.packed);
  return found.device < 0 ? Text("no GPU here runs what was packed; --info lists them")
                          : Text();
}

// What lies at `place` of the exchange, here.
uint8_t* staged(const Device& device, DevicePointer place) {
  return device.staging + (place - device.exchange);
}

bool allocate(Device& device, uint64_t bytes, DevicePointer& out, Printer& errors) {
  return went_well(device.driver, device.driver.allocate(&out, bytes + kAlign),
                   "its memory", errors);
}

// Where outputs, words and inputs lie in what is exchanged; its bytes.
uint64_t lay_out_exchange(Device& device) {
  const SvodEntry& entry = *device.entry;
  const void* image = device.model.image;
  uint64_t end = 0;
  auto take = [&](uint64_t bytes) {
    const uint64_t at = end;
    end = (end + bytes + kAlign - 1) / kAlign * kAlign;
    return at;
  };
  for (uint32_t i = 0; i < entry.output_count; i++)
    device.outputs[i] = take(svod_output(image, &entry, i)->bytes);
  device.faults = take(sizeof(int32_t) * entry.step_count);
  device.faults_end = device.faults + sizeof(int32_t) * entry.step_count;
  uint64_t counters = 0; // of one launch: each leaves them as it found them
  for (uint32_t p = 0; p < header_of(device.packed).programs; p++)
    if (device.launches[p].counters > counters) counters = device.launches[p].counters;
  device.arrived = take(sizeof(uint32_t) * counters);
  for (uint32_t i = 0; i < entry.input_count; i++)
    device.inputs[i] = take(svod_input(image, &entry, i)->bytes);
  device.exchange_end = end;
  return end;
}

// The exchange on the GPU, and here in memory that the GPU reads and writes itself, so
// that a graph may hold the copies.
bool take_exchange(Device& device, Printer& errors) {
  const SvodEntry& entry = *device.entry;
  const uint64_t bytes = lay_out_exchange(device);
  void* staging = nullptr;
  if (!allocate(device, bytes, device.exchange, errors) ||
      !went_well(device.driver, device.driver.pin(&staging, bytes + kAlign, 0),
                 "memory to copy from", errors))
    return false;
  device.staging = static_cast<uint8_t*>(staging);
  memset(device.staging + device.faults, 0, sizeof(int32_t) * entry.step_count);
  memset(device.staging + device.arrived, 0,
         (entry.input_count == 0 ? bytes : device.inputs[0]) - device.arrived);
  for (uint32_t i = 0; i < entry.output_count; i++) device.outputs[i] += device.exchange;
  for (uint32_t i = 0; i < entry.input_count; i++) device.inputs[i] += device.exchange;
  device.faults += device.exchange, device.faults_end += device.exchange;
  device.arrived += device.exchange;
  device.exchange_end += device.exchange;
  return true;
}

bool take_device_memory(Device& device, Printer& errors) {
  uint64_t scratch = 0;
  for (uint32_t p = 0; p < header_of(device.packed).programs; p++)
    if (device.launches[p].scratch_bytes > scratch)
      scratch = device.launches[p].scratch_bytes;
  return allocate(device, device.entry->arena_bytes, device.arena, errors) &&
         allocate(device, scratch, device.scratch, errors) &&
         allocate(device, device.packed.weight_bytes, device.weights, errors) &&
         take_exchange(device, errors) &&
         (device.packed.weight_bytes == 0 ||
          went_well(device.driver,
                    device.driver.upload(device.weights, device.packed.weights,
                                         device.packed.weight_bytes, device.stream),
                    "its weights", errors));
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

// All kernels as one module, where they were assembled and this GPU runs that: nothing is
// compiled then, and the driver is called once for all. What it refuses is no fault.
bool load_machine_code(Device& device, uint32_t level) {
  const SvodDeviceHeader& header = header_of(device.packed);
  uint32_t at;
  memcpy(&at, text_at(device.packed, header.first_code) + sizeof(at) * level, sizeof(at));
  CudaModule* module = nullptr;
  if (at == 0 || device.driver.load(&module, text_at(device.packed, at)) != 0)
    return false;
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    const SvodStep& step = *svod_step(device.model.image, device.entry, s);
    if (step.kind != SVOD_STEP_LAUNCH || device.functions[step.program] != nullptr)
      continue;
    if (find_kernel(device, step.program, module) == 0) continue;
    for (uint32_t p = 0; p < header.programs; p++) device.functions[p] = nullptr;
    return false;
  }
  return true;
}

// Each kernel is a module of its own, of those that steps launch, so that one which the
// driver's compiler refuses has a name.
bool load_texts(Device& device, Printer& errors) {
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    const SvodStep& step = *svod_step(device.model.image, device.entry, s);
    if (step.kind != SVOD_STEP_LAUNCH || device.functions[step.program] != nullptr)
      continue;
    const SvodLaunchShape& launch = device.launches[step.program];
    CudaModule* module = nullptr;
    int32_t status = device.driver.load(&module, text_at(device.packed, launch.ptx));
    if (status == 0) status = find_kernel(device, step.program, module);
    if (went_well(device.driver, status, "a kernel is refused", errors)) continue;
    errors << "error: it is ";
    name_step(device, step, errors);
    return false;
  }
  return true;
}

bool prepare_device(Device& device, const Found& found, Printer& errors) {
  const Driver& driver = device.driver;
  CudaContext* context = nullptr;
  constexpr uint32_t kApart = 1; // CU_STREAM_NON_BLOCKING
  return went_well(driver, driver.context(&context, found.device), "a context", errors) &&
         went_well(driver, driver.use(context), "a context", errors) &&
         went_well(driver, driver.stream(&device.stream, kApart), "a stream", errors) &&
         take_device_memory(device, errors) &&
         (load_machine_code(device, found.level) || load_texts(device, errors)) &&
         capture(device, {.copies = true}, device.graph, errors) &&
         went_well(driver, driver.wait(device.stream), "its weights", errors);
}

void stage_inputs(Session& session) {
  const Device& device = *session.device;
  for (uint32_t i = 0; i < device.entry->input_count; i++) {
    uint8_t* place = staged(device, device.inputs[i]);
    if (session.inputs[i] == place) continue;
    memcpy(place, session.inputs[i],
           svod_input(device.model.image, device.entry, i)->bytes);
    session.inputs[i] = place;
  }
}

// What profiles call it: sm_90.
void name_level(Device& device, uint32_t level) {
  const bool only = (architectures(device.packed)[level] & SVOD_ONLY_THIS) != 0;
  uint32_t number = architectures(device.packed)[level] & ~SVOD_ONLY_THIS;
  char digits[10];
  uint32_t count = 0;
  for (; number != 0; number /= 10)
    digits[count++] = static_cast<char>('0' + number % 10);
  char* to = device.level.name;
  memcpy(to, "sm_", 3);
  for (uint32_t i = 0; i < count; i++) to[3 + i] = digits[count - 1 - i];
  if (only) to[3 + count++] = 'a';
  to[3 + count] = 0;
  device.model.levels = &device.level;
  device.model.level_count = 1;
}

// The pointers lie behind the device itself.
Device* make_device() {
  SvodDevice packed;
  svod_get_device(&packed);
  const void* image = packed.image;
  SvodModel model = {};
  model.image = image, model.image_bytes = packed.image_bytes;
  model.weights = packed.weights, model.weight_bytes = packed.weight_bytes;
  if (!is_whole(packed) || svod_check_image(&model) != SVOD_OK ||
      svod_header(image)->programs.count != header_of(packed).programs)
    return nullptr;
  const SvodEntry* entry = svod_entry(image, 0);
  const uint64_t pointers =
      uint64_t{entry->input_count} + entry->output_count + header_of(packed).programs;
  const uint64_t size = (sizeof(Device) + 7) & ~uint64_t{7};
  auto* memory = static_cast<uint8_t*>(take_memory(size + pointers * 8));
  if (memory == nullptr) return nullptr;
  auto* device = reinterpret_cast<Device*>(memory); // zeroed
  device->packed = packed, device->model = model, device->entry = entry;
  device->inputs = reinterpret_cast<DevicePointer*>(memory + size);
  device->outputs = device->inputs + entry->input_count;
  device->functions =
      reinterpret_cast<CudaFunction**>(device->outputs + entry->output_count);
  return device;
}

} // namespace

Exit open_device(Session& session, RunsOn place, Printer& errors) {
  if (place == RunsOn::Cpu) return EXIT_DONE;
  Device* device = make_device();
  if (device == nullptr) {
    print_error(errors, "what this program holds for a GPU is damaged");
    return EXIT_DAMAGED;
  }
  Found found;
  if (const Text why = no_device(*device, found); why.size > 0) {
    if (place == RunsOn::Auto) return EXIT_DONE;
    errors << "error: --device=cuda: " << why << "; --device=cpu runs here\n";
    return EXIT_CPU;
  }
  const SvodDeviceHeader& header = header_of(device->packed);
  device->launches = reinterpret_cast<const SvodLaunchShape*>(
                         text_at(device->packed, header.first_launch)) +
                     uint64_t{header.programs} * found.level;
  name_level(*device, found.level);
  if (prepare_device(*device, found, errors)) {
    session.device = device;
    for (uint32_t i = 0; i < device->entry->output_count; i++)
      session.outputs[i] = staged(*device, device->outputs[i]);
    return EXIT_DONE;
  }
  if (place == RunsOn::Gpu) return EXIT_CPU;
  errors << "note: the CPU runs instead; --device=cpu does not try the GPU\n";
  return EXIT_DONE;
}

void name_step(const Device& device, const SvodStep& step, Printer& errors) {
  errors << "kernel " << Text(text_at(device.packed, device.launches[step.program].name))
         << " of node ";
  const SvodText& sources = step.sources;
  errors.name({svod_text(device.model.image, sources), sources.size});
  errors << "\n";
}

Exit run_on_device(Session& session, Printer& errors) {
  Device& device = *session.device;
  const Driver& driver = device.driver;
  const SvodEntry& entry = *device.entry;
  for (uint32_t i = 0; i < entry.input_count; i++) {
    const SvodTensor* tensor = svod_input(device.model.image, &entry, i);
    if (svod_has_packed_value(device.model.image, tensor, session.inputs[i])) continue;
    print_error(errors, "an input is not the value that was packed");
    return EXIT_BAD_DATA;
  }
  stage_inputs(session);
  int32_t status = driver.run(device.graph, device.stream);
  if (status == 0) status = driver.wait(device.stream);
  if (!went_well(driver, status, "a run", errors)) return EXIT_CPU;
  auto* found = reinterpret_cast<int32_t*>(staged(device, device.faults));
  for (uint32_t s = 0; s < entry.step_count; s++) {
    if (found[s] == 0) continue;
    errors << "error: an index in the data is out of range, in ";
    name_step(device, *svod_step(device.model.image, &entry, s), errors);
    memset(found, 0, sizeof(int32_t) * entry.step_count); // as the next run sends them
    return EXIT_INDEX;
  }
  return EXIT_DONE;
}

bool take_device_name(int32_t& argc, char** argv, RunsOn& place) {
  for (Text value = take_option(argc, argv, "--device"); value.data != nullptr;
       value = take_option(argc, argv, "--device")) {
    if (value == Text("auto"))
      place = RunsOn::Auto;
    else if (value == Text("cpu"))
      place = RunsOn::Cpu;
    else if (value == Text("cuda"))
      place = RunsOn::Gpu;
    else
      return false;
  }
  return true;
}

void print_device_help(Printer& out) {
  out << "  --device auto|cpu|cuda where it runs: on a GPU if one is here (auto)\n";
}

void print_devices() {
  Printer out(1);
  SvodDevice packed;
  svod_get_device(&packed);
  if (!is_whole(packed)) return;
  out << "device   packed for";
  for (uint32_t i = 0; i < header_of(packed).architectures; i++) {
    const uint32_t number = architectures(packed)[i];
    out << " sm_" << (number & ~SVOD_ONLY_THIS)
        << ((number & SVOD_ONLY_THIS) != 0 ? "a" : " and later");
  }
  out << "\n";
  Driver driver;
  Text why = start_driver(driver);
  int32_t count = 0;
  if (why.size == 0 && (driver.count(&count) != 0 || count == 0))
    why = "the driver knows no GPU";
  if (why.size > 0) out << "device   none: " << why << "\n";
  for (int32_t i = 0; i < count; i++) {
    char name[128] = {};
    int32_t device = 0;
    if (driver.device(&device, i) != 0) continue;
    driver.name(name, sizeof(name) - 1, device);
    out << "device   " << i << ": " << Text(name) << ", sm_"
        << architecture_of(driver, device) << "\n";
  }
}

} // namespace packed
