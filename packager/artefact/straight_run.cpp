// What an interpreter looks up at run time is known here: which kernel a step calls,
// where its buffers lie, how often it runs. So a step becomes a call of its kernel with
// addresses, a loop of the plan a loop, and of a model's tables nothing is left.
//
// Nothing of the model stands in the text but numbers.
#include "packager/artefact/straight_run.h"

#include "compiler/support/check.h"
#include "packager/artefact/byte_list.h"
#include "packager/artefact/call_table.h"
#include "packager/artefact/straight_changes.h"
#include "packager/artefact/straight_states.h"
#include "packager/artefact/window_rows.h"

#include <algorithm>
#include <map>
#include <sstream>

namespace svod::packager {

namespace {

using plan::Slot;
using plan::SlotClass;
using plan::SlotId;
using plan::Step;
using plan::StepKind;

// Of a kernel that is another object's.
std::string declaration_of(const ScheduledKernel& kernel,
                           const codegen::KernelSource& source) {
  std::string types;
  const auto add = [&](const char* type) {
    types += std::string(types.empty() ? "" : ", ") + type;
  };
  for (size_t i = 0; i < kernel.arguments.size(); i++) add("void*");
  if (codegen::takes_scratch(kernel)) add("void*");
  if (codegen::takes_chunk(kernel)) add("uint32_t");
  using enum codegen::NumberPassing;
  if (source.passing == Words16) add("const uint16_t*");
  if (source.passing == Words32) add("const int32_t*");
  for (size_t i = 0; source.passing == Values && i < source.numbers.size(); i++)
    add("int32_t");
  return (codegen::can_fail(kernel) ? "int32_t " : "void ") + source.symbol + "(" +
         types + ");\n";
}

constexpr char kPointers[] = "const void* const inputs[], void* const outputs[]";

class RunWriter {
public:
  explicit RunWriter(const StraightRun& run)
      : run_(run), plan_(run.kernels.plan), entry_(run.contents.entries.front()),
        states_(plan_, entry_), changes_(run.contents.changes, kPointers) {}
  std::string write();

private:
  void write_declarations();
  void write_numbers();
  std::string symbol_of(const codegen::KernelSource& kernel) const;
  std::string numbers_of(const codegen::KernelSource& kernel) const;
  void write_tensors(const char* name, std::span<const ImageTensor> tensors);
  void write_checks();
  void write_run();
  void write_launches();
  void write_step(const Step& step);
  void write_chunks(size_t first);
  void write_launch(const Step& step, const std::string& chunk);
  void write_stream(size_t first);
  void write_turns(const plan::Stream& stream, const Step* steps, size_t end);
  void write_turn(const plan::Stream& stream, size_t launch, const Step& step);
  void write_new_rows(const plan::Stream::Window& window);
  void write_loop(const Step& step);
  void write_end(const Step& step);
  void write_run_function(const std::string& name, const std::string& memory,
                          const std::string& argument);
  void write_functions();
  std::string address(SlotId id, const std::string& chunk = "0u") const;
  std::string place(SlotId id, const std::string& chunk = "0u") const;
  bool in_pools() const { return !plan_.pool_bytes.empty(); }
  std::string number(uint32_t depth) const { return "i" + std::to_string(depth); }
  void line(const std::string& text) {
    out_ << std::string(2 * static_cast<size_t>(depth_), ' ') << text << "\n";
  }

