// The model that the fuzzed program was packed from: a few inputs and outputs of the
// kinds that readers tell apart, and one kernel, which gives numbers made of nothing.
#pragma once

namespace svod::fuzz {

enum class ModelForm {
  Tensors, // numbers, strings, small elements, extents that a run decides
  Values,  // beside tensors a sequence, an optional and maps
  Records, // what --stream takes: numbers of fixed extents
};

// From here on svod_get_model gives the model of this form.
void choose_model(ModelForm form);

} // namespace svod::fuzz
