#include "packager/artefact/straight_states.h"

#include "compiler/support/check.h"

namespace svod::packager {

std::string StraightStates::place(const SvodState& state, bool second,
                                  uint64_t by) const {
  const uint64_t offset = begin_ + state.offset + (second ? state.bytes : 0) + by;
  return "at(arena, " + std::to_string(offset) + ")";
}

std::optional<std::string> StraightStates::place_of(const plan::Slot& slot) const {
  const bool input = slot.slot_class == plan::SlotClass::Input;
  if (!input && slot.slot_class != plan::SlotClass::Output) return std::nullopt;
  for (const SvodState& state : entry_.states)
    if (slot.io == (input ? state.input : state.output))
      return place(state, !input && svod_state_places(state.kind) == 2);
  return std::nullopt;
}

std::vector<std::string> StraightStates::kept() const {
  std::vector<std::string> out;
  for (const SvodState& state : entry_.states) {
    if (state.kind == SVOD_STATE_PLACE) continue;
    const bool moves = state.kind == SVOD_STATE_MOVES;
    SVOD_CHECK(!moves || state.period == 1) << "firmware counts no runs";
    out.push_back("__builtin_memmove(" + place(state, false) + ", " +
                  place(state, !moves, state.step) + ", " +
                  std::to_string(state.bytes - state.step) + "u);");
  }
  return out;
}

std::string StraightStates::reset_function(const std::string& prefix) const {
  if (entry_.states.empty()) return "";
  return "void " + prefix + "_reset(void* memory) {\n" +
         "  uint8_t* const arena = static_cast<uint8_t*>(memory);\n" +
         "  if (arena != nullptr) __builtin_memset(at(arena, " + std::to_string(begin_) +
         "), 0, " + std::to_string(entry_.state_bytes) + "u);\n}\n\n";
}

} // namespace svod::packager
