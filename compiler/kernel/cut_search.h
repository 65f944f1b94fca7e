// What a search over cuts of a graph did: compiler/select/search_cut.h.
#pragma once

#include "compiler/ir/graph.h"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

struct CutSearch {
  enum class End : uint8_t {
    Off,    // it did not run
    Done,   // all that it looks at was priced
    Budget, // candidates ran out
  };
  // What the gate of launches and traffic (optimize/io_gate.h) says of a change.
  struct Gate {
    double gain_ns = 0;
    bool agrees = false; // it is worth it
  };
  // Values of one region that are treated otherwise than the rules would, and what the
  // kernels that this changes are predicted to take.
  struct Taken {
    std::vector<NodeId> stored, inlined;
    double before = 0, after = 0; // seconds
    std::optional<Gate> gate = {};
  };

  End end = End::Off;
  size_t choices = 0, regions = 0; // that the cut leaves open
  size_t candidates = 0;           // cuts that were priced
  double before = 0, after = 0;    // seconds, of all kernels one by one
  std::vector<Taken> taken;
  // Fusions that were predicted to pay and that the gate did not make.
  size_t refused = 0;
};

// "off", "done", "budget"
std::string_view text_of(CutSearch::End end);
// A line of numbers, and one for each region that is cut otherwise.
std::string print(const CutSearch& search);

} // namespace svod
