// A kernel as data: stages of loop nests under shared outer loops.
//
//   for outer axes:
//     stage 0: for its inner axes: accumulate value        -> local 0
//     stage 1: for its inner axes: accumulate value(local 0) -> local 1
//     ...
//     stage n: for its inner axes: store value(locals)
//
// Contractions, poolings, softmax, normalisations, elementwise chains and copies are all
// this. Every extent is a constant. Values are scalar expressions over loads with index
// arithmetic. How the loops run (their order, the one that is a vector, tiles, unrolling)
// is the kernel's schedule, schedule.h.
#pragma once

#include "compiler/ir/graph.h"
#include "compiler/kernel/index.h"

#include <optional>
#include <span>
#include <string>
#include <variant>

namespace svod {

// low <= index < high
struct Bound {
  Index index;
  int64_t low = 0, high = 0;
  auto operator<=>(const Bound&) const = default;
};

struct Expr {
  enum class Kind : uint8_t {
    Load, // argument[index]; where a bound fails: the element `bits`, memory untouched
    Constant, // bits
    Position, // index as a number
    Map,      // op over inputs
    Cast,     // input converted
    Bitcast,
    Guard,   // input where all bounds hold, else `bits`
    Local,   // result of stage `stage`
    Checked, // integer input, recorded as an error unless in [0, limit)
    // Value of the node reached in `limit` steps from the one whose number is the input,
    // by nodes in argument `table` and keys in argument[index + column * stride].
    Descend,
  } kind;
  DType dtype = DType::F32;
  Op op = Op::Add;
  uint32_t argument = 0; // Load, Descend
  uint32_t table = 0;    // Descend
  int64_t stride = 0;    // Descend
  uint32_t stage = 0;    // Local
  int64_t limit = 0;     // Checked, Descend
  uint64_t bits = 0;
  bool near = false; // Cast of a float: known to be less than 2^30 in magnitude
  Index index{};
  std::vector<Bound> bounds{};
  std::vector<ExprId> inputs{};

