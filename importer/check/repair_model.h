// What exporters leave unsaid and ONNX Runtime reads one way only.
#pragma once

#include "importer/model/limits.h"
#include "importer/model/model.h"

namespace svod::importer {

// Completes a model that was just read, with a warning for each thing taken for granted:
// domains used but not imported, operators of com.microsoft written without their domain,
// constants that are defined several times. Everything else that is wrong stays, for
// check_model() to report.
void repair_model(Model& model, const Limits& limits, Diags& diags);

} // namespace svod::importer
