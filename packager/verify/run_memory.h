// The memory of a run, outside any program: what the stub's replay has, for a plan.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/plan/plan.h"
#include "packager/verify/aligned_memory.h"

#include <map>

namespace svod::packager {

class RunMemory {
public:
  // Weights are not copied, and may be null where there are none. All that steps write
  // holds bytes 0xff at first: a float made of them is no number, so that what nobody
  // wrote is seen when it is read.
  RunMemory(const plan::Plan& plan, const std::vector<Tensor>& inputs,
            const std::byte* weights);

  // Of a slot in the iterations of the loops that are open. A part that a chain passes on
  // lies in a buffer that holds all parts.
  std::byte* address(plan::SlotId id);
  // Of a part as a chain has it: in the scratch memory, which holds one.
  std::byte* address_in_chain(plan::SlotId id, uint32_t chunk);
  std::byte* scratch() { return begin(scratch_); }
  const plan::Slot& slot(plan::SlotId id) const { return plan_.slots[id]; }
  // Of a slot; of all parts, where it is one.
  uint64_t bytes(plan::SlotId id) const;

  // Loops; the iteration that the last one ended with is kept, as steps after it read it.
  void open_loop() { iterations_.at(loops_++) = 0; }
  void close_loop() { --loops_; }
  uint32_t& iteration() { return iterations_.at(loops_ - 1); }

private:
  static std::byte* begin(AlignedMemory& memory) { return memory.data()->bytes; }
  const plan::Plan& plan_;
  const std::byte* weights_;
  AlignedMemory arena_, scratch_;
  std::vector<AlignedMemory> inputs_, outputs_;
  const std::map<plan::SlotId, uint32_t> chunks_; // of parts
  std::map<plan::SlotId, AlignedMemory> parts_;
  std::vector<uint32_t> iterations_;
  size_t loops_ = 0;
};

} // namespace svod::packager
