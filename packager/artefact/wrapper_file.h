// The C++20 header of a packed library: svod::Model (runtime_stub/model.hpp) and the
// struct that tells it this model's tensors.
#pragma once

#include "packager/artefact/header_file.h"

#include <string>

namespace svod::packager {

// `header`: the C header's file name, which this one includes.
std::string wrapper_text(const HeaderFacts& facts, const std::string& header);

// The name of that struct: the prefix, unless C++ has taken it.
std::string wrapper_type(const std::string& prefix);

} // namespace svod::packager
