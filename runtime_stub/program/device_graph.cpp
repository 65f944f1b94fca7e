// One stream is captured, so the graph is a chain: each step begins when the one before
// it has ended, as in the plan, where steps share the bytes of the arena.
#include "runtime_stub/program/device_graph.h"

#include "runtime_stub/replay.h"

namespace packed {

namespace {

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

// Of a launch: its parameters, which point to their values.
struct Parameters {
  void** pointers;
  DevicePointer* values;
};

bool enqueue(Device& device, uint32_t number, const Parameters& parameters,
             Printer& errors) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  const uint32_t* args = args_of(device, step);
  int32_t status = 0;
  if (step.kind == SVOD_STEP_COPY) {
    status = device.driver.copy(address(device, args[1]), address(device, args[0]),
                                slot_of(device, args[1]).bytes, device.stream);
    return went_well(device.driver, status, "a copy", errors);
  }
  const auto& [pointers, values] = parameters;
  uint32_t count = 0;
  for (; count < step.arg_count; count++) values[count] = address(device, args[count]);
  values[count++] = device.scratch;
  values[count++] = device.arrived;
  values[count++] = device.faults + sizeof(int32_t) * number;
  for (uint32_t i = 0; i < count; i++) pointers[i] = &values[i];
  const SvodLaunchShape& launch = device.launches[step.program];
  status = device.driver.launch(device.functions[step.program], launch.blocks, 1, 1,
                                launch.threads, 1, 1, launch.shared_bytes, device.stream,
                                pointers, nullptr);
  if (went_well(device.driver, status, "a launch", errors)) return true;
  errors << "error: it is of ";
  name_step(device, step, errors);
  return false;
}

// Recorded by the graph itself, not a mark between streams of the capture.
bool record(Device& device, CudaEvent* event, Printer& errors) {
  constexpr uint32_t kExternal = 1; // CU_EVENT_RECORD_EXTERNAL
  return went_well(device.driver, device.driver.record(event, device.stream, kExternal),
                   "an event", errors);
}

// A graph takes no copy of nothing, as of a model without steps.
bool copy_up(Device& device, Printer& errors) {
  const uint64_t at = device.faults - device.exchange,
                 bytes = device.exchange_end - device.faults;
  return bytes == 0 || went_well(device.driver,
                                 device.driver.upload(device.faults, device.staging + at,
                                                      bytes, device.stream),
                                 "a copy", errors);
}

bool copy_down(Device& device, Printer& errors) {
  const uint64_t bytes = device.faults_end - device.exchange;
  return bytes == 0 || went_well(device.driver,
                                 device.driver.download(device.staging, device.exchange,
                                                        bytes, device.stream),
                                 "a copy", errors);
}

bool enqueue_all(Device& device, const GraphParts& parts, const Parameters& parameters,
                 Printer& errors) {
  bool all = !parts.copies || copy_up(device, errors);
  for (uint32_t s = 0; all && s < device.entry->step_count; s++) {
    if (parts.events != nullptr) all = record(device, parts.events[s], errors);
    all = all && enqueue(device, s, parameters, errors);
  }
  if (all && parts.events != nullptr)
    all = record(device, parts.events[device.entry->step_count], errors);
  return all && (!parts.copies || copy_down(device, errors));
}

} // namespace

bool capture(Device& device, const GraphParts& parts, CudaGraphRun*& run,
             Printer& errors) {
  const Driver& driver = device.driver;
  constexpr int32_t kThisThread = 1; // CU_STREAM_CAPTURE_MODE_THREAD_LOCAL
  const uint64_t most = uint64_t{svod_header(device.model.image)->max_buffers} + 3;
  auto* memory =
      static_cast<uint8_t*>(take_memory(most * (sizeof(void*) + sizeof(uint64_t))));
  if (memory == nullptr) {
    print_error(errors, "there is not enough memory");
    return false;
  }
  const Parameters parameters = {
      reinterpret_cast<void**>(memory),
      reinterpret_cast<DevicePointer*>(memory + most * sizeof(void*))};
  CudaGraph* graph = nullptr;
  if (!went_well(driver, driver.capture(device.stream, kThisThread), "its graph", errors))
    return false;
  const bool all = enqueue_all(device, parts, parameters, errors);
  const int32_t status = driver.captured(device.stream, &graph);
  return all && went_well(driver, status, "its graph", errors) &&
         went_well(driver, driver.instantiate(&run, graph, 0), "its graph", errors);
}

} // namespace packed
