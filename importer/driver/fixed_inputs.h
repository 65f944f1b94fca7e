// Inputs packed for one value. A shape, an axis or a count may be an input of the model,
// and then no program can be packed without its value. Such an input stays in the
// program's interface; what is packed holds for this value only, and a run with another
// one is refused. When an input is fixed: docs/decisions/fixed-inputs.md.
#pragma once

#include "importer/driver/import.h"
#include "importer/formula/deciding_inputs.h"

#include <set>

namespace svod::importer {

// The value of an input from text: "1,2", "0.5", "true". None, and why in `error`, when
// the text does not fit the type or the number of elements.
std::optional<std::vector<std::byte>>
value_from_text(const std::string& text, DType dtype, int64_t count, std::string& error);

// "[1, 2]"
std::string value_text(DType dtype, const std::vector<std::byte>& bytes);

// "--value axes=N,N", what to type for an input of that many elements.
std::string value_option(const std::string& name, int64_t count);

} // namespace svod::importer
