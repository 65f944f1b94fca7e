#include "packager/artefact/byte_list.h"

#include <cstdint>

namespace svod::packager {

std::string byte_list(const std::string& bytes) {
  std::string out = "{";
  for (char c : bytes)
    out += (out.size() > 1 ? ", " : "") + std::to_string(static_cast<uint8_t>(c));
  return out + "}";
}

std::string mask_list(const std::vector<uint64_t>& masks) {
  std::string out;
  for (const uint64_t mask : masks)
    out += (out.empty() ? "" : ",") + std::to_string(mask) + "ull";
  return out;
}

} // namespace svod::packager
