#include "packager/artefact/straight_changes.h"

#include "packager/artefact/byte_list.h"

#include <sstream>

namespace svod::packager {

std::string StraightChanges::functions() const {
  if (empty()) return "";
  std::ostringstream out;
  out << "namespace {\n\n"
      << "inline uint8_t* changes_of(void* arena) {\n"
      << "  return static_cast<uint8_t*>(arena) + " << changes_.offset << "u;\n}\n\n"
      << "int run_changed(void* arena, " << pointers_ << ", uint64_t changed) {\n"
      << "  static constexpr uint64_t kMasks[] = {" << mask_list(changes_.masks) << "};\n"
      << "  const uint64_t key = svod_changes_key(" << changes_.key << "ull, arena);\n"
      << "  svod_begin_changes(changes_of(arena), key, kMasks, " << changes_.masks.size()
      << "u, changed);\n"
      << "  const int32_t status = run_steps(static_cast<uint8_t*>(arena), inputs, "
         "outputs);\n"
      << "  if (status == SVOD_OK) svod_end_changes(changes_of(arena), key);\n"
      << "  return status;\n}\n\n} // namespace\n\n";
  return out.str();
}

std::string StraightChanges::api(const std::string& prefix) const {
  if (empty()) return "";
  return "int " + prefix + "_run_changed(void* arena, " + pointers_ +
         ", uint64_t changed) {\n"
         "  const int32_t bad = check(arena, inputs, outputs);\n"
         "  if (bad != SVOD_OK) return bad;\n"
         "  return run_changed(arena, inputs, outputs, changed);\n}\n\n";
}

} // namespace svod::packager
