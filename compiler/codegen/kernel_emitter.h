// One kernel of one CPU level as C++ text: the outer loops around its stages, and the
// function that runs it. The layers below it: the stages, what they write, the values of
// expressions, and the place in the loops.
#pragma once

#include "compiler/codegen/stage_emitter.h"

namespace svod::codegen {

// text() is what follows the prelude: scalar functions used, the body, and svod_kernel;
// definitions() all of it but svod_kernel and the functions that are called, which
// add_called() then gives by their names. One of them is asked for, once.
class KernelEmitter : private StageEmitter {
public:
  // `kernel` with vectors as long as `how` says, which outlive the emitter.
  using StageEmitter::StageEmitter;
  std::string definitions();
  void add_called(std::map<std::string, std::string>& to) const {
    to.insert(called_.begin(), called_.end());
  }
  std::string text();

private:
  void emit_outer(size_t depth);
  bool has_loop_below(size_t depth) const;
  void unroll_hint_of_outer(size_t depth);
  void emit_range(size_t depth, const std::string& low, const std::string& high,
                  const std::vector<int64_t>& lengths);
  void emit_tiles();
};

// The same as KernelEmitter::text() of a kernel that is a sequence, by the number of the
// level in its parts' schedules.
std::string sequence_text(const ScheduledKernel& kernel, size_t level);

// Whether the kernel needs what is there for floats that become bytes.
bool makes_bytes(const ScheduledKernel& kernel);

// Of a parameter of a kernel's body.
std::string pointer_type(const Argument& argument);

} // namespace svod::codegen
