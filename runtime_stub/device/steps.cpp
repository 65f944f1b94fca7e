// One stream is captured, so the graph is a chain: each step begins when the one before
// it has ended, as in the plan, where steps share the bytes of the arena.
#include "runtime_stub/device/steps.h"

namespace svod_device {

namespace {

const uint32_t* args_of(const Device& device, const SvodStep& step) {
  return svod_at<uint32_t>(device.model.image, svod_header(device.model.image)->args,
                           step.first_arg);
}

const SvodSlot& slot_of(const Device& device, uint32_t number) {
  return *svod_at<SvodSlot>(device.model.image, svod_header(device.model.image)->slots,
                            uint64_t{device.entry->first_slot} + number);
}

// Where steps go, and where inputs and outputs lie.
struct Place {
  CudaStream* stream;
  const DevicePointer *inputs, *outputs;
};

DevicePointer address(const Device& device, const Place& place, uint32_t number) {
  const SvodSlot* slot = &slot_of(device, number);
  DevicePointer offset = slot->offset;
  while (slot->slot_class == SVOD_SLOT_SLICE) { // no loop moves it
    const SvodHeader* header = svod_header(device.model.image);
    slot = &slot_of(device, svod_at<SvodSlice>(header, header->slices, slot->io)->parent);
    offset += slot->offset;
  }
  if (slot->slot_class == SVOD_SLOT_INPUT) return place.inputs[slot->io] + offset;
  if (slot->slot_class == SVOD_SLOT_OUTPUT) return place.outputs[slot->io] + offset;
  if (slot->slot_class == SVOD_SLOT_WEIGHT) return device.weights + offset;
  return device.arena + offset;
}

bool enqueue(Device& device, const Place& place, uint32_t number) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  const uint32_t* args = args_of(device, step);
  int32_t status = 0;
  if (step.kind == SVOD_STEP_COPY) {
    status = device.driver.copy(
        address(device, place, args[1]), address(device, place, args[0]),
        static_cast<size_t>(slot_of(device, args[1]).bytes), place.stream);
    return went_well(device, status, "a copy");
  }
  DevicePointer* values = device.values;
  uint32_t count = 0;
  for (; count < step.arg_count; count++)
    values[count] = address(device, place, args[count]);
  values[count++] = device.scratch;
  values[count++] = device.arrived;
  values[count++] = device.faults + sizeof(int32_t) * number;
  for (uint32_t i = 0; i < count; i++) device.parameters[i] = &values[i];
  const SvodLaunchShape& launch = device.launches[step.program];
  status = device.driver.launch(device.functions[step.program], launch.blocks, 1, 1,
                                launch.threads, 1, 1, launch.shared_bytes, place.stream,
                                device.parameters, nullptr);
  return went_well(device, status, "a launch", number);
}

// Recorded by the graph itself, not a mark between streams of the capture.
bool record(Device& device, CudaEvent* event) {
  constexpr uint32_t kExternal = 1; // CU_EVENT_RECORD_EXTERNAL
  return went_well(device, device.driver.record(event, device.stream, kExternal),
                   "an event");
}

// A graph takes no copy of nothing, as of a model without steps.
bool copy_down(Device& device) {
  const uint64_t bytes = device.faults_end - device.exchange;
  return bytes == 0 ||
         went_well(device,
                   device.driver.download(device.staging, device.exchange,
                                          static_cast<size_t>(bytes), device.stream),
                   "a copy");
}

bool enqueue_all(Device& device, const GraphParts& parts) {
  const Place place = {device.stream, device.inputs, device.outputs};
  bool all = !parts.copies || copy_up(device);
  for (uint32_t s = 0; all && s < device.entry->step_count; s++) {
    if (parts.events != nullptr) all = record(device, parts.events[s]);
    all = all && enqueue(device, place, s);
  }
  if (all && parts.events != nullptr)
    all = record(device, parts.events[device.entry->step_count]);
  return all && (!parts.copies || copy_down(device));
}

} // namespace

bool copy_up(Device& device) {
  const uint64_t at = device.faults - device.exchange,
                 bytes = device.exchange_end - device.faults;
  return bytes == 0 ||
         went_well(device,
                   device.driver.upload(device.faults, device.staging + at,
                                        static_cast<size_t>(bytes), device.stream),
                   "a copy");
}

bool capture(Device& device, const GraphParts& parts, CudaGraphRun*& run) {
  const Driver& driver = device.driver;
  constexpr int32_t kThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  CudaGraph* graph = nullptr;
  if (!went_well(device, driver.capture(device.stream, kThisThread), "its graph"))
    return false;
  const bool all = enqueue_all(device, parts);
  const int32_t status = driver.captured(device.stream, &graph);
  const bool made = all && went_well(device, status, "its graph") &&
                    went_well(device, driver.instantiate(&run, graph, 0), "its graph");
  if (graph != nullptr) (void)driver.drop(graph);
  return made;
}

bool launch_all(Device& device, CudaStream* stream, const DevicePointer* inputs,
                const DevicePointer* outputs) {
  const Place place = {stream, inputs, outputs};
  for (uint32_t s = 0; s < device.entry->step_count; s++)
    if (!enqueue(device, place, s)) return false;
  return true;
}

} // namespace svod_device
