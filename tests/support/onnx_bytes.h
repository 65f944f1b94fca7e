// Writes ONNX messages byte by byte, valid or not: what the reader's tests read. Field
// numbers are those of onnx.proto.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace svod::onnx_bytes {

inline std::string varint(uint64_t value) {
  std::string out;
  for (; value > 0x7f; value >>= 7) out += static_cast<char>(value | 0x80);
  return out + static_cast<char>(value);
}
inline std::string number(int field, int64_t value) {
  return varint(static_cast<uint64_t>(field) << 3) + varint(static_cast<uint64_t>(value));
}
inline std::string data(int field, const std::string& bytes) {
  return varint(static_cast<uint64_t>(field) << 3 | 2) + varint(bytes.size()) + bytes;
}
template <class T> std::string raw(const std::vector<T>& values) {
  std::string out(values.size() * sizeof(T), '\0');
  if (!values.empty()) std::memcpy(out.data(), values.data(), out.size());
  return out;
}
template <class T> std::string packed(int field, const std::vector<T>& values) {
  std::string out;
  for (T value : values)
    out += varint(static_cast<uint64_t>(static_cast<int64_t>(value)));
  return data(field, out);
}
inline std::string list(int field, const std::vector<std::string>& messages) {
  std::string out;
  for (const std::string& message : messages) out += data(field, message);
  return out;
}

enum : int {
  kF32 = 1,
  kU8 = 2,
  kI8 = 3,
  kI32 = 6,
  kI64 = 7,
  kString = 8,
  kBool = 9,
  kF16 = 10
};

// A tensor whose data fields are `fields`, as written by data(), packed() and so on.
inline std::string tensor(const std::string& name, int type,
                          const std::vector<int64_t>& dims, const std::string& fields) {
  std::string out;
  for (int64_t dim : dims) out += number(1, dim);
  return out + number(2, type) + data(8, name) + fields;
}
inline std::string floats(const std::string& name, const std::vector<int64_t>& dims,
                          const std::vector<float>& values) {
  return tensor(name, kF32, dims, data(9, raw(values)));
}
inline std::string ints(const std::string& name, const std::vector<int64_t>& dims,
                        const std::vector<int64_t>& values) {
  return tensor(name, kI64, dims, data(9, raw(values)));
}

inline std::string attribute(const std::string& name, int64_t value) {
  return data(1, name) + number(3, value) + number(20, 2);
}
inline std::string attribute(const std::string& name, float value) {
  return data(1, name) + varint(2 << 3 | 5) + raw(std::vector<float>{value}) +
         number(20, 1);
}
inline std::string text_attribute(const std::string& name, const std::string& text) {
  return data(1, name) + data(4, text) + number(20, 3);
}
inline std::string ints_attribute(const std::string& name,
                                  const std::vector<int64_t>& values) {
  return data(1, name) + packed(8, values) + number(20, 7);
}
inline std::string graph_attribute(const std::string& name, const std::string& graph) {
  return data(1, name) + data(6, graph) + number(20, 5);
}
// Inside a function: the value of the call's attribute `reference`.
inline std::string reference(const std::string& name, const std::string& reference,
                             int type) {
  return data(1, name) + data(21, reference) + number(20, type);
}

inline std::string node(const std::string& op, const std::vector<std::string>& inputs,
                        const std::vector<std::string>& outputs,
                        const std::vector<std::string>& attributes = {},
                        const std::string& domain = "", const std::string& name = "") {
  return list(1, inputs) + list(2, outputs) + data(3, name) + data(4, op) +
         list(5, attributes) + data(7, domain);
}

// A dimension: a number, a name, or "" for nothing.
struct Dim {
  Dim(int64_t value) : bytes(number(1, value)) {}
  Dim(int value) : Dim(static_cast<int64_t>(value)) {}
  Dim(const char* name) : bytes(*name ? data(2, name) : std::string()) {}
  std::string bytes;
};
inline std::string value(const std::string& name, const std::vector<Dim>& dims,
                         int type = kF32) {
  std::string shape;
  for (const Dim& dim : dims) shape += data(1, dim.bytes);
  return data(1, name) + data(2, data(1, number(1, type) + data(2, shape)));
}

struct GraphParts {
  std::vector<std::string> nodes, inputs, outputs, initializers;
};
inline std::string graph(const GraphParts& parts) {
  return list(1, parts.nodes) + data(2, "g") + list(5, parts.initializers) +
         list(11, parts.inputs) + list(12, parts.outputs);
}
inline std::string opset(const std::string& domain, int64_t version) {
  return data(8, data(1, domain) + number(2, version));
}
inline std::string model(const GraphParts& parts, int64_t version = 17,
                         const std::string& more = "") {
  return number(1, 8) + data(7, graph(parts)) + opset("", version) + more;
}

// A function of domain "f" whose body is of opset 17; the call needs opset("f", 1) in its
// model.
inline std::string function(const std::string& name,
                            const std::vector<std::string>& inputs,
                            const std::vector<std::string>& outputs,
                            const std::vector<std::string>& nodes,
                            const std::vector<std::string>& attributes = {}) {
  return data(25, data(1, name) + list(4, inputs) + list(5, outputs) +
                      list(6, attributes) + list(7, nodes) + data(9, number(2, 17)) +
                      data(9, data(1, "f") + number(2, 1)) + data(10, "f"));
}

} // namespace svod::onnx_bytes
