// Weights of --weights=expand.
#include "runtime_stub/expansion.h"
#include "runtime_stub/program/make_weights.h"

namespace packed {

bool open_stored(WeightMaking& all) {
  if (svod_check_expansion(all.stored, all.bytes, all.weight_bytes) != SVOD_OK)
    return false;
  const auto* header = reinterpret_cast<const SvodExpansionHeader*>(all.stored);
  all.parts = header->jobs;
  all.workspace_bytes = header->room_bytes;
  return true;
}

bool make_part(const WeightMaking& all, uint32_t part, uint8_t* workspace) {
  if ((svod_expansion_entries(all.stored, part) & all.entries) == 0) return true;
  return svod_expand(all.stored, all.bytes, part, all.weights, workspace) == SVOD_OK;
}

} // namespace packed
