// Runs one operator rule on given tensors: rule, then evaluator.
#pragma once

#include "compiler/ir/evaluate.h"
#include "importer/formula/rule.h"
#include "importer/operators/onnx_ops.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>

namespace svod::rule_test {

using namespace importer;

inline constexpr float kInf = std::numeric_limits<float>::infinity();

inline ModelAttribute attribute(const std::string& name, int64_t value) {
  ModelAttribute a;
  a.name = name;
  a.i = value;
  return a;
}
inline ModelAttribute attribute(const std::string& name, std::vector<int64_t> values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Ints;
  a.ints = std::move(values);
  return a;
}
inline ModelAttribute attribute(const std::string& name, double value) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Float;
  a.f = static_cast<float>(value);
  return a;
}
inline ModelAttribute attribute(const std::string& name, const char* value) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::String;
  a.s = value;
  return a;
}

template <class T> Tensor tensor(DType dtype, Shape shape, const std::vector<T>& values) {
  Tensor t{dtype, std::move(shape), {}};
  t.bytes.resize(values.size() * sizeof(T));
  if (!values.empty()) std::memcpy(t.bytes.data(), values.data(), t.bytes.size());
  return t;
}
inline Tensor f32(Shape shape, const std::vector<float>& values) {
  return tensor(DType::F32, std::move(shape), values);
}
inline Tensor i64(Shape shape, const std::vector<int64_t>& values) {
  return tensor(DType::I64, std::move(shape), values);
}
template <class T> std::vector<T> values(const Tensor& t) {
  std::vector<T> result(t.bytes.size() / sizeof(T));
  if (!result.empty()) std::memcpy(result.data(), t.bytes.data(), t.bytes.size());
  return result;
}
inline std::vector<float> counting(int64_t count) {
  std::vector<float> result;
  for (int64_t i = 0; i < count; ++i) result.push_back(static_cast<float>(i));
  return result;
}

// One node of the given opset. The last `known` inputs are known when packing.
struct Operator {
  std::string name;
  int64_t opset;
  std::vector<ModelAttribute> attributes = {};
  size_t known = 0;
  size_t outputs = 1;
  std::string domain = "";
  std::vector<std::optional<Shape>> declared = {};

  // The results, or what the rule says against the node.
  std::vector<Tensor> results = {};
  std::string failure = {};

  Operator& run(const std::vector<Tensor>& inputs) {
    ModelNode node;
    node.op_type = name;
    node.domain = domain;
    node.attributes = attributes;
    Graph g;
    std::vector<NodeId> ids;
    std::vector<Tensor> fed;
    for (size_t i = 0; i < inputs.size(); ++i) {
      node.inputs.push_back("x" + std::to_string(i));
      if (i + known >= inputs.size()) {
        ids.push_back(
            weight(g, inputs[i].dtype, inputs[i].shape, g.add_blob(inputs[i].bytes)));
      } else {
        ids.push_back(g.add_input(node.inputs.back(), inputs[i].dtype, inputs[i].shape));
        fed.push_back(inputs[i]);
      }
    }
    for (size_t i = 0; i < outputs; ++i) node.outputs.push_back("y" + std::to_string(i));
    const OnnxForm* row = find_onnx_form(domain, name, opset);
    REQUIRE(row);
    NodeImport import(g, node, opset, ids, row->attributes);
    import.declared_shapes = declared;
    try {
      row->rule(import);
      keep_promises(import);
    } catch (const RuleFailure& stopped) {
      failure = stopped.why;
      return *this;
    }
    for (NodeId id : import.results())
      if (id != kNoNode) g.add_output("y", id);
    results = evaluate(g, fed).outputs;
    return *this;
  }
};

// The one result.
inline Tensor only(Operator op, const std::vector<Tensor>& inputs) {
  op.run(inputs);
  INFO(op.failure);
  REQUIRE(op.results.size() == 1);
  return op.results[0];
}

inline std::vector<float> apply(Operator op, const std::vector<Tensor>& inputs) {
  op.run(inputs);
  INFO(op.failure);
  REQUIRE(op.results.size() >= 1);
  return values<float>(op.results[0]);
}

inline void check_close(const std::vector<float>& got, const std::vector<float>& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == Approx(want[i]).margin(1e-6));
}

} // namespace svod::rule_test