  const StraightRun& run_;
  const plan::Plan& plan_;
  const ImageEntry& entry_;
  const StraightStates states_;
  const StraightChanges changes_;
  std::map<uint32_t, const codegen::KernelSource*> kernels_; // by program
  std::map<uint32_t, size_t> number_places_;                 // by program, in its table
  CallTable table_;
  // Around what is written, and the rate of the launch in it.
  const plan::Stream* stream_ = nullptr;
  int64_t rate_ = 1;
  std::ostringstream out_;
  int depth_ = 1;
};

void RunWriter::write_declarations() {
  for (const codegen::KernelSource& kernel : run_.kernels.sources)
    kernels_.emplace(kernel.program, &kernel);
  if (run_.alone) {
    out_ << "using namespace svod_firmware;\n\nnamespace {\n\n";
    return;
  }
  out_ << "#include \"runtime_stub/firmware.h\"\n"
       << (changes_.empty() ? "" : "#include \"runtime_stub/changes.h\"\n")
       << "\nusing namespace svod_firmware;\n\n"
       << "extern \"C\" {\n";
  if (plan_.weight_bytes != 0)
    out_ << "extern const uint8_t " << run_.prefix << "_weights[];\n";
  out_ << "extern const char " << run_.prefix << "_manifest[];\n";
  for (const auto& [program, kernel] : kernels_)
    out_ << declaration_of(plan_.programs[program], *kernel);
  if (run_.profile) out_ << "void svod_profile(uint32_t program);\n";
  out_ << "}\n\nnamespace {\n\n";
}

// What several kernels are that a compiler of one file would have as several.
std::string RunWriter::symbol_of(const codegen::KernelSource& kernel) const {
  const auto same = run_.same.find(kernel.symbol);
  return same == run_.same.end() ? kernel.symbol : same->second;
}

// Of merged kernels, those with a table in one for each width, so that one address
// reaches all.
void RunWriter::write_numbers() {
  using enum codegen::NumberPassing;
  for (const auto passing : {Words16, Words32}) {
    std::string all;
    size_t count = 0;
    std::map<std::vector<int64_t>, size_t> known;
    for (const auto& [program, kernel] : kernels_) {
      if (kernel->passing != passing) continue;
      const auto [at, is_new] = known.try_emplace(kernel->numbers, count);
      number_places_[program] = at->second;
      if (!is_new) continue;
      count += kernel->numbers.size();
      for (int64_t n : kernel->numbers) all += std::to_string(n) + ", ";
    }
    if (count != 0)
      out_ << "constexpr " << (passing == Words16 ? "uint16_t kWords" : "int32_t kLongs")
           << "[] = {" << all.substr(0, all.size() - 2) << "};\n";
  }
}

std::string RunWriter::numbers_of(const codegen::KernelSource& kernel) const {
  using enum codegen::NumberPassing;
  if (kernel.passing == Words16 || kernel.passing == Words32)
    return std::string(", ") + (kernel.passing == Words16 ? "kWords" : "kLongs") + " + " +
           std::to_string(number_places_.at(kernel.program));
  std::string out;
  for (int64_t n : kernel.numbers) out += ", " + std::to_string(n);
  return out;
}

// An array needs an element.
void RunWriter::write_tensors(const char* name, std::span<const ImageTensor> tensors) {
  out_ << "constexpr uint8_t " << name << "[] = {";
  for (const ImageTensor& tensor : tensors) out_ << tensor.alignment << ", ";
  out_ << "1};\n";
}

void RunWriter::write_checks() {
  write_tensors("kInputs", callers(entry_.inputs));
  write_tensors("kOutputs", callers(entry_.outputs));
  for (size_t i = 0; i < entry_.inputs.size(); i++)
    if (!entry_.inputs[i].fixed.empty())
      out_ << "constexpr uint8_t kFixed" << i
           << "[] = " << byte_list(entry_.inputs[i].fixed) << ";\n";
  const bool pools = in_pools();
  out_ << "\nint32_t check(" << (pools ? "void* const* pools" : "const void* arena")
       << ", const void* const* inputs,\n"
       << "              void* const* outputs) {\n";
  if (pools)
    out_ << "  constexpr uint32_t kPools = " << plan_.pool_bytes.size() << ";\n"
         << "  if (pools == nullptr) return SVOD_BAD_ARGUMENT;\n"
         << "  for (uint32_t i = 0; i < kPools; i++) {\n"
         << "    const void* const arena = pools[i];\n";
  out_ << "  if (arena == nullptr) return SVOD_BAD_ARGUMENT;\n"
       << "  if (!is_aligned(arena, " << plan_.align << ")) return SVOD_MISALIGNED;\n"
       << (pools ? "  }\n" : "")
       << "  if (const int32_t bad = check_tensors(inputs, kInputs, "
       << callers(entry_.inputs).size() << ")) return bad;\n";
  for (size_t i = 0; i < entry_.inputs.size(); i++)
    if (!entry_.inputs[i].fixed.empty())
      out_ << "  if (!has_value(inputs[" << i << "], kFixed" << i << ", sizeof kFixed"
           << i << ")) return SVOD_BAD_ARGUMENT;\n";
  out_ << "  return check_tensors(outputs, kOutputs, " << callers(entry_.outputs).size()
       << ");\n}\n\n";
}

std::string turn_of(int64_t rate) { return "n" + std::to_string(rate); }

// Of a slot, as a pointer. In a stream, of a tensor of which some rows are there, where
// it would begin.
std::string RunWriter::address(SlotId id, const std::string& chunk) const {
  if (stream_ == nullptr) return place(id, chunk);
  const auto w = std::ranges::find(stream_->windows, id, &plan::Stream::Window::slot);
  if (w == stream_->windows.end()) return place(id, chunk);
  const int64_t first = plan::window_begin(*stream_, *w, rate_, 0);
  const int64_t by = plan::window_begin(*stream_, *w, rate_, 1) - first;
  return "whole(" + place(id) + ", static_cast<uintptr_t>(" + turn_of(rate_) + " * " +
         std::to_string(by * w->row_bytes) + " + " +
         std::to_string(first * w->row_bytes) + "))";
}

// A slice moves with the loops around it.
std::string RunWriter::place(SlotId id, const std::string& chunk) const {
  const Slot* slot = &plan_.slots[id];
  if (slot->slot_class == SlotClass::Part)
    return "whole(at(scratch, " + std::to_string(slot->offset) + "), " +
           std::to_string(slot->bytes) + "u * " + chunk + ")";
  std::string offset;
  uint64_t fixed = slot->offset;
  while (slot->slot_class == SlotClass::Slice) {
    if (slot->stride != 0)
      offset += " + " + std::to_string(slot->stride) + " * static_cast<intptr_t>(" +
                number(slot->depth) + (slot->alternates ? " & 1u" : "") + ")";
    slot = &plan_.slots[slot->parent];
    fixed += slot->offset;
  }
  std::string base = "arena";
  if (const auto state = states_.place_of(*slot)) return *state;
  if (slot->slot_class == SlotClass::Temporary && in_pools()) {
    size_t pool = 0;
    for (; fixed >= plan_.pool_bytes[pool] && pool + 1 < plan_.pool_bytes.size(); pool++)
      fixed -= plan_.pool_bytes[pool];
    base = "arena" + std::to_string(pool);
  }
  if (slot->slot_class == SlotClass::Input)
    base = "inputs[" + std::to_string(slot->io) + "]";
  if (slot->slot_class == SlotClass::Output)
    base = "outputs[" + std::to_string(slot->io) + "]";
  if (slot->slot_class == SlotClass::Weight) base = run_.prefix + "_weights";
  return "at(" + base + ", " + std::to_string(fixed) + offset + ")";
}

void RunWriter::write_launch(const Step& step, const std::string& chunk) {
  const ScheduledKernel& kernel = plan_.programs[step.program];
  line("{");
  std::string arguments;
  for (SlotId id : step.arguments)
    arguments += (arguments.empty() ? "" : ", ") + address(id, chunk);
  if (codegen::takes_scratch(kernel)) arguments += ", scratch";
  if (codegen::takes_chunk(kernel)) arguments += ", " + chunk;
  const codegen::KernelSource& source = *kernels_.at(step.program);
  const std::string call = symbol_of(source) + "(" + arguments + numbers_of(source) + ")";
  line(codegen::can_fail(kernel) ? "  if (const int32_t bad = " + call + ") return bad;"
                                 : "  " + call + ";");
  if (run_.profile) line("  svod_profile(" + std::to_string(step.program) + "u);");
  line("}");
}

// A launch and its chain: one part of each in order before another part of any.
void RunWriter::write_chunks(size_t first) {
  const Step& step = plan_.steps[first];
  const bool loop = step.chunks > 1;
  if (loop) {
    line("for (uint32_t c = 0; c < " + std::to_string(step.chunks) + "; c++) {");
    ++depth_;
  }
  uint32_t left = step.followers + 1;
  for (size_t i = first; left > 0; i++) {
    if (plan_.steps[i].kind != StepKind::LaunchProgram) continue;
    write_launch(plan_.steps[i], loop ? "c" : "0u");
    --left;
  }
  if (!loop) return;
  --depth_;
  line("}");
}

void RunWriter::write_new_rows(const plan::Stream::Window& w) {
  if (!needs_room(w)) return;
  const auto [by, kept, end, fill] = new_rows(w);
  line("static constexpr NewRows kRows = {" + std::to_string(by) + "u, " +
       std::to_string(kept) + "u, " + std::to_string(end) + ", " + std::to_string(fill) +
       "u};");
  line("make_room(" + place(w.slot) + ", kRows, c);");
}

void RunWriter::write_turn(const plan::Stream& stream, size_t launch, const Step& step) {
  const plan::Stream::Launch& l = stream.launches[launch];
  line("{");
  ++depth_;
  line("const int32_t c = " + turn_of(l.rate) + " + " + std::to_string(l.ahead) + ";");
  for (const plan::Stream::Window& w : stream.windows) {
    if (w.writer != launch) continue;
    line("{");
    ++depth_;
    write_new_rows(w);
    --depth_;
    line("}");
  }
  line("if (static_cast<uint32_t>(c) < " + std::to_string(l.chunks) + "u)");
  rate_ = l.rate;
  write_launch(step, "static_cast<uint32_t>(c)");
  --depth_;
  line("}");
}

// The launches before `end`, those of higher rates in a loop of their own.
void RunWriter::write_turns(const plan::Stream& stream, const Step* steps, size_t end) {
  const int64_t rate = stream.launches[end - 1].rate;
  size_t first = end;
  while (first > 0 && stream.launches[first - 1].rate == rate) --first;
  const std::string n = turn_of(rate);
  if (end == stream.launches.size()) {
    line("for (int32_t " + n + " = " + std::to_string(stream.first_turn) + "; " + n +
         " < " + std::to_string(stream.turns) + "; " + n + "++) {");
  } else {
    const int64_t around = stream.launches[end].rate, times = rate / around;
    const std::string begin = turn_of(around) + " * " + std::to_string(times);
    line("for (int32_t " + n + " = " + begin + "; " + n + " < " + begin + " + " +
         std::to_string(times) + "; " + n + "++) {");
  }
  ++depth_;
  if (first > 0) write_turns(stream, steps, first);
  for (size_t i = first; i < end; i++) write_turn(stream, i, steps[i]);
  --depth_;
  line("}");
}

void RunWriter::write_stream(size_t first) {
  const plan::Stream& stream = plan_.streams[*plan_.steps[first].stream];
  std::vector<Step> steps;
  for (size_t i = first; steps.size() < stream.launches.size(); i++)
    if (plan_.steps[i].kind == StepKind::LaunchProgram) steps.push_back(plan_.steps[i]);
  stream_ = &stream;
  write_turns(stream, steps.data(), steps.size());
  stream_ = nullptr;
}

// Operations and bytes, of which a core executes about one with an instruction.
double work_of(const plan::Plan& plan) {
  double out = 0;
  for (const Step& step : plan.steps)
    out += double(step.flops + step.bytes) * double(step.repeats);
  return out;
}

// The number of the iteration stays when the loop has ended: results lie where it says.
void RunWriter::write_loop(const Step& step) {
  const plan::RegionSlots& r = step.region;
  const std::string i = number(r.depth), times = "times" + std::to_string(r.depth);
  line(i + " = 0;");
  line("for (const uint64_t " + times + " = read_count(" + address(r.count) + ", " +
       address(r.start) + "); " + i + " < " + times + ";) {");
  ++depth_;
  line("if (" + i + " >= " + std::to_string(r.limit) + "u) return SVOD_LIMIT;");
  if (r.iteration != plan::kNoSlot)
    line("write_number(" + address(r.iteration) + ", " + i + ");");
}

void RunWriter::write_end(const Step& step) {
  const plan::RegionSlots& r = step.region;
  const bool loop = r.count != plan::kNoSlot;
  const std::string i = number(r.depth);
  if (loop) line(i + "++;");
  if (loop && r.again != plan::kNoSlot)
    line("if (!read_truth(" + address(r.again) + ")) break;");
  --depth_;
  line("}");
  if (loop && r.done != plan::kNoSlot)
    line("write_number(" + address(r.done) + ", " + i + ");");
}

void RunWriter::write_step(const Step& step) {
  switch (step.kind) {
  case StepKind::CopyMemory:
    line("__builtin_memmove(" + address(step.to) + ", " + address(step.from) + ", " +
         std::to_string(plan_.slots[step.to].bytes) + "u);");
    break;
  case StepKind::Loop:
    write_loop(step);
    break;
  case StepKind::If:
    line("if (read_truth(" + address(step.region.start) + ")) {");
    ++depth_;
    break;
  case StepKind::Else:
    --depth_;
    line("} else {");
    ++depth_;
    break;
  case StepKind::End:
    write_end(step);
    break;
  default: // places in the arena are constants; launches are written by their chain
    break;
  }
}

void RunWriter::write_run() {
  const char* memory = in_pools() ? "void* const* pools" : "uint8_t* arena";
  out_ << "inline int32_t run_steps([[maybe_unused]] " << memory << ",\n"
       << "                         [[maybe_unused]] const void* const* inputs,\n"
       << "                         [[maybe_unused]] void* const* outputs) {\n";
  for (size_t i = 0; i < plan_.pool_bytes.size(); i++)
    line("[[maybe_unused]] uint8_t* const arena" + std::to_string(i) +
         " = static_cast<uint8_t*>(pools[" + std::to_string(i) + "]);");
  std::string scratch = "arena + " + std::to_string(plan_.arena_bytes);
  if (in_pools())
    scratch = "arena" + std::to_string(plan_.pool_bytes.size() - 1) + " + " +
              std::to_string(plan_.pool_bytes.back());
  line("[[maybe_unused]] uint8_t* const scratch = " +
       (plan_.scratch_bytes == 0 ? "nullptr" : scratch) + ";");
  if (run_.profile) line("svod_profile(~0u);");
  uint32_t loops = 0;
  for (const Step& step : plan_.steps)
    if (step.kind == StepKind::Loop) loops = std::max(loops, step.region.depth + 1);
  for (uint32_t i = 0; i < loops; i++) line("uint32_t " + number(i) + " = 0;");
  if (!table_.parts.empty()) line("const void* bases[] = {" + table_.bases + "};");
  write_launches();
  SVOD_CHECK(depth_ == 1) << "a region is left open";
  for (const std::string& text : states_.kept()) line(text);
  out_ << "  return SVOD_OK;\n}\n\n} // namespace\n\n";
}

void RunWriter::write_launches() {
  uint32_t followers = 0;
  for (size_t i = 0; i < plan_.steps.size(); i++) {
    const Step& step = plan_.steps[i];
    if (const auto part = table_.parts.find(i); part != table_.parts.end()) {
      line("run_calls(kCalls + " + std::to_string(part->second.first) + ", " +
           std::to_string(part->second.count) + "u, bases);");
      i = part->second.last_step;
    } else if (step.kind != StepKind::LaunchProgram) {
      write_step(step);
    } else if (followers != 0) {
      --followers;
    } else {
      step.stream ? write_stream(i) : write_chunks(i);
      followers = step.followers;
    }
  }
}

void RunWriter::write_run_function(const std::string& name, const std::string& memory,
                                   const std::string& argument) {
  out_ << "int " << run_.prefix << name << "(" << memory << ", " << kPointers << ") {\n"
       << "  const int32_t bad = check(" << argument << ", inputs, outputs);\n"
       << "  if (bad != SVOD_OK) return bad;\n";
  if (!changes_.empty()) {
    out_ << "  svod_forget_changes(changes_of(arena));\n"
         << "  return run_changed(arena, inputs, outputs, 0);\n}\n\n";
    return;
  }
  const bool pools = in_pools();
  out_ << "  return run_steps("
       << (pools ? argument : "static_cast<uint8_t*>(" + argument + ")")
       << ", inputs, outputs);\n}\n\n";
}

void RunWriter::write_functions() {
  out_ << changes_.functions();
  const std::string& p = run_.prefix;
  const uint64_t bytes = arena_bytes(run_.contents, entry_, 1, 0).all();
  out_ << "extern \"C\" {\n\n";
  if (in_pools()) {
    write_run_function("_run_pools", "void* const pools[]", "pools");
  } else {
    write_run_function("_run", "void* arena", "arena");
    out_ << "int " << p << "_run_sized(void* arena, [[maybe_unused]] size_t bytes, "
         << kPointers << ") {\n";
    if (bytes != 0)
      out_ << "  if (arena != nullptr && is_aligned(arena, " << plan_.align
           << ") && bytes < " << bytes << "u)\n    return SVOD_ARENA_SMALL;\n";
    out_ << "  return " << p << "_run(arena, inputs, outputs);\n}\n\n"
         << "size_t " << p << "_arena_bytes(void) { return " << bytes << "u; }\n\n";
  }
  out_ << changes_.api(p) << states_.reset_function(p);
  out_ << "const char* " << p << "_status_text(int status) { return "
       << (run_.alone ? "svod_text_of_status" : "svod_status_text") << "(status); }\n\n"
       << "const char* " << p << "_info(void) { return " << p << "_manifest; }\n\n}\n";
}

std::string RunWriter::write() {
  write_declarations();
  write_numbers();
  if (run_.words > 0 && entry_.states.empty()) table_ = call_table(run_, number_places_);
  if (table_.instructions > run_.words * work_of(plan_)) table_ = {};
  out_ << table_.text;
  write_checks();
  write_run();
  write_functions();
  return out_.str();
}

} // namespace

std::string straight_run_text(const StraightRun& run) { return RunWriter(run).write(); }

} // namespace svod::packager
