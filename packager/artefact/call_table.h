// Launches of a run as words that one loop reads, also of layers that take turns: shorter
// than calls written out where there are many.
#pragma once

#include "packager/artefact/straight_run.h"

#include <map>
#include <string>
#include <vector>

namespace svod::packager {

// What an argument is relative to. Numbers count bytes, tables their elements, and all
// memory eight bytes. Where no layers take turns, kPorts stand in place of kChunk.
enum class CallBase : uint16_t {
  Number, // itself
  Words,  // numbers of merged kernels, of 16 and 32 bits
  Longs,
  Arena,
  Weights,
  Chunk, // of the turn; nothing is added
  Rows,  // an address in `rows`
  Moved, // a place in the arena less what the turn says: both at the address in `rows`
  Ports, // of the model, one after the other
};

// Bits of a launch's first word. Behind it stand, where it has a turn, bits of its rate,
// with what it is ahead by, and its last chunk, -1 for any; then the bases of four
// arguments, lowest first, before what these four add to them.
constexpr uint32_t kCallHasTurn = 16, kCallFunction = 5, kTurnEarly = 4;

struct CallTable {
  // Some lists of launches where layers take turns: a list has its length, the first turn
  // and their end before it. Otherwise some launches.
  struct Part {
    size_t first = 0; // of the words
    size_t count = 0;
    size_t last_step = 0;
  };
  std::map<size_t, Part> parts; // by first step; other launches have to be written out
  std::vector<uint16_t> words;
  std::vector<std::string> functions; // whose numbers the words have
  std::vector<int32_t> rows;          // of windows: NewRows, and where they lie
  // C++ of all that, with run_calls(first, count, bases), and of the last of these.
  std::string text, bases;
  double instructions = 0; // that one run spends on reading it, about
};

// Empty where no launch can be words. `number_places`: of merged kernels' numbers
// in kWords or kLongs, by program.
CallTable call_table(const StraightRun& run,
                     const std::map<uint32_t, size_t>& number_places);

} // namespace svod::packager
