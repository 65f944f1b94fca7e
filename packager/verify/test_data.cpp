// Inputs come from a fixed sequence, so a failure repeats. Values are small: wide
// integers are often indices or counts, and floats around zero meet no overflow. A
// TensorProto is four fields, written by hand.
#include "packager/verify/test_data.h"

#include "compiler/ir/build.h"
#include "compiler/ir/evaluate.h"
#include "compiler/support/bytes.h"
#include "compiler/support/splitmix.h"
#include "importer/inputs/dimension_expression.h"

#include <cstring>
#include <fstream>

namespace svod::packager {

namespace {

struct Random {
  uint64_t state = 1;
  uint64_t next() { return next_splitmix(state); }
};

uint64_t random_bits(DType dtype, Random& random) {
  if (is_float(dtype)) {
    return scalar_bits(dtype, (static_cast<double>(random.next() % 257) - 128) / 128);
  }
  bool byte = byte_size(dtype) == 1 && dtype != DType::Bool;
  return byte ? random.next() & 0xff : random.next() & 1;
}

// Words of lower case letters, zeros after them.
void fill_words(Tensor& out, Random& random) {
  const auto width = static_cast<size_t>(out.shape.back());
  for (size_t row = 0; row < out.bytes.size(); row += width) {
    const size_t size = random.next() % 8;
    for (size_t k = 0; k < std::min(size, width); k++)
      out.bytes[row + k] = static_cast<std::byte>('a' + random.next() % 26);
  }
}

Tensor random_tensor(const Node& node, const Interface& seen, Random& random) {
  Tensor out{node.dtype, node.shape, {}};
  auto bytes = static_cast<size_t>(byte_size(node.dtype));
  auto count = static_cast<size_t>(element_count(node.shape));
  out.bytes.resize(count * bytes);
  if (seen.onnx_type == info(DType::String).onnx) {
    fill_words(out, random);
    return out;
  }
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
  const std::string_view bytes = text_of(tensor.bytes);
  if (seen.onnx_type != info(DType::String).onnx) {
    put_bytes(out, 9, bytes);
    return out;
  }
  const auto width = static_cast<size_t>(tensor.shape.back());
  for (size_t row = 0; row < bytes.size(); row += width) {
    const std::string_view string = bytes.substr(row, width);
    put_bytes(out, 6, string.substr(0, string.find('\0')));
  }
  return out;
}

// Writes a graph's tensors as the messages that the packed program reads.
class PortWriter {
public:
  PortWriter(const std::vector<Tensor>& tensors, std::vector<std::string> names,
             std::vector<Interface> seen)
      : tensors_(tensors), names_(std::move(names)), seen_(std::move(seen)) {}
  std::string message(const importer::ModelPort& port) const;

private:
  std::string tensor(size_t i) const {
    return tensor_proto(names_[i], seen_[i], tensors_[i]);
  }
  std::string inner(const importer::ModelPort& port) const;
  std::string map(const importer::ModelPort& port, size_t row) const;
  const std::vector<Tensor>& tensors_;
  std::vector<std::string> names_;
  std::vector<Interface> seen_;
};

std::string PortWriter::map(const importer::ModelPort& port, size_t row) const {
  const Tensor& all = tensors_[port.first];
  const auto size = static_cast<size_t>(byte_size(all.dtype));
  std::string out, values;
  for (int64_t key : port.keys.numbers) {
    put_varint(out, 3 << 3);
    put_varint(out, static_cast<uint64_t>(key));
  }
  for (const std::string& key : port.keys.texts) put_bytes(out, 4, key);
  for (size_t i = 0; i < port.keys.size(); i++) {
    const auto* at = all.bytes.data() + (row * port.keys.size() + i) * size;
    put_bytes(values, 3,
              tensor_proto("", {seen_[port.first].onnx_type, {}},
                           {all.dtype, {}, {at, at + size}}));
  }
  put_bytes(out, 5, values);
  return out;
}

std::string PortWriter::inner(const importer::ModelPort& port) const {
  using Kind = importer::ModelPort::Kind;
  if (port.kind == Kind::Tensor) return tensor(port.first);
  if (port.kind == Kind::Map) return map(port, 0);
  std::string out;
  for (size_t i = 0; port.kind == Kind::Sequence && i < port.count; i++)
    put_bytes(out, 3, tensor(port.first + i));
  const int64_t rows = port.kind == Kind::Maps ? tensors_[port.first].shape[0] : 0;
  for (int64_t row = 0; row < rows; row++)
    put_bytes(out, 6, map(port, static_cast<size_t>(row)));
  return out;
}

std::string PortWriter::message(const importer::ModelPort& port) const {
  const bool there = port.present && (!port.presence ||
                                      tensors_[*port.presence].bytes[0] != std::byte{0});
  if (!port.optional) return inner(port);
  std::string out;
  put_bytes(out, 1, port.name);
  if (there)
    put_bytes(out, port.kind == importer::ModelPort::Kind::Tensor ? 3 : 5, inner(port));
  return out;
}

// The part of a tensor that lies within the extents of a run.
Tensor within(const Tensor& tensor, const Tensor& extents) {
  Tensor out{tensor.dtype, tensor.shape, {}};
  std::memcpy(out.shape.data(), extents.bytes.data(), extents.bytes.size());
  const auto size = static_cast<size_t>(byte_size(tensor.dtype));
  const Shape strides = row_major_strides(tensor.shape);
  const Shape own = row_major_strides(out.shape);
  for (int64_t i = 0; i < element_count(out.shape); ++i) {
    int64_t from = 0;
    for (size_t axis = 0; axis < strides.size(); ++axis)
      from += i / own[axis] % out.shape[axis] * strides[axis];
    const auto at = tensor.bytes.begin() + from * static_cast<int64_t>(size);
    out.bytes.insert(out.bytes.end(), at, at + static_cast<int64_t>(size));
  }
  return out;
}

// In the middle of its range, so that a bound is not taken for a size; an expression of
// others is what follows.
int64_t chosen_size(const importer::ModelInterface& interface, const std::string& name,
                    int64_t most) {
  const auto middle = [&](const std::string& of) -> std::optional<importer::SizeRange> {
    const auto range = interface.sizes.find(of);
    if (range == interface.sizes.end()) return std::nullopt;
    const int64_t size =
        range->second.least + (range->second.most - range->second.least) / 2;
    return importer::SizeRange{size, size};
  };
  if (const auto size = middle(name)) return size->least;
  const auto expression = importer::DimensionExpression::parse(name);
  const auto size = expression ? range_of(*expression, middle) : std::nullopt;
  return size ? size->least : most;
}

// A picture of random pixels, as a portable pixmap with zeros behind it, within the
// bounds of the input; its bytes.
int64_t fill_picture(std::vector<std::byte>& bytes, Random& random) {
  constexpr int64_t kHeight = 240, kWidth = 320, kHeader = 65536;
  const int64_t pixels =
      std::max<int64_t>((static_cast<int64_t>(bytes.size()) - kHeader) / 4, 1);
  const int64_t width = std::min(kWidth, pixels);
  const int64_t height = std::min(kHeight, pixels / width);
  const std::string header =
      "P6 " + std::to_string(width) + " " + std::to_string(height) + " 255\n";
  const auto size = header.size() + static_cast<size_t>(3 * height * width);
  for (size_t i = 0; i < size; i++)
    bytes[i] = static_cast<std::byte>(i < header.size() ? static_cast<uint64_t>(header[i])
                                                        : random.next());
  return static_cast<int64_t>(size);
}

// The extents of the inputs of which a run decides sizes.
void choose_sizes(const Graph& graph, const importer::ModelInterface& interface,
                  std::vector<Tensor>& inputs) {
  for (const auto& [input, open] : interface.open_inputs) {
    Shape extents = graph[graph.inputs()[input].node].shape;
    for (size_t axis = 0; axis < extents.size(); ++axis) {
      if (open.dimensions[axis].empty()) continue;
      extents[axis] = chosen_size(interface, open.dimensions[axis], extents[axis]);
    }
    std::memcpy(inputs[open.extents].bytes.data(), extents.data(),
                inputs[open.extents].bytes.size());
  }
}

std::string write_file(const std::string& path, const std::string& bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  file.close();
  return file ? "" : "cannot write " + path;
}

} // namespace

std::vector<Tensor> random_inputs(const Graph& graph,
                                  const importer::ModelInterface& interface) {
  Random random;
  std::vector<Tensor> inputs;
  for (const GraphInput& input : graph.inputs()) {
    const Node& node = graph[input.node];
    if (interface.pictures.contains(inputs.size()))
      inputs.push_back(
          {node.dtype, node.shape,
           std::vector<std::byte>(static_cast<size_t>(element_count(node.shape)))});
    else
      inputs.push_back(random_tensor(node, input.seen, random));
    if (const auto at = interface.fixed.find(input.name); at != interface.fixed.end())
      inputs.back().bytes = at->second;
  }
  for (const StateLink& state : graph.states())
    std::ranges::fill(inputs[state.input].bytes, std::byte{0});
  choose_sizes(graph, interface, inputs);
  for (const auto& [picture, text] : interface.pictures) {
    const int64_t size = fill_picture(inputs[picture].bytes, random);
    std::memcpy(inputs[interface.open_inputs.at(picture).extents].bytes.data(), &size,
                sizeof(size));
  }
  return inputs;
}

std::string write_random_data(const Graph& graph,
                              const importer::ModelInterface& interface,
                              const std::string& folder, const CallRunner& calls) {
  std::vector<Tensor> inputs = random_inputs(graph, interface);
  Evaluated result = evaluate(graph, inputs, calls);
  if (result.failed != kNoNode) {
    return "random inputs lead to an index out of range; give a data set";
  }
  for (const auto& [output, extents] : interface.extents)
    result.outputs[output] = within(result.outputs[output], result.outputs[extents]);
  for (const auto& [input, open] : interface.open_inputs)
    inputs[input] = within(inputs[input], inputs[open.extents]);
  std::string error;
  const auto write = [&](const char* kind, const std::vector<importer::ModelPort>& ports,
                         const auto& of_graph, const std::vector<Tensor>& tensors) {
    std::vector<std::string> names;
    std::vector<Interface> seen;
    for (const auto& port : of_graph) {
      names.push_back(port.name);
      seen.push_back(port.seen);
      // A size that depends on data is the run's.
      if (port.seen.shape == graph[port.node].shape)
        seen.back().shape = tensors[seen.size() - 1].shape;
    }
    const PortWriter writer(tensors, names, seen);
    const size_t callers =
        ports.size() - (graph.states().size() - interface.counters.size());
    for (size_t i = 0; i < callers && error.empty(); i++)
      error = write_file(folder + "/" + kind + "_" + std::to_string(i) + ".pb",
                         writer.message(ports[i]));
  };
  write("input", interface.inputs, graph.inputs(), inputs);
  write("output", interface.outputs, graph.outputs(), result.outputs);
  return error;
}

} // namespace svod::packager
