// --finite: what is no number in, is no number out, and looks like an answer.
#include "runtime_stub/program/binding.h"
#include "runtime_stub/program/open_inputs.h"

namespace packed {

Exit check_finite(const Session& session, const Options& options, Printer& errors) {
  for (uint32_t i = 0; options.finite && i < model_inputs(session); i++) {
    const Tensor tensor = input_type(session, i);
    if (!is_float(*tensor.element)) continue;
    for (uint64_t at = 0, count = tensor.elements(); at < count; at++) {
      const double value = load(*tensor.element, session.inputs[i], at);
      if (value - value == 0) continue; // infinity and NaN less themselves are NaN
      errors << "error: input '";
      errors.name(tensor.name);
      errors << "', element " << at << ", is ";
      print_element(errors, *tensor.element, session.inputs[i], at);
      errors << ", which --finite refuses\n";
      return EXIT_BAD_DATA;
    }
  }
  return EXIT_DONE;
}

} // namespace packed
