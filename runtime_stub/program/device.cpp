// All memory is taken when the device is opened: arena, scratch, weights, inputs, outputs
// and a word for each step, in which its kernel tells of an index out of range. The first
// run captures the launches as a graph; each run is then: inputs up, the graph, outputs
// and words down. Nothing is freed: the process ends.
#include "runtime_stub/program/device.h"

#include "runtime_stub/checksum.h"
#include "runtime_stub/platform.h"
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

// The first GPU that runs one of the packed architectures, with the highest such.
Found find_device(const Driver& driver, const SvodDevice& packed) {
  Found out;
  int32_t count = 0;
  if (driver.count(&count) != 0) return out;
  for (int32_t i = 0; i < count && out.device < 0; i++) {
    int32_t device = 0;
    if (driver.device(&device, i) != 0) continue;
    const uint32_t own = architecture_of(driver, device);
    for (uint32_t level = 0; level < header_of(packed).architectures; level++) {
      if (architectures(packed)[level] > own) break;
      out = {device, level};
    }
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

const uint32_t* args_of(const Device& device, const SvodStep& step) {
  return svod_at<uint32_t>(device.model.image, svod_header(device.model.image)->args,
                           step.first_arg);
}

const SvodSlot& slot_of(const Device& device, uint32_t number) {
  return *svod_at<SvodSlot>(device.model.image, svod_header(device.model.image)->slots,
                            uint64_t{device.entry->first_slot} + number);
}

DevicePointer address(const Device& device, uint32_t number) {
  const SvodSlot* slot = &slot_of(device, number);
  DevicePointer offset = slot->offset;
  while (slot->slot_class == SVOD_SLOT_SLICE) { // no loop moves it
    const SvodHeader* header = svod_header(device.model.image);
    slot = &slot_of(device, svod_at<SvodSlice>(header, header->slices, slot->io)->parent);
    offset += slot->offset;
  }
  if (slot->slot_class == SVOD_SLOT_INPUT) return device.inputs[slot->io] + offset;
  if (slot->slot_class == SVOD_SLOT_OUTPUT) return device.outputs[slot->io] + offset;
  if (slot->slot_class == SVOD_SLOT_WEIGHT) return device.weights + offset;
  return device.arena + offset;
}

void name_step(const Device& device, const SvodStep& step, Printer& errors) {
  errors << "kernel " << Text(text_at(device.packed, device.launches[step.program].name))
         << " of node ";
  const SvodText& sources = step.sources;
  errors.name({svod_text(device.model.image, sources), sources.size});
  errors << "\n";
}

bool allocate(Device& device, uint64_t bytes, DevicePointer& out, Printer& errors) {
  return went_well(device.driver, device.driver.allocate(&out, bytes + kAlign),
                   "its memory", errors);
}

bool take_device_memory(Device& device, Printer& errors) {
  const SvodEntry& entry = *device.entry;
  uint64_t scratch = 0;
  for (uint32_t p = 0; p < header_of(device.packed).programs; p++)
    if (device.launches[p].scratch_bytes > scratch)
      scratch = device.launches[p].scratch_bytes;
  const uint64_t words = sizeof(int32_t) * entry.step_count;
  bool all = allocate(device, entry.arena_bytes, device.arena, errors) &&
             allocate(device, scratch, device.scratch, errors) &&
             allocate(device, device.packed.weight_bytes, device.weights, errors) &&
             allocate(device, words, device.faults, errors);
  for (uint32_t i = 0; all && i < entry.input_count; i++)
    all = allocate(device, svod_input(device.model.image, &entry, i)->bytes,
                   device.inputs[i], errors);
  for (uint32_t i = 0; all && i < entry.output_count; i++)
    all = allocate(device, svod_output(device.model.image, &entry, i)->bytes,
                   device.outputs[i], errors);
  return all &&
         (device.packed.weight_bytes == 0 ||
          went_well(device.driver,
                    device.driver.upload(device.weights, device.packed.weights,
                                         device.packed.weight_bytes, device.stream),
                    "its weights", errors));
}

// Each kernel is a module of its own, of those that steps launch.
bool load_kernels(Device& device, Printer& errors) {
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    const SvodStep& step = *svod_step(device.model.image, device.entry, s);
    if (step.kind != SVOD_STEP_LAUNCH || device.functions[step.program] != nullptr)
      continue;
    const SvodLaunchShape& launch = device.launches[step.program];
    CudaModule* module = nullptr;
    int32_t status = device.driver.load(&module, text_at(device.packed, launch.ptx));
    if (status == 0)
      status = device.driver.find(&device.functions[step.program], module,
                                  text_at(device.packed, launch.name));
    if (went_well(device.driver, status, "a kernel is refused", errors)) continue;
    errors << "error: it is ";
    name_step(device, step, errors);
    return false;
  }
  return true;
}

bool enqueue(Device& device, uint32_t number, void** parameters, DevicePointer* values,
             Printer& errors) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  const uint32_t* args = args_of(device, step);
  int32_t status = 0;
  if (step.kind == SVOD_STEP_COPY) {
    status = device.driver.copy(address(device, args[1]), address(device, args[0]),
                                slot_of(device, args[1]).bytes, device.stream);
    return went_well(device.driver, status, "a copy", errors);
  }
  uint32_t count = 0;
  for (; count < step.arg_count; count++) values[count] = address(device, args[count]);
  values[count++] = device.scratch;
  values[count++] = device.faults + sizeof(int32_t) * number;
  for (uint32_t i = 0; i < count; i++) parameters[i] = &values[i];
  const SvodLaunchShape& launch = device.launches[step.program];
  status =
      device.driver.launch(device.functions[step.program], launch.blocks, 1, 1,
                           launch.threads, 1, 1, 0, device.stream, parameters, nullptr);
  if (went_well(device.driver, status, "a launch", errors)) return true;
  errors << "error: it is of ";
  name_step(device, step, errors);
  return false;
}

