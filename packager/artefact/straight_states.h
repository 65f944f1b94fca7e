// Tensors that stay from run to run, in a run that is emitted: places in the arena that
// are constants, behind what the run needs.
#pragma once

#include "compiler/plan/plan.h"
#include "packager/artefact/image.h"

#include <optional>
#include <string>
#include <vector>

namespace svod::packager {

// Nobody counts runs there: what would take turns, or move on, is copied behind each.
class StraightStates {
public:
  StraightStates(const plan::Plan& plan, const ImageEntry& entry)
      : entry_(entry), begin_(plan.arena_bytes + plan.scratch_bytes) {}

  // C++ of where an input or output lies that is a state; none of others.
  std::optional<std::string> place_of(const plan::Slot& slot) const;
  // Statements behind a run.
  std::vector<std::string> kept() const;
  // NAME_reset, or nothing without states.
  std::string reset_function(const std::string& prefix) const;

private:
  std::string place(const SvodState& state, bool second, uint64_t by = 0) const;

  const ImageEntry& entry_;
  uint64_t begin_; // in the arena
};

} // namespace svod::packager
