// A call written out takes 26 bytes on a Cortex-M4 for a launch of gtcrn, as words 13:
// one for the kernel, one for what four arguments are relative to, and one for each.
// Where launches have few arguments, or the same ones, it is the other way round; whoever
// builds a run compares both. Of a layer that takes turns a call has 80 bytes, with words
// for its turn and what makes room for its rows 45.
//
// A function of few arguments is called with more, which the calling conventions of all
// bare targets allow: who calls clears the stack.
#include "packager/artefact/call_table.h"

#include "packager/artefact/call_loop.h"
#include "packager/artefact/window_rows.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <limits>
#include <optional>
#include <sstream>

namespace svod::packager {

namespace {

using plan::Slot;
using plan::SlotClass;
using plan::SlotId;
using plan::Step;
using plan::StepKind;
using plan::Stream;

constexpr size_t kBases = 16, kMostArguments = 15;
constexpr size_t kMostFunctions = size_t{1} << (16 - kCallFunction);

struct Argument {
  CallBase base = CallBase::Number;
  uint16_t by = 0;
};

struct Call {
  std::string function;
  std::vector<Argument> arguments;
  std::optional<Stream::Launch> turn = std::nullopt;
};

// Of the loop, on a Cortex-M4.
double instructions_of(const Call& call) {
  constexpr double kLaunch = 40, kArgument = 16;
  return kLaunch + kArgument * double(call.arguments.size());
}

std::optional<Argument> counted(CallBase base, uint64_t number, uint64_t unit) {
  if (number % unit != 0 || number / unit > std::numeric_limits<uint16_t>::max())
    return std::nullopt;
  return Argument{base, static_cast<uint16_t>(number / unit)};
}

bool fits_word(int64_t n) {
  return n >= std::numeric_limits<int16_t>::min() &&
         n <= std::numeric_limits<int16_t>::max();
}

class TableWriter {
public:
  TableWriter(const StraightRun& run, const std::map<uint32_t, size_t>& number_places)
      : plan_(run.kernels.plan), run_(run), number_places_(number_places),
        has_turns_(!plan_.streams.empty()) {
    for (const codegen::KernelSource& kernel : run.kernels.sources)
      kernels_.emplace(kernel.program, &kernel);
  }
  CallTable write();

private:
  std::optional<Argument> place(const Slot& slot) const;
  std::optional<Argument> moved(const Stream& stream, const Stream::Window& window,
                                int64_t rate);
  bool add_numbers(const codegen::KernelSource& kernel,
                   std::vector<Argument>& arguments) const;
  const std::string& function_of(uint32_t program) const;
  std::optional<Argument> address(SlotId id, const Stream* stream, int64_t rate);
  std::optional<Call> call_of(const Step& step, const Stream* stream = nullptr,
                              int64_t rate = 1);
  std::optional<std::vector<Call>> calls_of(const Stream& stream, size_t first);
  bool add_room(const Stream& stream, const Stream::Window& window,
                std::vector<Call>& out);
  uint16_t number_of(const std::string& function);
  uint16_t add_rows(const std::vector<int32_t>& rows);
  void add(const Call& call, int64_t most_rate);
  bool add_launch(size_t step);
  bool add_stream(size_t step);
  void go_on(size_t first_step, size_t last_step, bool new_list);
  std::string text() const;
  std::string bases() const;

