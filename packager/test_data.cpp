// Inputs come from a fixed sequence, so a failure repeats. Values are small: wide
// integers are often indices or counts, and floats around zero meet no overflow. A
// TensorProto is four fields, written by hand.
#include "packager/test_data.h"

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"

#include <cstring>
#include <fstream>

namespace svod {

namespace {

// SplitMix64, as published.
struct Random {
  uint64_t state = 1;
  uint64_t next() {
    uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
};

uint64_t random_bits(DType dtype, Random& random) {
  if (is_float(dtype)) {
    return scalar_bits(dtype, (static_cast<double>(random.next() % 257) - 128) / 128);
  }
  bool byte = byte_size(dtype) == 1 && dtype != DType::Bool;
  return byte ? random.next() & 0xff : random.next() & 1;
}

Tensor random_tensor(const Node& node, Random& random) {
  Tensor out{node.dtype, node.shape, {}};
  auto bytes = static_cast<size_t>(byte_size(node.dtype));
  auto count = static_cast<size_t>(element_count(node.shape));
  out.bytes.resize(count * bytes);
  for (size_t i = 0; i < count; i++) {
    uint64_t bits = random_bits(node.dtype, random);
    std::memcpy(out.bytes.data() + i * bytes, &bits, bytes);
  }
  return out;
}

void put_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void put_bytes(std::string& out, int field, std::string_view bytes) {
  put_varint(out, static_cast<uint64_t>(field) << 3 | 2);
  put_varint(out, bytes.size());
  out += bytes;
}

std::string tensor_proto(const std::string& name, const Interface& seen,
                         const Tensor& tensor) {
  std::string out;
  for (int64_t dim : seen.shape) {
    put_varint(out, 1 << 3);
    put_varint(out, static_cast<uint64_t>(dim));
  }
  put_varint(out, 2 << 3);
  put_varint(out, static_cast<uint64_t>(seen.onnx_type));
  put_bytes(out, 8, name);
  put_bytes(out, 9,
            {reinterpret_cast<const char*>(tensor.bytes.data()), tensor.bytes.size()});
  return out;
}

std::string write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? "" : "cannot write " + path;
}

} // namespace

std::string write_random_data(const Graph& graph, const ModelInterface& interface,
                              const std::string& folder) {
  Random random;
  std::vector<Tensor> inputs;
  for (const GraphInput& input : graph.inputs()) {
    inputs.push_back(random_tensor(graph[input.node], random));
    if (const auto at = interface.fixed.find(input.name); at != interface.fixed.end())
      inputs.back().bytes = at->second;
  }
  Evaluated result = evaluate(graph, inputs);
  if (result.failed != kNoNode) {
    return "random inputs lead to an index out of range; give a data set";
  }
  std::string error;
  for (size_t i = 0; i < inputs.size() && error.empty(); i++) {
    error = write_file(
        folder + "/input_" + std::to_string(i) + ".pb",
        tensor_proto(graph.inputs()[i].name, graph.inputs()[i].seen, inputs[i]));
  }
  for (size_t i = 0; i < result.outputs.size() && error.empty(); i++) {
    error = write_file(folder + "/output_" + std::to_string(i) + ".pb",
                       tensor_proto(graph.outputs()[i].name, graph.outputs()[i].seen,
                                    result.outputs[i]));
  }
  return error;
}

} // namespace svod
