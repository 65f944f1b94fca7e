// One stream is captured, so the graph is a chain: each step begins when the one before
// it has ended, as in the plan, where steps share the bytes of the arena. Steps of the
// processor find inputs and outputs where the program has them, and temporaries in memory
// of their own, which the GPU copies from and to itself.
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

// The slot that it is a part of, and how far from its begin; no loop moves it.
struct Root {
  uint32_t number;
  uint64_t offset;
};

Root root_of(const Device& device, uint32_t number) {
  const SvodSlot* slot = &slot_of(device, number);
  Root out = {number, 0};
  while (slot->slot_class == SVOD_SLOT_SLICE) {
    const SvodHeader* header = svod_header(device.model.image);
    out.offset += slot->offset;
    out.number = svod_at<SvodSlice>(header, header->slices, slot->io)->parent;
    slot = &slot_of(device, out.number);
  }
  return out;
}

DevicePointer address(const Device& device, const Place& place, uint32_t number) {
  const Root root = root_of(device, number);
  const SvodSlot& slot = slot_of(device, root.number);
  const uint64_t offset = slot.offset + root.offset;
  if (slot.slot_class == SVOD_SLOT_INPUT) return place.inputs[slot.io] + offset;
  if (slot.slot_class == SVOD_SLOT_OUTPUT) return place.outputs[slot.io] + offset;
  if (slot.slot_class == SVOD_SLOT_WEIGHT) return device.weights + offset;
  return device.arena + offset;
}

// A kernel reads weights through the same kind of pointer it writes temporaries by.
void* address_here(const Device& device, uint32_t number) {
  const Root root = root_of(device, number);
  const SvodSlot& slot = slot_of(device, root.number);
  if (slot.slot_class == SVOD_SLOT_TEMPORARY)
    return device.here + device.places[root.number] + root.offset;
  const uint64_t offset = slot.offset + root.offset;
  if (slot.slot_class == SVOD_SLOT_INPUT)
    return staged(device, device.inputs[slot.io]) + offset;
  if (slot.slot_class == SVOD_SLOT_OUTPUT)
    return staged(device, device.outputs[slot.io]) + offset;
  return const_cast<uint8_t*>(static_cast<const uint8_t*>(device.packed.weights) +
                              offset);
}

bool is_between_places(const Device& device, const SvodStep& step) {
  if (step.kind != SVOD_STEP_COPY || step.program == SVOD_COPY_THERE) return false;
  const uint32_t* args = args_of(device, step);
  return args[0] == args[1];
}

bool enqueue_down(Device& device, const Place& place, uint32_t slot) {
  const auto bytes = static_cast<size_t>(slot_of(device, slot).bytes);
  return bytes == 0 || went_well(device,
                                 device.driver.download(address_here(device, slot),
                                                        address(device, place, slot),
                                                        bytes, place.stream),
                                 "a copy to the processor");
}

bool enqueue_up(Device& device, const Place& place, uint32_t slot) {
  const auto bytes = static_cast<size_t>(slot_of(device, slot).bytes);
  return bytes == 0 ||
         went_well(device,
                   device.driver.upload(address(device, place, slot),
                                        address_here(device, slot), bytes, place.stream),
                   "a copy from the processor");
}

bool enqueue(Device& device, const Place& place, uint32_t number) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  const uint32_t* args = args_of(device, step);
  int32_t status = 0;
  if (is_between_places(device, step))
    return step.program == SVOD_COPY_DOWN ? enqueue_down(device, place, args[0])
                                          : enqueue_up(device, place, args[0]);
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

// All from `begin` to the end of the words. A graph takes no copy of nothing, as of a
// model without steps.
bool copy_down(Device& device, DevicePointer begin) {
  const uint64_t bytes = device.faults_end - begin;
  return bytes == 0 ||
         went_well(device,
                   device.driver.download(staged(device, begin), begin,
                                          static_cast<size_t>(bytes), device.stream),
                   "a copy");
}

// Whether it is in a graph with these parts.
bool is_captured(const Device& device, const GraphParts& parts, uint32_t number) {
  if (runs_here(device, number)) return false;
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  return parts.copies || !is_between_places(device, step);
}

bool enqueue_all(Device& device, const GraphParts& parts) {
  const Place place = {device.stream, device.inputs, device.outputs};
  const uint32_t count = device.entry->step_count,
                 end = parts.end < count ? parts.end : count;
  bool all = !parts.inputs || copy_up(device);
  for (uint32_t s = parts.begin; all && s < end; s++) {
    if (parts.events != nullptr) all = record(device, parts.events[s]);
    if (is_captured(device, parts, s)) all = all && enqueue(device, place, s);
  }
  if (all && parts.events != nullptr) all = record(device, parts.events[end]);
  if (!all) return false;
  if (parts.results) return copy_down(device, device.results);
  return !parts.copies || copy_down(device, device.faults);
}

