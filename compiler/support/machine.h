// What one processor core is good at: a row of machine.def. Every choice of how a kernel
// runs counts with these numbers, so a choice is right on another core when its row is.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace svod {

// One level of the memory that a core reads through.
struct Cache {
  int64_t bytes = 0;          // that one core may count on
  int64_t line = 0;           // bytes that are fetched together
  int64_t ways = 0;           // lines of one set; 0: plain memory, which has no sets
  double bytes_per_clock = 0; // read by one core

  // Addresses so far apart compete for one set; 0: none do.
  int64_t set_bytes() const { return ways == 0 ? 0 : bytes / ways; }
};

// The columns of machine.def, with their units.
struct Machine {
  std::string name; // of the row

  double clock_ghz = 0;
  double flops_per_clock = 0; // peak of one core, float32; a multiply-add counts two
  double gflops = 0;          // what well tiled products of one core reach
  double work_per_ns = 0;     // operations plus bytes of a typical short kernel

  // Instructions of the width of a register, started per clock.
  double fmas_per_clock = 0;       // multiply-adds
  double loads_per_clock = 0;      // of a whole register from the first cache
  double broadcasts_per_clock = 0; // of one element to all lanes, from the first cache
  int sums_in_flight = 0;          // independent registers of sums that hide the latency
  int walks_in_flight = 0;         // walks down trees that hide each other's loads

  double operations_per_clock = 0;   // others on vectors: sums, comparisons, shuffles
  double quotients_per_clock = 0;    // elements that are divided
  double instructions_per_clock = 0; // all
  double stored_per_clock = 0;       // bytes
  double stores_per_clock = 0;
  double narrow_at_once =
      0;                   // registers of less than the full width instead of a full one
  double latency = 0;      // clocks of a multiply-add
  double window = 0;       // instructions that a core looks ahead; 0: in order
  double ports_seen = 0;   // share of the time of all but the busiest part of the core
  double caches_seen = 0;  // likewise of transfers beside instructions and each other
  double streams_seen = 0; // share of a transfer that each stream of one set adds
  double unfetched_seen = 0; // of that of weights from the last cache that nobody fetches
  double jumps_seen = 0; // of a transfer from the last cache for each line, over a run's
  double spill_clocks = 0; // of a step that has a register too few
  double nest_clocks = 0;  // of a loop below a tile, to begin and end

  Cache first, second, last;      // from near to far; a missing one repeats its neighbour
  int streams = 0;                // of weights, that may be read side by side
  int free_streams = 0;           // of those, that cost nothing
  int64_t streamed_rows = 0;      // of products that follow weights without prefetches
  int stored_lines = 0;           // on their way to memory while products go on
  double stored_line_wait = 0;    // multiply-adds that each line beyond them waits
  double memory_bytes_per_ns = 0; // one core, one stream
  double memory_seen = 0; // share of the time for memory beside products that shows
  int64_t large_page = 0; // bytes of the page that large mappings align to; 0: none

  double launch_ns = 0;    // of one kernel from the frozen plan
  double fork_join_ns = 0; // of a parallel region beside its chunks; 0: one thread only

  // What a host gives and takes, where another processor than the kernels' runs the plan.
  bool shared_memory = true;    // both read the same memory: nothing is copied
  double host_bytes_per_ns = 0; // of copies between two memories
  double sync_ns = 0;           // until the one has waited for the other
  double added_sync_ns = 0;     // beside that, of one that a fusion adds
  double least_fusion_ns = 0;   // what a fusion has to gain

  // Of a GPU, whose cores are multiprocessors; a processor has none of these.
  int multiprocessors = 0;
  int warp_threads = 0;     // that one instruction is executed for
  int block_threads = 0;    // of a block of a kernel, unless its tile says otherwise
  int resident_threads = 0; // of one multiprocessor at a time
  int64_t shared_bytes = 0; // of memory that a block's threads share
  int busy_threads = 0;     // of a multiprocessor that hide what each waits for
  double memory_clocks = 0; // until an element comes from memory
  // Multiply-adds of 16 bits that tensor cores start per clock, summed up as float32;
  // 0: they have not the matrices that kernels use.
  double matrix_products_per_clock = 0;
  bool multiplies_bf16 = true; // by them, and f32 by its first bits
  // The same by groups of four warps, straight from shared memory; 0: it has no such.
  double group_products_per_clock = 0;
  bool copies_ahead = false; // to shared memory, beside what threads do

  // Clocks of instructions between tiles of registers, whose rows are 64 bytes: of a
  // product of bytes for each row of positions and at least, and of what is read or
  // written for each row; 0: there are none.
  double tile_product_clocks = 0, tile_least_clocks = 0, tile_row_clocks = 0;

  // Share of a model's work that may be added where it then needs less memory; 0: none.
  double work_for_ram = 0;

  // Multiply-adds that take as long as an instruction of which so many start per clock.
  double in_fmas(double per_clock) const;
  // Weights below this stay in the second cache from run to run.
  int64_t resident_weights() const { return second.bytes / 8; }
  // Values of a layer beyond this are no longer in a cache when the next one reads them.
  int64_t far_bytes() const { return last.bytes / 4; }
};

// The row of this name, which exists.
Machine find_machine(const std::string& name);

// The row of a CPU as LLVM names it, where there is one: "znver4", "cortex-a76".
std::optional<Machine> machine_of_cpu(std::string_view cpu);

} // namespace svod
