// What decides a register tile: the axes it may be made of, what a step of the reduction
// loads along them, and what the level offers.
#pragma once

#include "compiler/kernel/stage_work.h"
#include "compiler/support/target.h"

#include <climits>
#include <optional>

namespace svod::optimize {

// Positions of a tile's axis read again what a loop of the reduction walks along: the
// loop's extent, and its steps from one position to the next; 0: they do not.
struct Slide {
  int64_t extent = 0, stride = 0;
  int64_t window(int count) const {
    return count > 1 && stride > 0 ? (count - 1) * stride + extent : count;
  }
};

// Whether `count` neighbouring positions of `axis` and the steps of the stage's reduction
// read some elements of the load several times.
bool shares_elements(const ScheduledKernel& k, const Stage& s, const Expr& load,
                     AxisId axis, int64_t count);

struct LoadUse {
  bool vector = false;
  // A vector for many steps of the reduction, as a scale of its block is.
  bool held = false;
  // Vectors of bytes, which rows of a window that overlap share.
  bool interleaved = false;
  // Of bytes that all lanes share, in registers of four groups, or loaded two groups at a
  // time for sums in halves.
  bool grouped = false, shared = false;
  // Lanes pick elements of what is loaded, by a shuffle for each register.
  bool shuffled = false;
  // Elements of it that one load reads, which stay in a register each.
  int elements = 1;
  // Of a weight, whole lines, one per position: so many are read at once.
  int streams = INT_MAX;
  int64_t bytes = 0;           // of a panel: what one vector of accumulators reads of it
  double steps = 1;            // that are written out together and read neighbours
  double all_steps = 1;        // of the reduction
  std::vector<bool> axes = {}; // by candidate
  // By candidate: along the innermost loop, and along another one.
  std::vector<Slide> slides = {}, far = {};
  // Of interleaved ones, by candidate: the positions of a window that slides along it.
  std::vector<int64_t> windows = {};
  // Likewise: neighbouring positions that one of them serves.
  std::vector<int> together = {};
  // Of grouped ones: how far the candidate's positions lie apart.
  std::vector<int64_t> apart = {};
  // By candidate: its positions compete for one set of the first cache.
  std::vector<bool> same_set = {};
  // Where products are of halves: elements from one position to the next, by candidate,
  // and from one of the steps that are taken together to the next, by their axis.
  std::vector<int64_t> strides = {}, step_strides = {};
};

struct Candidate {
  AxisId axis;
  int64_t extent;
  int apart; // positions of it that no tile takes in
};

// What the ends of a reduction along the lanes cost: sums across, `lanes` of them at
// once where there are as many.
struct Across {
  int lanes = 1;
  double steps = 0; // of the reduction; 0: not along the lanes
  double cost(int points) const {
    if (steps == 0) return 0;
    int rest = points % lanes;
    return (3.0 * (points - rest) + 8.0 * rest) / steps;
  }
};

// Vectors narrowed to bytes are clamped from both sides, narrowed and stored one by one,
// or four neighbours together in six instructions.
inline constexpr double kNarrowOne = 5, kNarrowFour = 6;

// Positions of one axis that a tile is tried with.
constexpr int kLongestRow = 16;

// Sums of integers in the registers of addresses, on a core without vectors: instructions
// are the cost, as none goes beside another one.
struct ScalarCosts {
  double product =
      1;           // instructions that multiply and add what one register of a step holds
  double load = 1; // instructions of an operand's register: read, and widened
  double kept = 1; // registers that it takes then
  double sums = 1; // registers of a sum
};

// Sums whose products are bytes of halves: instructions are the cost, as above. The
// products of several steps are added before they are added to the sum.
struct HalfCosts {
  std::vector<int> together = {}; // steps, by axis
  int kept = 2;                   // registers that products wait in
  int shared = 2; // of groups for all lanes, where two are loaded at a time
};

struct TileFacts {
  const Level& level;
  const ScheduledKernel& kernel;
  int registers = 0; // that sums and operands may take
  std::optional<ScalarCosts> scalars = {};
  std::optional<HalfCosts> halves = {};
  std::vector<Candidate> candidates = {};
  std::vector<LoadUse> loads = {};
  int per_vector = 1; // registers of a sum
  // Of what a vector load reads, where it differs from that.
  std::optional<int> per_load = {};
  bool few = false;                    // registers
  std::optional<ExprId> elements = {}; // the load that is read as registers of elements
  double steps = 1;                    // of the reduction
  Across across = {};
  std::optional<size_t> bytes = {}; // candidate along which bytes are neighbours
  bool matrices = false;            // of two positions, two lanes and two steps each
  int most_points = INT_MAX;
};

// Of the kernel's first stage, a reduction.
TileFacts tile_facts(const ScheduledKernel& k, const Level& level);

// Per position and step of the reduction, in multiply-adds of a register, of a kernel cut
// into tiles of `counts` positions per candidate. 1e30 where they do not fit the
// registers.
double tile_cost(const TileFacts& facts, const std::vector<int>& counts);

} // namespace svod::optimize
