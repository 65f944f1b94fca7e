// Imports models made of bytes, and runs them in the evaluator.
#pragma once

#include "compiler/ir/evaluate.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "tests/support/onnx_bytes.h"

#include <catch2/catch.hpp>

#include <memory>

namespace svod::import_test {

using namespace importer;
using namespace onnx_bytes;

inline const std::vector<std::string> kX = {value("x", {4})}, kY = {value("y", {4})};

struct Imported {
  // Weights of the graph lie in the model's bytes.
  std::shared_ptr<const std::string> bytes;
  std::optional<Model> model;
  std::optional<Graph> graph;
  ModelInterface interface;
  Diags diags;
  std::string text() const { return diags.text("m"); }
};

inline Imported import(const std::string& bytes, const ImportOptions& options = {}) {
  Imported result;
  result.bytes = std::make_shared<const std::string>(bytes);
  result.model = read_model_bytes(*result.bytes, options.limits, result.diags);
  if (result.model)
    result.graph = import_model(*result.model, options, result.diags, &result.interface);
  CHECK(result.graph.has_value() != result.diags.failed());
  return result;
}

// A model that must be read.
inline Imported imported(const std::string& bytes) {
  Imported result = import(bytes);
  INFO(result.text());
  REQUIRE(result.graph);
  return result;
}

inline void refused(const std::string& bytes, Exit exit, const std::string& why,
                    const ImportOptions& options = {}) {
  const Imported result = import(bytes, options);
  INFO(result.text());
  CHECK_FALSE(result.graph);
  CHECK(result.diags.exit() == exit);
  CHECK(result.text().find(why) != std::string::npos);
}

inline Tensor f32(Shape shape, const std::vector<float>& values) {
  Tensor tensor{DType::F32, std::move(shape), {}};
  const auto* bytes = reinterpret_cast<const std::byte*>(values.data());
  tensor.bytes.assign(bytes, bytes + values.size() * sizeof(float));
  return tensor;
}

inline std::vector<float> floats_of(const Tensor& tensor) {
  REQUIRE(tensor.dtype == DType::F32);
  std::vector<float> values(tensor.bytes.size() / sizeof(float));
  if (!values.empty())
    std::memcpy(values.data(), tensor.bytes.data(), tensor.bytes.size());
  return values;
}

// The first output of a model of one input.
inline std::vector<float> run(const std::string& bytes,
                              const std::vector<float>& x = {1, -2, 3, -4}) {
  const Imported result = imported(bytes);
  const Graph& g = *result.graph;
  std::vector<Tensor> inputs;
  if (!g.inputs().empty()) inputs.push_back(f32(g[g.inputs()[0].node].shape, x));
  return floats_of(evaluate(g, inputs).outputs.at(0));
}

inline std::string with_functions(const GraphParts& parts, const std::string& functions) {
  return model(parts, 17, opset("f", 1) + functions);
}

inline std::string call(const std::string& name, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {}) {
  return node(name, inputs, outputs, attributes, "f");
}

} // namespace svod::import_test
