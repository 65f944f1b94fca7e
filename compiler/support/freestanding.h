// Source text that has a name, and the headers every emitted text may include.
#pragma once

#include <string>
#include <vector>

namespace svod {

struct SourceFile {
  std::string name; // as #include or diagnostics spell it
  std::string text;
};

// stdint.h and stddef.h.
std::vector<SourceFile> freestanding_headers();

} // namespace svod
