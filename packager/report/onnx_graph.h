// The model's own graph, as the page draws it beside what became of it.
#pragma once

#include "importer/model/model.h"
#include "packager/report/json.h"

namespace svod::packager {

// "onnx": inputs[name], outputs[{name, of}], nodes[{name, op, inputs[]}] in the file's
// order. A number is a node; one below zero, input -1 - number. A node reads, beside its
// own inputs, what the graphs in its attributes take from around it. Constants are
// nobody's result and left out. Names of nodes are those of kernels' `nodes`.
void write_onnx_graph(JsonWriter& json, const importer::Model& model);

} // namespace svod::packager
