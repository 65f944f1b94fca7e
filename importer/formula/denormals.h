// Weights that training has decayed until they are denormal numbers.
#pragma once

#include "importer/model/model.h"

#include <optional>

namespace svod::importer {

// The tensor with zeros in place of its denormal numbers, where it has any and they are
// less than 2^-62 of its largest number. Only of 32-bit floats, and of 64 or more: fewer
// may be a threshold or a divisor.
std::optional<ModelTensor> without_denormals(const ModelTensor& tensor);

} // namespace svod::importer
