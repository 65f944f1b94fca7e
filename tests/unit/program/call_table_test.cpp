// Words of launches: a reader of them makes the calls that the plan has, turns included.
#include "packager/artefact/call_table.h"

#include "compiler/pipeline.h"
#include "tests/support/model_graph.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::test;
using namespace svod::packager;

namespace {

// What a kernel or make_room is called with: addresses in made-up memories.
struct Made {
  std::string function; // make_room, or the kernel's text
  std::vector<int64_t> arguments;
  bool operator==(const Made&) const = default;
};

int64_t memory(int64_t number) { return number << 32; }
constexpr int64_t kArena = 1, kWeights = 2, kPorts = 3;

codegen::Kernels turning_kernels(uint64_t seed) {
  ModelGraphOptions pictures;
  pictures.pictures = true;
  pictures.max_products = 1000000;
  CompileOptions options;
  options.target = for_size(*find_target("cortex-m4"));
  options.exact = true;
  options.one_thread = true;
  options.work_for_ram = 1e9;
  return compile(model_graph(seed, pictures).graph, options);
}

// What the plan says, each launch by itself.
class Expected {
public:
  Expected(const codegen::Kernels& kernels, size_t inputs)
      : kernels_(kernels), plan_(kernels.plan), inputs_(inputs) {}

  std::vector<Made> of_part(size_t first, size_t last) {
    for (size_t i = first; i <= last; i++) {
      const plan::Step& step = plan_.steps[i];
      if (step.kind != plan::StepKind::LaunchProgram) continue;
      if (!step.stream) {
        launch(step, nullptr, 1, 0, 0);
        continue;
      }
      const plan::Stream& stream = plan_.streams[*step.stream];
      std::vector<const plan::Step*> steps;
      for (; steps.size() < stream.launches.size(); i++)
        if (plan_.steps[i].kind == plan::StepKind::LaunchProgram)
          steps.push_back(&plan_.steps[i]);
      --i;
      plan::for_each_turn(stream,
                          [&](size_t l, int64_t n) { turn(stream, l, n, steps); });
    }
    return std::move(out_);
  }

private:
  void turn(const plan::Stream& stream, size_t launched, int64_t n,
            const std::vector<const plan::Step*>& steps) {
    const plan::Stream::Launch& l = stream.launches[launched];
    const int64_t chunk = n + l.ahead;
    for (const plan::Stream::Window& w : stream.windows) {
      if (w.writer != launched || (w.rows == w.by && !w.border)) continue;
      const int64_t end = w.border ? w.count / w.by : INT32_MAX;
      out_.push_back({"make_room",
                      {address(w.slot), w.by * w.row_bytes, (w.rows - w.by) * w.row_bytes,
                       end, static_cast<int32_t>(w.fill), chunk}});
    }
    if (chunk >= 0 && chunk < l.chunks)
      launch(*steps[launched], &stream, l.rate, n, chunk);
  }

  void launch(const plan::Step& step, const plan::Stream* stream, int64_t rate, int64_t n,
              int64_t chunk) {
    Made made;
    for (const codegen::KernelSource& source : kernels_.sources)
      if (source.program == step.program) made.function = source.text;
    for (const plan::SlotId id : step.arguments) {
      int64_t at = address(id);
      if (stream != nullptr)
        for (const plan::Stream::Window& w : stream->windows)
          if (w.slot == id) at -= window_begin(*stream, w, rate, n) * w.row_bytes;
      made.arguments.push_back(at);
    }
    const ScheduledKernel& kernel = plan_.programs[step.program];
    if (codegen::takes_scratch(kernel))
      made.arguments.push_back(memory(kArena) + int64_t(plan_.arena_bytes));
    if (codegen::takes_chunk(kernel)) made.arguments.push_back(chunk);
    out_.push_back(std::move(made));
  }

  int64_t address(plan::SlotId id) const {
    const plan::Slot& slot = plan_.slots[id];
    using enum plan::SlotClass;
    const int64_t of = slot.slot_class == Temporary ? kArena
                       : slot.slot_class == Weight  ? kWeights
                       : slot.slot_class == Input
                           ? kPorts + int64_t(slot.io)
                           : kPorts + int64_t(slot.io) + int64_t(inputs_);
    return memory(of) + int64_t(slot.offset);
  }

  const codegen::Kernels& kernels_;
  const plan::Plan& plan_;
  size_t inputs_;
  std::vector<Made> out_;
};

// As the loop in firmware does.
class Reader {
public:
  Reader(const codegen::Kernels& kernels, const CallTable& table)
      : kernels_(kernels), table_(table), turns_(!kernels.plan.streams.empty()) {}

