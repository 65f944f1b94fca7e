// Reads an ONNX file: maps it, decodes its messages, checks everything that does not
// depend on what operators mean. Hostile files end in an error; nothing is read outside
// the model's folder.
//
// Fails with entries in `diags`: exit 1 (malformed, a lie about sizes, over a limit,
// names that do not fit together), 3 (newer than what we know), 4 (file not readable).
#pragma once

#include "compiler/support/diags.h"
#include "importer/model/limits.h"
#include "importer/model/model.h"

#include <future>

namespace svod::importer {

// With `digest` the file's own is found meanwhile, and is not in the model: that takes as
// long as all the rest for a file of weights.
[[nodiscard]] std::optional<Model> read_model(const std::string& path,
                                              const Limits& limits, Diags& diags,
                                              std::future<Digest>* digest = nullptr);

// The same from memory, without external data. `bytes` must outlive the model.
[[nodiscard]] std::optional<Model> read_model_bytes(std::string_view bytes,
                                                    const Limits& limits, Diags& diags);

// What the decoded messages must satisfy together (check_model.cpp): versions, and names
// that are defined once, before their use.
void check_model(const Model& model, const Limits& limits, Diags& diags);

} // namespace svod::importer
