#include "importer/images/decoders_text.h"

#include "compiler/ir/custom_op.h"

#include <algorithm>
#include <span>
#include <string_view>

namespace svod::importer {

// One after the other in an order in which each needs only those before.
extern const char* const kImageDecoders[];
extern const unsigned kImageDecodersCount;
extern const char* const kImagePreparation[];
extern const unsigned kImagePreparationCount;

namespace {

// One text without #include of each other.
void add_texts(std::span<const char* const> texts, std::string& out) {
  for (std::string_view text : texts) {
    while (!text.empty()) {
      const std::string_view line = text.substr(0, text.find('\n'));
      text.remove_prefix(std::min(line.size() + 1, text.size()));
      if (line.starts_with("#include") || line.starts_with("#pragma")) continue;
      out.append(line).append("\n");
    }
  }
}

} // namespace

std::string decoders_text() {
  std::string out(kScalarText);
  out += "#include <stddef.h>\n#include <stdint.h>\nnamespace {\n";
  add_texts({kImageDecoders, kImageDecodersCount}, out);
  return out;
}

std::string preparation_text() {
  std::string out = decoders_text();
  add_texts({kImagePreparation, kImagePreparationCount}, out);
  return out;
}

} // namespace svod::importer