  const plan::Plan& plan_;
  const StraightRun& run_;
  const std::map<uint32_t, size_t>& number_places_;
  bool has_turns_;
  std::map<uint32_t, const codegen::KernelSource*> kernels_; // by program
  CallTable out_;
  CallTable::Part* part_ = nullptr; // that may go on
  std::optional<size_t> list_;      // of launches without turns, that may go on
  size_t most_ = 1;                 // arguments
};

// A slice moves with the loops around it, and is written out.
std::optional<Argument> TableWriter::place(const Slot& slot) const {
  constexpr uint64_t kUnit = 8;
  const size_t inputs = run_.contents.entries.front().inputs.size();
  const auto ports = static_cast<size_t>(has_turns_ ? CallBase::Ports : CallBase::Chunk);
  size_t base = kBases;
  switch (slot.slot_class) {
  case SlotClass::Temporary:
    base = static_cast<size_t>(CallBase::Arena);
    break;
  case SlotClass::Weight:
    base = static_cast<size_t>(CallBase::Weights);
    break;
  case SlotClass::Input:
    base = ports + slot.io;
    break;
  case SlotClass::Output:
    base = ports + inputs + slot.io;
    break;
  default:
    break;
  }
  if (base >= kBases) return std::nullopt;
  return counted(static_cast<CallBase>(base), slot.offset, kUnit);
}

uint16_t TableWriter::add_rows(const std::vector<int32_t>& rows) {
  constexpr size_t kUnit = 2;
  for (size_t i = 0; i + rows.size() <= out_.rows.size(); i += kUnit)
    if (std::equal(rows.begin(), rows.end(), out_.rows.begin() + ptrdiff_t(i)))
      return static_cast<uint16_t>(i / kUnit);
  out_.rows.insert(out_.rows.end(), rows.begin(), rows.end());
  return static_cast<uint16_t>((out_.rows.size() - rows.size()) / kUnit);
}

// Where the tensor would begin of which the window has some rows.
std::optional<Argument> TableWriter::moved(const Stream& stream,
                                           const Stream::Window& window, int64_t rate) {
  const Slot& slot = plan_.slots[window.slot];
  if (slot.slot_class != SlotClass::Temporary) return std::nullopt;
  const int64_t first = plan::window_begin(stream, window, rate, 0);
  const int64_t by = plan::window_begin(stream, window, rate, 1) - first;
  const int64_t at = static_cast<int64_t>(slot.offset) - first * window.row_bytes;
  return Argument{
      CallBase::Moved,
      add_rows({static_cast<int32_t>(at), static_cast<int32_t>(by * window.row_bytes)})};
}

bool TableWriter::add_numbers(const codegen::KernelSource& kernel,
                              std::vector<Argument>& arguments) const {
  using enum codegen::NumberPassing;
  if (kernel.passing == Words16 || kernel.passing == Words32) {
    const auto base = kernel.passing == Words16 ? CallBase::Words : CallBase::Longs;
    const auto table = counted(base, number_places_.at(kernel.program), 1);
    if (table) arguments.push_back(*table);
    return table.has_value();
  }
  for (int64_t n : kernel.numbers) {
    const auto number = counted(CallBase::Number, static_cast<uint64_t>(n), 1);
    if (!number) return false;
    arguments.push_back(*number);
  }
  return true;
}

// Kernels of one text are one.
const std::string& TableWriter::function_of(uint32_t program) const {
  const codegen::KernelSource& kernel = *kernels_.at(program);
  for (const auto& [other, known] : kernels_)
    if (known->text == kernel.text && known->flags == kernel.flags) return known->symbol;
  return kernel.symbol;
}

std::optional<Argument> TableWriter::address(SlotId id, const Stream* stream,
                                             int64_t rate) {
  if (stream != nullptr) {
    const auto w = std::ranges::find(stream->windows, id, &Stream::Window::slot);
    if (w != stream->windows.end()) return moved(*stream, *w, rate);
  }
  return place(plan_.slots[id]);
}

std::optional<Call> TableWriter::call_of(const Step& step, const Stream* stream,
                                         int64_t rate) {
  constexpr uint64_t kUnit = 8;
  const ScheduledKernel& kernel = plan_.programs[step.program];
  if (codegen::can_fail(kernel)) return std::nullopt;
  Call out{function_of(step.program), {}};
  for (SlotId id : step.arguments) {
    const std::optional<Argument> at = address(id, stream, rate);
    if (!at) return std::nullopt;
    out.arguments.push_back(*at);
  }
  if (codegen::takes_scratch(kernel)) {
    const auto scratch = counted(CallBase::Arena, plan_.arena_bytes, kUnit);
    if (!scratch) return std::nullopt;
    out.arguments.push_back(*scratch);
  }
  if (codegen::takes_chunk(kernel))
    out.arguments.push_back({stream != nullptr ? CallBase::Chunk : CallBase::Number, 0});
  if (!add_numbers(*kernels_.at(step.program), out.arguments)) return std::nullopt;
  return out.arguments.size() <= kMostArguments ? std::optional(out) : std::nullopt;
}

// Rows that stay move before a chunk is written.
bool TableWriter::add_room(const Stream& stream, const Stream::Window& window,
                           std::vector<Call>& out) {
  if (!needs_room(window)) return true;
  const std::optional<Argument> at = place(plan_.slots[window.slot]);
  if (!at) return false;
  const auto [by, kept, end, fill] = new_rows(window);
  const Argument rows{CallBase::Rows,
                      add_rows({static_cast<int32_t>(by), static_cast<int32_t>(kept),
                                static_cast<int32_t>(end), static_cast<int32_t>(fill)})};
  const Stream::Launch& writer = stream.launches[window.writer];
  constexpr int64_t kAlways = 0;
  out.push_back({"make_room",
                 {*at, rows, {CallBase::Chunk, 0}},
                 Stream::Launch{writer.rate, writer.ahead, kAlways}});
  return true;
}

// Of the launches from this step on.
std::optional<std::vector<Call>> TableWriter::calls_of(const Stream& stream,
                                                       size_t first) {
  std::vector<Call> out;
  size_t step = first;
  for (size_t i = 0; i < stream.launches.size(); ++step) {
    if (plan_.steps[step].kind != StepKind::LaunchProgram) continue;
    const Stream::Launch& launch = stream.launches[i];
    for (const Stream::Window& w : stream.windows)
      if (w.writer == i && !add_room(stream, w, out)) return std::nullopt;
    std::optional<Call> call = call_of(plan_.steps[step], &stream, launch.rate);
    if (!call) return std::nullopt;
    call->turn = launch;
    out.push_back(std::move(*call));
    ++i;
  }
  return out;
}

uint16_t TableWriter::number_of(const std::string& function) {
  const auto at = std::ranges::find(out_.functions, function);
  const auto number = static_cast<uint16_t>(at - out_.functions.begin());
  if (at == out_.functions.end()) out_.functions.push_back(function);
  return number;
}

void TableWriter::add(const Call& call, int64_t most_rate) {
  const size_t count = call.arguments.size();
  out_.words.push_back(static_cast<uint16_t>(number_of(call.function) << kCallFunction |
                                             (call.turn ? kCallHasTurn : 0) | count));
  if (call.turn) {
    const int64_t bits = std::countr_zero(uint64_t(most_rate / call.turn->rate));
    out_.words.push_back(
        static_cast<uint16_t>(call.turn->ahead * (1 << kTurnEarly) | bits));
    out_.words.push_back(static_cast<uint16_t>(call.turn->chunks - 1));
  }
  for (size_t n = 0; n < count; n++) {
    if (n % 4 == 0) {
      uint32_t four = 0;
      for (size_t k = n; k < std::min(n + 4, count); k++)
        four |= static_cast<uint32_t>(call.arguments[k].base) << 4 * (k - n);
      out_.words.push_back(static_cast<uint16_t>(four));
    }
    if (!has_turns_ || call.arguments[n].base != CallBase::Chunk)
      out_.words.push_back(call.arguments[n].by);
  }
  most_ = std::max(most_, count);
}

// What stands one after the other is one part.
void TableWriter::go_on(size_t first_step, size_t last_step, bool new_list) {
  if (part_ == nullptr)
    part_ = &out_.parts.emplace(first_step, CallTable::Part{out_.words.size(), 0, 0})
                 .first->second;
  part_->last_step = last_step;
  if (!has_turns_ || new_list) ++part_->count;
}

bool TableWriter::add_launch(size_t at) {
  const Step& step = plan_.steps[at];
  if (step.chunks != 1 || step.followers != 0) return false;
  const std::optional<Call> call = call_of(step);
  if (!call) return false;
  go_on(at, at, !list_);
  if (has_turns_ && !list_) {
    list_ = out_.words.size();
    out_.words.insert(out_.words.end(), {0, 0, 1});
  }
  if (list_) ++out_.words[*list_];
  add(*call, 1);
  out_.instructions += instructions_of(*call) * double(step.repeats);
  return true;
}

// Words have 12 bits for what a launch is ahead by and 16 for its chunks.
bool fits(const Stream& stream) {
  const int64_t most = stream.launches.front().rate;
  constexpr int64_t kMostEarly = 1 << (15 - kTurnEarly);
  bool out = fits_word(stream.first_turn * most) && fits_word(stream.turns * most) &&
             -stream.first_turn * most < kMostEarly;
  for (const Stream::Launch& l : stream.launches)
    out = out && std::has_single_bit(uint64_t(most / l.rate)) &&
          std::abs(l.ahead) < kMostEarly && fits_word(l.chunks);
  return out;
}

bool TableWriter::add_stream(size_t at) {
  const Stream& stream = plan_.streams[*plan_.steps[at].stream];
  if (!fits(stream)) return false;
  const std::optional<std::vector<Call>> calls = calls_of(stream, at);
  if (!calls) return false;
  size_t last = at;
  for (size_t left = stream.launches.size() - 1; left > 0;)
    left -= plan_.steps[++last].kind == StepKind::LaunchProgram ? 1 : 0;
  list_.reset();
  go_on(at, last, true);
  const int64_t most = stream.launches.front().rate;
  const int64_t first = stream.first_turn * most, end = stream.turns * most;
  out_.words.insert(out_.words.end(),
                    {static_cast<uint16_t>(calls->size()), static_cast<uint16_t>(first),
                     static_cast<uint16_t>(end)});
  for (const Call& call : *calls) {
    add(call, most);
    const int64_t turns = (end - first) / (most / call.turn->rate);
    out_.instructions += instructions_of(call) * double(turns);
  }
  return true;
}

// Places in the arena are constants.
CallTable TableWriter::write() {
  for (size_t i = 0; i < plan_.steps.size(); i++) {
    const Step& step = plan_.steps[i];
    if (step.kind == StepKind::Allocate || step.kind == StepKind::Deallocate) continue;
    bool added = false;
    if (step.kind == StepKind::LaunchProgram)
      added = step.stream ? add_stream(i) : add_launch(i);
    if (added) {
      i = part_->last_step;
      continue;
    }
    part_ = nullptr;
    list_.reset();
    if (step.kind != StepKind::LaunchProgram) continue;
    for (uint32_t left = step.followers; left > 0;)
      left -= plan_.steps[++i].kind == StepKind::LaunchProgram ? 1 : 0;
  }
  constexpr size_t kMost = std::numeric_limits<uint16_t>::max();
  if (out_.parts.empty() || out_.functions.size() > kMostFunctions ||
      plan_.steps.size() > kMost || out_.rows.size() > kMost)
    return {};
  out_.text = text();
  out_.bases = bases();
  return std::move(out_);
}

std::string TableWriter::text() const {
  std::ostringstream out;
  std::string types;
  for (size_t i = 0; i < most_; i++) types += i == 0 ? "const void*" : ", const void*";
  out << "using Kernel = void (*)(" << types << ");\nconst Kernel kKernels[] = {";
  for (const std::string& function : out_.functions)
    out << "\n    reinterpret_cast<Kernel>(" << function << "),";
  out << "};\nconstexpr uint16_t kCalls[] = {";
  for (uint16_t word : out_.words) out << word << ",";
  out << "};\n";
  if (has_turns_) {
    out << "alignas(8) constexpr int32_t kTurnRows[] = {";
    for (int32_t n : out_.rows) out << n << ",";
    out << "0};\n";
  }
  out << "\n" << call_loop_text(most_, has_turns_);
  return out.str();
}

std::string TableWriter::bases() const {
  const ImageEntry& entry = run_.contents.entries.front();
  const auto uses = [&](codegen::NumberPassing passing) {
    return std::ranges::any_of(
        kernels_, [&](const auto& kernel) { return kernel.second->passing == passing; });
  };
  using enum codegen::NumberPassing;
  std::string out = std::string("nullptr, ") + (uses(Words16) ? "kWords" : "nullptr") +
                    ", " + (uses(Words32) ? "kLongs" : "nullptr") + ", arena, " +
                    (plan_.weight_bytes != 0 ? run_.prefix + "_weights" : "nullptr") +
                    (has_turns_ ? ", nullptr, kTurnRows, kTurnRows" : "");
  size_t ports = static_cast<size_t>(has_turns_ ? CallBase::Ports : CallBase::Chunk);
  for (size_t i = 0; i < entry.inputs.size() && ports < kBases; i++, ports++)
    out += ", inputs[" + std::to_string(i) + "]";
  for (size_t i = 0; i < entry.outputs.size() && ports < kBases; i++, ports++)
    out += ", outputs[" + std::to_string(i) + "]";
  return out;
}

} // namespace

CallTable call_table(const StraightRun& run,
                     const std::map<uint32_t, size_t>& number_places) {
  if (!run.kernels.plan.pool_bytes.empty()) return {};
  return TableWriter(run, number_places).write();
}

} // namespace svod::packager
