// What a program adds to runtime_stub/device: words, and where its inputs and outputs
// lie.
#include "runtime_stub/program/device.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/device_times.h"
#include "runtime_stub/program/words.h"

namespace packed {

using svod_device::staged;

namespace {

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

void name_step(const Device& device, uint32_t number, Printer& errors) {
  const SvodStep& step = *svod_step(device.model.image, device.entry, number);
  errors << "kernel " << Text(svod_device::kernel_of(device, number)) << " of node ";
  errors.name({svod_text(device.model.image, step.sources), step.sources.size});
  errors << "\n";
}

// Of the session's entry. Null where what is packed is damaged, or there is no memory.
Device* make_device(const Session& session) {
  SvodDevice packed;
  svod_get_device(
      &packed, static_cast<uint32_t>(session.entry - svod_entry(session.model.image, 0)));
  void* memory = take_memory(svod_device::room_of(packed));
  return memory == nullptr ? nullptr : svod_device::place(memory, packed);
}

} // namespace

void print_fault(const Device& device, Printer& errors) {
  const svod_device::Fault& fault = device.fault;
  errors << "error: GPU: " << Text(fault.what) << ": ";
  if (const char* words = svod_device::words_of(device.driver, fault.status))
    errors << Text(words) << " (" << fault.status << ")\n";
  else
    errors << "status " << fault.status << " of the driver\n";
  if (fault.step == svod_device::kNoStep) return;
  errors << "error: it is ";
  name_step(device, fault.step, errors);
}

Exit open_device(Session& session, RunsOn place, Printer& errors) {
  if (place == RunsOn::Cpu) return EXIT_DONE;
  Device* device = make_device(session);
  if (device == nullptr) {
    print_error(errors, "what this program holds for a GPU is damaged");
    return EXIT_DAMAGED;
  }
  device->here_level = session.level;
  if (const char* why = svod_device::find(*device, false); why != nullptr) {
    if (place == RunsOn::Auto) return EXIT_DONE;
    errors << "error: --device=cuda: " << Text(why)
           << "; --info lists what is here, --device=cpu runs here\n";
    return EXIT_CPU;
  }
  if (svod_device::stay(*device) && svod_device::open(*device)) {
    session.device = device;
    for (uint32_t i = 0; i < device->entry->output_count; i++)
      session.outputs[i] = staged(*device, device->outputs[i]);
    return EXIT_DONE;
  }
  print_fault(*device, errors);
  if (place == RunsOn::Gpu) return EXIT_CPU;
  errors << "note: the CPU runs instead; --device=cpu does not try the GPU\n";
  return EXIT_DONE;
}

Exit run_on_device(Session& session, Printer& errors) {
  Device& device = *session.device;
  const SvodEntry& entry = *device.entry;
  for (uint32_t i = 0; i < entry.input_count; i++) {
    const SvodTensor* tensor = svod_input(device.model.image, &entry, i);
    if (svod_has_packed_value(device.model.image, tensor, session.inputs[i])) continue;
    print_error(errors, "an input is not the value that was packed");
    return EXIT_BAD_DATA;
  }
  stage_inputs(session);
  svod_device::Stop stop;
  if (!svod_device::run(device, stop)) {
    print_fault(device, errors);
    return EXIT_CPU;
  }
  if (stop.status == SVOD_OK) return EXIT_DONE;
  if (stop.status != SVOD_INDEX)
    return print_failure(device_session(session), stop.status, stop.step, errors);
  errors << "error: an index in the data is out of range, in ";
  name_step(device, stop.step, errors);
  return EXIT_INDEX;
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

// Each step of the GPU's plan that the processor runs.
static void print_steps_here(Printer& out, const SvodDevice& packed) {
  const SvodDeviceHeader& header = svod_device::header_of(packed);
  const auto* shapes = reinterpret_cast<const SvodLaunchShape*>(
      static_cast<const char*>(packed.programs) + header.first_launch);
  const SvodEntry* entry = svod_entry(packed.image, 0);
  for (uint32_t s = 0; packed.launch != nullptr && s < entry->step_count; s++) {
    const SvodStep& step = *svod_step(packed.image, entry, s);
    if (step.kind != SVOD_STEP_LAUNCH || shapes[step.program].blocks != 0) continue;
    out << "device   on the processor, as C++ of its own: ";
    out.name({svod_text(packed.image, step.sources), step.sources.size}) << "\n";
  }
}

void print_devices() {
  Printer out(1);
  SvodDevice packed;
  svod_get_device(&packed, 0);
  if (!svod_device::is_whole(packed)) return;
  out << "device   packed for";
  for (uint32_t i = 0; i < svod_device::header_of(packed).architectures; i++) {
    const uint32_t number = svod_device::architectures(packed)[i];
    out << (i == 0 ? " sm_" : ", sm_") << (number & ~SVOD_ONLY_THIS)
        << ((number & SVOD_ONLY_THIS) != 0 ? "a" : " and later");
  }
  out << "\n";
  print_steps_here(out, packed);
  svod_device::Driver driver;
  const char* why = svod_device::start_driver(driver);
  int32_t count = 0;
  if (why == nullptr && (driver.count(&count) != 0 || count == 0))
    why = "the driver knows no GPU";
  if (why != nullptr) out << "device   none: " << Text(why) << "\n";
  for (int32_t i = 0; i < count; i++) {
    char name[128] = {};
    int32_t device = 0;
    if (driver.device(&device, i) != 0) continue;
    driver.name(name, sizeof(name) - 1, device);
    out << "device   " << i << ": " << Text(name) << ", sm_"
        << svod_device::architecture_of(driver, device) << "\n";
  }
}

} // namespace packed