  bool operator==(const Expr&) const = default;
};

// Positions of one axis that are computed together.
struct TileAxis {
  AxisId axis;
  int count;
  bool operator==(const TileAxis&) const = default;
};

enum class StageKind : uint8_t {
  Reduce,  // accumulates value over the inner axes with op; the result is a local
  Store,   // writes value
  Scan,    // one inner axis, ascending: accumulates and writes every step
  Scatter, // in axis order: combines value into the element at a dynamic index
  Sort,    // one inner axis: writes the stable order of value along it (ArgSort), the
           // first `count` positions
};

struct Stage {
  StageKind kind = StageKind::Store;
  std::vector<AxisId> inner;
  ExprId value = 0;
  // Reduce, Scan: the reduction (ReduceSum ... ArgMax, ScanSum ...) and the accumulator's
  // type.
  Op op = Op::ReduceSum;
  DType dtype = DType::F32;
  bool flag = false; // ArgMin, ArgMax: the last of equals; Sort: descending
  Index position;    // ArgMin, ArgMax: what is the result
  std::vector<Bound>
      domain; // Reduce: positions outside do not count; Store: see pad_lanes
  // ReduceSum of a product: outside one of these a factor is zero, as in the border of a
  // padded tensor. Whole tiles of such positions may be skipped.
  std::vector<Bound> useful;
  // Of products of bytes with weights: neighbours along these axes, in whole groups, and
  // what they add up to is known to fit 16 bits.
  std::vector<TileAxis> short_sums;
  // Reduce: computed at every step of the loops of the next stage and of each other one
  // that reads it.
  bool nested = false;
  bool keeps = false; // Reduce: every value is written, too, for the store to read
  // ReduceSum: what follows takes sums and differences of such results, of which less is
  // left than of their roundings.
  bool amplified = false;
  // Store, Scan, Scatter, Sort: where to. Outside `domain` nothing is written, or zero
  // when pad_lanes says that the element exists physically.
  uint32_t argument = 0;
  Index index;
  bool pad_lanes = false;
  int64_t combiner = 0; // Scatter, as in ops.def
  int64_t count = 0;    // Sort
};

// Where a run decides how many positions of a dimension it needs (--dim): the loop over
// `axis`, an outer one or one of stages, ends behind those below argument[element], an
// i64. `step` of them are one position of the axis. What lies behind is not computed, but
// for the rest of a tile, and holds anything.
struct RunEnd {
  AxisId axis;
  uint32_t argument = 0;
  int64_t element = 0, step = 1;
  bool operator==(const RunEnd&) const = default;
};

// The scratch memory of a sort, in bytes from its start. Words are keys with positions;
// two lists of them take turns. Where few of many are wanted, the keys have a list of
// their own and the words are those of the best so far.
struct SortRoom {
  SortRoom(int64_t elements, int64_t wanted, DType dtype);
  bool selects;
  int64_t words; // in each list
  int64_t first, second, end;
};

// What a kernel is called with, in order.
struct Argument {
  enum class Kind : uint8_t { Buffer, Packed } kind = Kind::Buffer;
  uint32_t id = 0; // in FusedGraph::buffers or ::packed
  DType dtype = DType::F32;
  bool written = false;
  bool read = false;
  // Its bytes may be another argument's. The plan says so: it is no part of the kernel,
  // nor of its text form.
  bool shares = false;
};

// A call of a function in the user's own C++: the whole of its kernel, which has no
// stages.
struct CallStep {
  uint32_t function = 0; // blob of the graph, its text
  Digest digest;         // of the text
  // The tensors that the function takes, in its order: the number of an argument, or, for
  // a result that nobody reads, -1 - its offset in the scratch memory.
  std::vector<int64_t> tensors;
};

// A step of a sequence: one of its kernels, a copy, or a border of a loop of known
// length. Where its loop has ended, an iteration number is the count.
struct SequenceStep {
  enum class Kind : uint8_t { Launch, Copy, Loop, End } kind = Kind::Launch;
  uint32_t part = 0;  // Launch: of Sequence::parts
  int64_t count = 0;  // Copy: bytes; Loop: iterations
  uint32_t depth = 0; // Loop, End: loops around it
  // `stride` bytes further with each iteration of the loop at `depth`, or there in every
  // other one.
  struct Move {
    uint32_t depth = 0;
    int64_t stride = 0;
    bool alternates = false;
  };
  struct Place {
    uint32_t argument = 0; // of the sequence
    int64_t offset = 0;    // bytes
    std::vector<Move> moves;
  };
  std::vector<Place> places; // Launch: of the part's arguments; Copy: from, to
};

struct ScheduledKernel;

// Kernels too short to be launched by themselves, as one program.
struct Sequence {
  std::vector<ScheduledKernel> parts;
  std::vector<SequenceStep> steps;
};

struct Kernel {
  IndexPool indices;
  std::vector<Expr> exprs;
  std::vector<Argument> arguments;
  std::vector<AxisId> outer; // shared by all stages
  std::vector<Stage> stages;
  std::vector<RunEnd> ends;
  // What a kernel without stages is.
  std::variant<std::monostate, CallStep, Sequence> other;
  int64_t scratch_bytes = 0; // per thread
  std::vector<NodeId> nodes; // what it computes, for provenance
  int64_t flops = 0, bytes = 0;

  ExprId add(Expr expr);
  // Where the loop over an axis ends; none: where the axis does.
  const RunEnd* run_end(AxisId axis) const;
  // Whether an argument is asked where loops end.
  bool ends_at(uint32_t argument) const;
  const CallStep* call() const { return std::get_if<CallStep>(&other); }
  CallStep* call() { return std::get_if<CallStep>(&other); }
  const Sequence* sequence() const { return std::get_if<Sequence>(&other); }
  Sequence* sequence() { return std::get_if<Sequence>(&other); }
  // Of a sequence; none otherwise.
  std::span<const ScheduledKernel> parts() const;
  std::span<ScheduledKernel> parts();
};

} // namespace svod