// visit(slot) of the tensors of the processor's steps in a row that are of this class.
template <class Visit>
bool for_each_here(const Device& device, uint32_t begin, uint32_t slot_class,
                   const Visit& visit) {
  for (uint32_t s = begin; s < device.entry->step_count && runs_here(device, s); s++) {
    const SvodStep& step = *svod_step(device.model.image, device.entry, s);
    const uint32_t* args = args_of(device, step);
    for (uint32_t i = 0; i < step.arg_count; i++) {
      const SvodSlot& root = slot_of(device, root_of(device, args[i]).number);
      if (root.slot_class == slot_class && !visit(args[i], root.io)) return false;
    }
  }
  return true;
}

// The processor's steps from `begin` on, of a run on a caller's stream: inputs that they
// read come here, and all before them is done, outputs that no other step touches go
// there.
bool run_between(Device& device, const Place& place, uint32_t& begin, Stop& stop) {
  const uint32_t first = begin;
  if (!for_each_here(
          device, first, SVOD_SLOT_INPUT,
          [&](uint32_t slot, uint32_t) { return enqueue_down(device, place, slot); }) ||
      !fetch_stop(device, place.stream, stop))
    return false;
  if (stop.status == SVOD_OK) stop = run_turn_here(device, begin);
  if (stop.status != SVOD_OK) return true;
  return for_each_here(device, first, SVOD_SLOT_OUTPUT, [&](uint32_t slot, uint32_t io) {
    return device.outputs[io] >= device.results || enqueue_up(device, place, slot);
  });
}

} // namespace

bool runs_here(const Device& device, uint32_t number) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  return device.packed.launch != nullptr && step.kind == SVOD_STEP_LAUNCH &&
         device.launches[step.program].blocks == 0;
}

bool is_only_here(const Device& device, uint32_t slot_class, uint32_t io) {
  if (device.packed.launch == nullptr) return false;
  bool here = false;
  for (uint32_t s = 0; s < device.entry->step_count; s++) {
    const SvodStep& step = *svod_step(device.model.image, device.entry, s);
    if (is_between_places(device, step)) continue;
    const uint32_t* args = args_of(device, step);
    for (uint32_t i = 0; i < step.arg_count; i++) {
      const SvodSlot& root = slot_of(device, root_of(device, args[i]).number);
      if (root.slot_class != slot_class || root.io != io) continue;
      if (!runs_here(device, s)) return false;
      here = true;
    }
  }
  return here;
}

Stop run_here(Device& device, uint32_t number) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  const uint32_t* args = args_of(device, step);
  for (uint32_t i = 0; i < step.arg_count; i++)
    device.parameters[i] = address_here(device, args[i]);
  for (uint32_t chunk = 0; chunk < step.chunks; chunk++) {
    const int32_t status = device.packed.launch(
        device.here_level, step.program, device.parameters, device.here_scratch, chunk);
    if (status == SVOD_OK) continue;
    const bool is_told = status == SVOD_LIMIT || status == SVOD_BAD_ARGUMENT;
    return {is_told ? status : SVOD_INDEX, number};
  }
  return {};
}

Stop run_turn_here(Device& device, uint32_t& begin) {
  for (; begin < device.entry->step_count && runs_here(device, begin); begin++) {
    const Stop stop = run_here(device, begin);
    if (stop.status != SVOD_OK) return stop;
  }
  return {};
}

uint32_t turn_there_end(const Device& device, uint32_t begin) {
  while (begin < device.entry->step_count && !runs_here(device, begin)) begin++;
  return begin;
}

bool copy_up(Device& device) {
  const uint64_t at = device.faults - device.exchange,
                 bytes = device.sent_end - device.faults;
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

bool capture_run(Device& device) {
  const uint32_t graphs = header_of(device.packed).graphs;
  uint32_t begin = 0;
  for (uint32_t i = 0; i < graphs; i++) {
    while (begin < device.entry->step_count && runs_here(device, begin)) begin++;
    const uint32_t end = turn_there_end(device, begin);
    if (!capture(device,
                 {.begin = begin,
                  .end = end,
                  .inputs = i == 0,
                  .results = i + 1 == graphs,
                  .copies = true},
                 device.graphs[i]))
      return false;
    begin = end;
  }
  return true;
}

bool launch_all(Device& device, CudaStream* stream, const DevicePointer* inputs,
                const DevicePointer* outputs, Stop& stop) {
  const Place place = {stream, inputs, outputs};
  stop = {};
  for (uint32_t s = 0; s < device.entry->step_count;) {
    if (runs_here(device, s)) {
      if (!run_between(device, place, s, stop)) return false;
      if (stop.status != SVOD_OK) return true;
    } else if (!enqueue(device, place, s++)) {
      return false;
    }
  }
  return true;
}

} // namespace svod_device
