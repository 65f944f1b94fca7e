// An order in which fewer bytes are alive at once.
#pragma once

#include <cstdint>
#include <vector>

namespace svod::plan {

// Units of work in an order that is allowed, and what they leave for each other.
struct UnitGraph {
  // A block of memory that is there from the first of its users to the last.
  struct Block {
    uint64_t bytes = 0;
    std::vector<uint32_t> users; // ascending
  };
  std::vector<std::vector<uint32_t>> needs; // by unit: smaller ones that run before it
  std::vector<Block> blocks;
};

// The units from the first to the last.
std::vector<uint32_t> as_written(const UnitGraph& graph);
// The largest sum of bytes that are there at a unit.
uint64_t peak_of(const UnitGraph& graph, const std::vector<uint32_t>& order);
// Never of a higher peak than as written, and as written where none lower is found.
std::vector<uint32_t> low_peak_order(const UnitGraph& graph);

} // namespace svod::plan
