// What is over a budget is told with the parts that it is made of, so that a reader sees
// where to save.
#include "packager/budget.h"

#include <sstream>

namespace svod::packager {

uint64_t flash_bytes(const ImageContents& contents, const SizeFacts& sizes) {
  return contents.weight_bytes + sizes.image + sizes.code + sizes.stub;
}

Exit check_budget(const Options& options, const ImageContents& contents,
                  const ArenaBytes& ram, const SizeFacts& sizes, const Console& console) {
  Exit status = Exit::Done;
  const auto check = [&](const char* option, std::optional<uint64_t> limit,
                         uint64_t needed, const std::string& parts) {
    if (!limit || needed <= *limit) return;
    console.error(std::string(option) + ": " + std::to_string(needed) +
                  " bytes are needed, " + std::to_string(*limit) +
                  " are allowed: " + parts);
    status = Exit::Budget;
  };
  std::ostringstream parts;
  parts << "arena " << ram.all() << " (temporaries " << ram.temporaries << ", scratch "
        << ram.scratch << ", tables " << ram.tables << "), stack " << sizes.stack;
  for (size_t i = 0; i < contents.pools.size(); i++)
    check("--pool", options.pools[i].bytes, contents.pools[i].bytes,
          "memory " + contents.pools[i].name + " of an arena of " +
              std::to_string(ram.all()));
  check("--max-ram", options.max_ram, ram.all() + sizes.stack, parts.str());
  parts.str("");
  parts << "weights " << contents.weight_bytes << ", image " << sizes.image
        << ", kernels " << sizes.code << ", stub " << sizes.stub;
  check("--max-flash", options.max_flash, flash_bytes(contents, sizes), parts.str());
  return status;
}

} // namespace svod::packager
