// Faults of the model, and attempts that leave none.
#include "importer/driver/import_state.h"

#include "importer/formula/complex.h"

namespace svod::importer {

void ImportPart::fail(Exit exit, const std::string& what, const ModelPlace& place) {
  // A branch that the data may never choose need not fit these shapes: the model is
  // valid.
  if (exit == Exit::InvalidModel && import_.open_choices > 0)
    exit = Exit::Unsupported;
  else
    ++import_.lacks;
  // Thousands of lines help nobody; the rest is counted.
  constexpr size_t kMostErrors = 1000;
  if (import_.diags.error_count() < kMostErrors)
    import_.diags.error(exit, what, place);
  else
    ++import_.more_errors;
}

int ImportPart::onnx_type_of(NodeId value) const {
  const DType dtype = g()[inside(import_.compounds, value)].dtype;
  return is_complex(import_.compounds, value) ? complex_of(dtype).value_or(0)
                                              : info(dtype).onnx;
}

ImportPart::Checkpoint ImportPart::checkpoint() const {
  return {import_.diags, import_.missed.size(), import_.lacks, import_.more_errors};
}

void ImportPart::restore(const Checkpoint& to) {
  import_.diags = to.diags;
  import_.missed.resize(to.missed);
  import_.lacks = to.lacks;
  import_.more_errors = to.more_errors;
}

} // namespace svod::importer
