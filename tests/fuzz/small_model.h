// The model that the fuzzed program was packed from: a few inputs and outputs of the
// kinds that readers tell apart, and one kernel, which gives numbers made of nothing.
#pragma once

#include "runtime_stub/format.h"

#include <array>

namespace svod::fuzz {

enum class ModelForm {
  Tensors, // numbers, strings, small elements, extents that a run decides
  Values,  // beside tensors a sequence, an optional and maps
  Records, // what --stream takes: numbers of fixed extents
  Weights, // the same, with weights in a file
};

constexpr std::array<uint8_t, 16> kFileWeights = {1, 2, 3, 4, 5, 6, 7, 8};
// What such a file ends with.
SvodWeightsEnd end_of_weights();

// From here on svod_get_model gives the model of this form.
void choose_model(ModelForm form);

} // namespace svod::fuzz
