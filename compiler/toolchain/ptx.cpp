#include "compiler/toolchain/ptx.h"

namespace svod::toolchain {

// Asked for at least one block on a multiprocessor, the driver's compiler keeps to
// registers; unasked it spilled 24 bytes of a product's to make room for five. An entry
// is printed as ".visible .entry name(", its parameters, ")" and a line "{".
std::string with_block_threads(std::string ptx, int threads) {
  const std::string directive =
      ".maxntid " + std::to_string(threads) + ", 1, 1\n.minnctapersm 1\n";
  for (size_t at = 0; (at = ptx.find(".entry ", at)) != std::string::npos;) {
    const size_t body = ptx.find("\n{", at);
    if (body == std::string::npos) break;
    ptx.insert(body + 1, directive);
    at = body + directive.size();
  }
  return ptx;
}

} // namespace svod::toolchain