  std::vector<Made> read(const CallTable::Part& part) {
    at_ = part.first;
    for (size_t i = 0; i < part.count; i++) {
      if (turns_)
        read_list();
      else
        read_call(0);
    }
    return std::move(out_);
  }

private:
  uint16_t next() { return table_.words.at(at_++); }

  void read_list() {
    const uint16_t calls = next();
    const int32_t first_turn = int16_t(next()), end = int16_t(next());
    const size_t first = at_;
    for (int32_t turn = first_turn; turn < end; turn++) {
      at_ = first;
      for (uint16_t i = 0; i < calls; i++)
        if (!read_call(turn)) break;
    }
  }

  bool read_call(int32_t turn) {
    const uint16_t head = next();
    int32_t n = 0, chunk = 0;
    bool now = true;
    if ((head & kCallHasTurn) != 0) {
      const int32_t when = int16_t(next()), last = int16_t(next());
      const int32_t bits = when & 15;
      if ((turn + 1) % (1 << bits) != 0) return false;
      n = (turn + 1) / (1 << bits) - 1;
      chunk = n + (when >> kTurnEarly);
      now = last == -1 || (chunk >= 0 && chunk <= last);
    }
    Made made;
    const std::string& function = table_.functions.at(head >> kCallFunction);
    made.function = function;
    for (const codegen::KernelSource& source : kernels_.sources)
      if (source.symbol == function) made.function = source.text;
    uint16_t kinds = 0;
    for (int i = 0; i < head % 16; i++) {
      kinds = i % 4 == 0 ? next() : kinds >> 4;
      add(kinds % 16, n, chunk, made.arguments);
    }
    if (now) out_.push_back(std::move(made));
    return true;
  }

  void add(int kind, int32_t n, int32_t chunk, std::vector<int64_t>& out) {
    const int ports = turns_ ? int(CallBase::Ports) : int(CallBase::Chunk);
    if (kind >= ports) return out.push_back(memory(kPorts + kind - ports) + next() * 8);
    switch (static_cast<CallBase>(kind)) {
    case CallBase::Arena:
      return out.push_back(memory(kArena) + next() * 8);
    case CallBase::Weights:
      return out.push_back(memory(kWeights) + next() * 8);
    case CallBase::Chunk:
      return out.push_back(chunk);
    case CallBase::Rows:
      for (size_t i = 0, first = size_t{2} * next(); i < 4; i++)
        out.push_back(table_.rows.at(first + i));
      return;
    case CallBase::Moved: {
      const size_t first = size_t{2} * next();
      return out.push_back(memory(kArena) + table_.rows.at(first) -
                           n * table_.rows.at(first + 1));
    }
    default:
      return out.push_back(next());
    }
  }

  const codegen::Kernels& kernels_;
  const CallTable& table_;
  bool turns_;
  size_t at_ = 0;
  std::vector<Made> out_;
};

} // namespace

TEST_CASE("words of launches make the plan's calls, of layers that take turns too",
          "[call_table][property]") {
  size_t streams = 0, launches = 0, rooms = 0, rates = 0;
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const codegen::Kernels kernels = turning_kernels(seed);
    ImageContents contents;
    contents.entries.emplace_back().inputs.resize(kernels.plan.graph.inputs().size());
    contents.entries[0].outputs.resize(kernels.plan.graph.outputs().size());
    const CallTable table =
        call_table({.prefix = "net", .kernels = kernels, .contents = contents}, {});
    for (const auto& [first, part] : table.parts) {
      const std::vector<Made> made = Reader(kernels, table).read(part);
      Expected expected(kernels, contents.entries[0].inputs.size());
      CHECK(made == expected.of_part(first, part.last_step));
      launches += made.size();
      for (const Made& m : made) rooms += m.function == "make_room" ? 1 : 0;
      for (size_t i = first; i <= part.last_step; i++) {
        if (!kernels.plan.steps[i].stream) continue;
        const plan::Stream& stream = kernels.plan.streams[*kernels.plan.steps[i].stream];
        streams += 1;
        rates += stream.launches.front().rate > 1 ? 1 : 0;
      }
    }
  }
  INFO(streams << " streams, " << rates << " of several rates, " << launches
               << " launches, " << rooms << " times room");
  CHECK(streams > 20);
  CHECK(rates > 3);
  CHECK(rooms > 100);
}
