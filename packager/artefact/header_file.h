// The C header of a packed library: INTERFACE's macros and functions under the user's
// prefix.
#pragma once

#include "packager/artefact/image.h"

#include <optional>
#include <string>

namespace svod::packager {

struct HeaderFacts {
  std::string prefix; // "infer": checked, an identifier
  const ImageContents* contents = nullptr;
  ArenaBytes arena; // all that infer_run needs
  uint64_t stack_bytes = 0;
  bool self_check = false;
  // Of a library that makes its weights: what that needs beside them.
  std::optional<uint64_t> init_scratch = {};
  bool device = false; // of a library for a GPU, too
  bool waits = false;  // its runs there have steps of the processor, which wait for it
  std::string stack_of = {}; // of source: what the stack was measured for
};

std::string header_text(const HeaderFacts& facts);

// Of weights that a library makes, with what stands before them.
uint64_t made_bytes(const ImageContents& contents);

// A string literal of C that no text can end.
std::string c_literal(const std::string& text);
// "INFER" of "infer".
std::string macro_prefix(std::string prefix);

} // namespace svod::packager
