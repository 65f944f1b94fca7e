// The compiled graph: steps in dependency order over slots, and one arena with an offset
// for every temporary. Beyond this point every buffer has its place; nothing allocates.
#pragma once

#include "compiler/kernel/fused_graph.h"

#include <functional>

namespace svod::plan {

using SlotId = uint32_t;

enum class SlotClass : uint8_t { Input, Output, Weight, State, Temporary, Slice, Part };
inline constexpr SlotId kNoSlot = ~0u;

struct Slot {
  SlotClass slot_class = SlotClass::Temporary;
  uint32_t io = 0; // input or output number
  // In the arena (Temporary), the weight section (Weight), the parent (Slice), the
  // scratch memory of the thread (Part: what a kernel of a chain takes for the part that
  // it runs; its addresses go on from part to part, the memory stays).
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint32_t source = 0; // Weight: PackedId; else BufferId
  // Slice: a part of the slot `parent`, `stride` bytes further with each iteration of the
  // loop that has `depth` loops around it. Alternating: in every other iteration.
  SlotId parent = kNoSlot;
  int64_t stride = 0;
  uint32_t depth = 0;
  bool alternates = false;
  // Of a GPU's plan: where it lies in the memory of the processor, whose steps read or
  // write it there (Temporary).
  std::optional<uint64_t> here = std::nullopt;
};

// CopyDown and CopyUp bring a slot from a GPU's memory to the processor's and back: they
// stand between steps of either side. Loop and If open a range of steps that End closes;
// Else parts the range of an If.
enum class StepKind : uint8_t {
  Allocate,
  Deallocate,
  CopyMemory,
  LaunchProgram,
  Loop,
  If,
  Else,
  End,
  CopyDown,
  CopyUp
};

// What a Loop or an If reads and writes; kNoSlot where there is none. The Else and the
// End that belong to it have the same.
struct RegionSlots {
  SlotId count = kNoSlot; // Loop: i64, iterations wanted
  SlotId start = kNoSlot; // bool, the condition; of a loop: before its first iteration
  SlotId again = kNoSlot; // Loop: bool, the condition after an iteration
  SlotId iteration = kNoSlot; // Loop: i64, written before each
  SlotId done = kNoSlot;      // Loop: i64, written at the end
  uint32_t limit = 0;         // Loop: one iteration more stops the run
  uint32_t depth = 0;         // Loop: loops around it
  int64_t known = 0;          // Loop: iterations that every run does; 0: not known
};

struct Step {
  StepKind kind = StepKind::LaunchProgram;
  SlotId slot = 0;               // Allocate, Deallocate, CopyDown, CopyUp
  SlotId from = 0, to = 0;       // CopyMemory
  uint32_t program = 0;          // LaunchProgram
  uint32_t kernel = 0;           // LaunchProgram: into launched_kernels()
  std::vector<SlotId> arguments; // LaunchProgram, in the kernel's order
  uint32_t chunks = 1;
  uint32_t followers = 0; // LaunchProgram: the next steps of its chain or stream
  bool is_here = false;   // LaunchProgram of a GPU's plan: the processor runs it
  // LaunchProgram: the first step of this one of Plan::streams.
  std::optional<uint32_t> stream = std::nullopt;
  int64_t flops = 0, bytes = 0;
  int64_t repeats = 1;          // known iterations of the loops around it; unknown: one
  RegionSlots region;           // Loop, If, Else, End
  std::vector<int32_t> sources; // into graph.source_names()
  // LaunchProgram of a sequence: the steps that became it, in the order of its own; their
  // programs are its parts.
  std::vector<Step> joined;
};

// What a step writes lies where something was that it reads for the last time, in its
// place or as far apart as the step's kernel needs.
struct Overlap {
  SlotId read = kNoSlot, written = kNoSlot;
};

// Launches that take turns: a chunk of each, which is some rows of a picture, as soon as
// the rows that it reads are there. A turn of the last launch is one chunk of it; the
// others have `rate` chunks in a turn, and are `ahead` of it by so many. Rates do not
// rise, and each is a multiple of the next one. In loops, one for each rate around those
// of higher ones:
//
//   for turn in [first_turn, turns):
//     for n in [turn * rate, (turn + 1) * rate):  launches of this rate, chunk n + ahead
//     launches of rate 1, chunk turn + ahead
struct Stream {
  struct Launch {
    int64_t rate = 1, ahead = 0, chunks = 0;
  };
  // What goes from one launch to others: its slot has room for the rows that are still to
  // be read. Before a chunk is written, the rows that stay move to the front.
  struct Window {
    SlotId slot = kNoSlot;
    uint32_t writer = 0; // of the launches
    int64_t row_bytes = 0, rows = 0;
    int64_t by = 0;    // rows of a chunk of the writer
    int64_t first = 0; // row that its first chunk begins with; before it are border rows
    int64_t count = 0; // rows that all of its chunks write; behind them are border rows
    bool border = false; // all that nobody writes has a value
    uint32_t fill = 0;   // four bytes of it
  };
  // A temporary that is there as a whole, of which chunk c of a launch reads or writes
  // the rows [c * step + low, c * step + high).
  struct Whole {
    SlotId slot = kNoSlot;
    uint32_t launch = 0;
    bool written = false;
    int64_t row_bytes = 0, step = 0, low = 0, high = 0;
  };
  std::vector<Launch> launches;
  std::vector<Window> windows;
  std::vector<Whole> wholes;
  int64_t first_turn = 0, turns = 0;
  int64_t copied_bytes = 0; // by all moves of rows
};

// The row that the window begins with when a launch of this rate has its turn n, counted
// by that rate: the launches of higher or the same rate before it have had theirs.
int64_t window_begin(const Stream& stream, const Stream::Window& window, int64_t rate,
                     int64_t n);

// visit(launch, n) for every turn of every launch, in order.
void for_each_turn(const Stream& stream,
                   const std::function<void(size_t launch, int64_t n)>& visit);

// A tensor that stays in memory from run to run: an output of one is an input of the
// next. Neither is the caller's, and neither lies in the arena of temporaries.
struct State {
  enum class Kind : uint8_t {
    Place,  // the run changes what it read where it lies
    Turns,  // of two places one is read and one written, the other way round next time
    Moves,  // what is new lies behind what was read: the next run reads from further on
    Copied, // it is written to a second place, and its end is copied to the first one
  };
  Kind kind = Kind::Place;
  uint32_t input = 0, output = 0;
  // Moves: runs until what is kept is moved to the front of its memory.
  uint32_t period = 1;
  uint64_t bytes = 0; // of one place
  uint64_t step = 0;  // Moves, Copied: the next run's input begins so far in this output
  uint64_t parts = 1; // of the tensor, bytes / parts apart: what lies between is room

