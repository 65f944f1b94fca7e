// How a pass that repeats itself until nothing changes came to its end. The pipeline
// prints it: a pass that stops at a limit has left something undone, and that is said.
#pragma once

#include <cstdint>
#include <string_view>

namespace svod {

struct PassEnd {
  // Of a search, the end of its budget is what its user asked for.
  enum Reason { Fixpoint, Limit, Budget } reason = Fixpoint;
  int rounds =
      0; // runs over the whole input, the last one included, which changes nothing
  int64_t steps = 0; // changes made in all of them
};

inline std::string_view reason_text(PassEnd::Reason reason) {
  switch (reason) {
  case PassEnd::Fixpoint:
    return "fixpoint";
  case PassEnd::Limit:
    return "limit";
  case PassEnd::Budget:
    return "budget";
  }
  return "";
}

} // namespace svod