// The steps of a run as one graph.
bool capture(Device& device, Printer& errors) {
  const Driver& driver = device.driver;
  constexpr int32_t kThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const uint64_t most = uint64_t{svod_header(device.model.image)->max_buffers} + 2;
  auto* memory =
      static_cast<uint8_t*>(take_memory(most * (sizeof(void*) + sizeof(uint64_t))));
  if (memory == nullptr) return false;
  auto** parameters = reinterpret_cast<void**>(memory);
  auto* values = reinterpret_cast<DevicePointer*>(memory + most * sizeof(void*));
  CudaGraph* graph = nullptr;
  if (!went_well(driver, driver.capture(device.stream, kThisThread), "its graph", errors))
    return false;
  const uint64_t words = sizeof(int32_t) * device.entry->step_count;
  bool all = went_well(driver, driver.fill(device.faults, 0, words, device.stream),
                       "a fill", errors);
  for (uint32_t s = 0; all && s < device.entry->step_count; s++)
    all = enqueue(device, s, parameters, values, errors);
  const int32_t status = driver.captured(device.stream, &graph);
  return all && went_well(driver, status, "its graph", errors) &&
         went_well(driver, driver.instantiate(&device.graph, graph, 0), "its graph",
                   errors);
}

bool prepare_device(Device& device, int32_t number, Printer& errors) {
  const Driver& driver = device.driver;
  CudaContext* context = nullptr;
  constexpr uint32_t kApart = 1; // CU_STREAM_NON_BLOCKING
  return went_well(driver, driver.context(&context, number), "a context", errors) &&
         went_well(driver, driver.use(context), "a context", errors) &&
         went_well(driver, driver.stream(&device.stream, kApart), "a stream", errors) &&
         take_device_memory(device, errors) && load_kernels(device, errors) &&
         capture(device, errors) &&
         went_well(driver, driver.wait(device.stream), "its weights", errors);
}

// The pointers and the list of faults, behind the device itself.
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
  auto* memory = static_cast<uint8_t*>(
      take_memory(size + pointers * 8 + sizeof(int32_t) * entry->step_count));
  if (memory == nullptr) return nullptr;
  auto* device = reinterpret_cast<Device*>(memory); // zeroed
  device->packed = packed, device->model = model, device->entry = entry;
  device->inputs = reinterpret_cast<DevicePointer*>(memory + size);
  device->outputs = device->inputs + entry->input_count;
  device->functions =
      reinterpret_cast<CudaFunction**>(device->outputs + entry->output_count);
  device->found =
      reinterpret_cast<int32_t*>(device->functions + header_of(packed).programs);
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
  if (prepare_device(*device, found.device, errors)) {
    session.device = device;
    return EXIT_DONE;
  }
  if (place == RunsOn::Gpu) return EXIT_CPU;
  errors << "note: the CPU runs instead; --device=cpu does not try the GPU\n";
  return EXIT_DONE;
}

Exit run_on_device(Session& session, Printer& errors) {
  Device& device = *session.device;
  const Driver& driver = device.driver;
  const SvodEntry& entry = *device.entry;
  int32_t status = 0;
  for (uint32_t i = 0; status == 0 && i < entry.input_count; i++) {
    const SvodTensor* tensor = svod_input(device.model.image, &entry, i);
    if (!svod_has_packed_value(device.model.image, tensor, session.inputs[i])) {
      print_error(errors, "an input is not the value that was packed");
      return EXIT_BAD_DATA;
    }
    status =
        driver.upload(device.inputs[i], session.inputs[i], tensor->bytes, device.stream);
  }
  if (status == 0) status = driver.run(device.graph, device.stream);
  for (uint32_t i = 0; status == 0 && i < entry.output_count; i++)
    status =
        driver.download(session.outputs[i], device.outputs[i],
                        svod_output(device.model.image, &entry, i)->bytes, device.stream);
  if (status == 0)
    status = driver.download(device.found, device.faults,
                             sizeof(int32_t) * entry.step_count, device.stream);
  if (status == 0) status = driver.wait(device.stream);
  if (!went_well(driver, status, "a run", errors)) return EXIT_CPU;
  for (uint32_t s = 0; s < entry.step_count; s++) {
    if (device.found[s] == 0) continue;
    errors << "error: an index in the data is out of range, in ";
    name_step(device, *svod_step(device.model.image, &entry, s), errors);
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
  for (uint32_t i = 0; i < header_of(packed).architectures; i++)
    out << " sm_" << architectures(packed)[i];
  out << " and later\n";
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