  uint64_t places() const { return kind == Kind::Turns || kind == Kind::Copied ? 2 : 1; }
};

// What a run leaves out when some inputs are as they were in the run before: steps that
// hang only on these. A temporary that no step writes, but who starts a run, has a number
// of that one and behind it a byte for each condition of such steps.
struct Changes {
  SlotId slot = kNoSlot;       // none: all steps always run
  std::vector<uint64_t> masks; // by condition: the inputs that its steps hang on
};
inline constexpr uint64_t kChangeKeyBytes = 8;
// Bit of an input in such a mask; the last one stands for all further inputs.
inline constexpr uint32_t kLastChangeBit = 63;

struct Plan {
  Graph graph;                           // what packed weights are evaluated from
  std::vector<PackedWeight> packed;      // in the order of the weight section
  std::vector<ScheduledKernel> programs; // equal kernels are one program
  std::vector<Slot> slots;
  std::vector<Step> steps;
  uint64_t arena_bytes = 0, arena_lower_bound = 0;
  uint64_t scratch_bytes = 0; // per thread, a multiple of `align`
  uint64_t align = 0;         // bytes: of the arena, the weights and every slot in them
  uint64_t weight_bytes = 0;
  uint64_t fast_form_bytes = 0; // that contractions in fast forms add to the weights
  int64_t unfused_kernels = 0;
  std::vector<SlotId> peak; // temporaries alive where the arena is fullest
  std::vector<Overlap> overlaps;
  std::vector<Stream> streams;
  std::vector<State> states;
  Changes changes;
  uint64_t here_bytes = 0; // of a GPU's plan: what it takes of the processor's memory
  // Where the arena lies in several memories: the bytes of each, in the order of their
  // offsets; scratch follows in the last one.
  std::vector<uint64_t> pool_bytes;
};

// Bytes; the image format promises it (SVOD_ALIGN).
inline constexpr uint64_t kSlotAlign = 64;

struct PlanOptions {
  uint64_t align = kSlotAlign; // a power of two, at least that of every element
  // Gives a kernel the levels that it will have. Where it is given, the steps run on one
  // thread, and results may lie on what their kernels read.
  std::function<void(ScheduledKernel&)> schedule;
  bool in_place = true; // results may lie in the very place of what their kernels read
  std::vector<uint64_t> pools; // bytes of several memories, the fastest first
  // Share of all operations and bytes that may be added where that makes the arena
  // smaller: by kernels that take turns row by row.
  double work_for_ram = 0;
  uint64_t most_arena = 0; // bytes; a larger one is worth any such work. 0: none is
  bool joins = true;       // short kernels become one launch
  bool changes = false;    // steps can be left out where their inputs are as they were

  bool takes_turns() const { return schedule && (work_for_ram > 0 || most_arena != 0); }
};

// `machine`: what a launch costs there decides which short kernels become one.
Plan plan(FusedGraph fused, const Machine& machine, const PlanOptions& options = {});
// The arguments of a launch by slot that overlap: what it reads, what it writes.
struct SharedArguments {
  uint32_t read = 0, written = 0;
};
std::vector<SharedArguments> shared_arguments(const Plan& plan, const Step& step);
// The slot that a slice is a part of; any other slot is its own.
SlotId root_slot(const Plan& plan, SlotId id);

// A kernel of a fused graph or of a region's body in it.
struct Launched {
  const FusedGraph* fused;
  const ScheduledKernel* kernel;
};
// Those that a plan of the graph launches, in the order of its steps.
std::vector<Launched> launched_kernels(const FusedGraph& fused);

// Slots and steps; programs by the digests of their kernels.
std::string print(const Plan& plan);
// Which launches take turns; the programs: their kernels and how each runs.
std::string print_programs(const Plan& plan);

} // namespace svod::plan
