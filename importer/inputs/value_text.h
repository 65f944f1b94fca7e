// Values of inputs as the user writes them: --value axes=1,2.
#pragma once

#include "compiler/ir/dtype.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace svod::importer {

// How many elements a text has.
int64_t values_in(const std::string& text);

// The value of an input from text: "1,2", "0.5", "true". None, and why in `error`, when
// the text does not fit the type or the number of elements.
std::optional<std::vector<std::byte>>
value_from_text(const std::string& text, DType dtype, int64_t count, std::string& error);

// "[1, 2]"
std::string value_text(DType dtype, const std::vector<std::byte>& bytes);

// "--value axes=N,N", what to type for an input of that many elements.
std::string value_option(const std::string& name, int64_t count);

} // namespace svod::importer
