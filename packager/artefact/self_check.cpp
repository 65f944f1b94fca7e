#include "packager/artefact/straight_run.h"
#include "runtime_stub/checksum.h"

#include <sstream>

namespace svod::packager {

std::string self_check_text(const std::string& prefix, const ImageContents& contents) {
  std::ostringstream out;
  const std::string& manifest = contents.manifest;
  const bool weights = contents.weight_bytes != 0;
  out << "#include \"runtime_stub/checksum.h\"\n#include \"runtime_stub/status.h\"\n\n"
      << "extern \"C\" {\n";
  if (weights) out << "extern const uint8_t " << prefix << "_weights[];\n";
  out << "extern const char " << prefix << "_manifest[];\n"
      << "int " << prefix << "_self_check(void) {\n";
  if (weights)
    out << "  if (svod_checksum(" << prefix << "_weights, " << contents.weight_bytes
        << "u) != " << contents.weight_checksum << "u) return SVOD_CORRUPT;\n";
  out << "  if (svod_checksum(" << prefix << "_manifest, " << manifest.size()
      << "u) != " << svod_checksum(manifest.data(), manifest.size())
      << "u) return SVOD_CORRUPT;\n  return SVOD_OK;\n}\n}\n";
  return out.str();
}

} // namespace svod::packager
