// Prints a graph. The order of lines is the order of ids, and blobs are numbered by first
// use, so that parsing the text and printing again gives the same text.
#include "compiler/ir/print.h"

#include "compiler/ir/text.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace svod {

namespace {

class Printer {
public:
  Printer(const Graph& g, const PrintOptions& options) : g_(g), options_(options) {}

  std::string print() {
    std::vector<NodeId> order = g_.live_nodes();
    for (const GraphInput& input : g_.inputs()) order.push_back(input.node);
    std::sort(order.begin(), order.end());
    order.erase(std::unique(order.begin(), order.end()), order.end());
    for (NodeId id : order) {
      print_bodies(g_[id]);
      print_node(id);
    }
    for (const GraphOutput& output : g_.outputs())
      out_ += "output " + name_text(output.name) + ' ' + number(output.node) +
              interface_text(output.node, output.seen) + '\n';
    return std::move(out_);
  }

private:
  std::string number(NodeId id) const { return '%' + std::to_string(numbers_.at(id)); }

  // Empty where the caller sees the node's own type.
  std::string interface_text(NodeId node, const Interface& seen) const {
    if (seen == g_.interface_of(node)) return "";
    std::string out = " seen=" + onnx_type_text(seen.onnx_type) + " dims=[";
    for (size_t i = 0; i < seen.shape.size(); ++i)
      out += (i ? "," : "") + std::to_string(seen.shape[i]);
    return out + ']';
  }

  // Bodies stand before the first region that runs them.
  void print_bodies(const Node& node) {
    for (size_t b = 0; b < body_count(node.op); ++b) {
      const auto id = static_cast<uint32_t>(node.payload[b]);
      const auto [place, fresh] = bodies_.emplace(id, bodies_.size());
      if (!fresh) continue;
      out_ += "body " + std::to_string(place->second) + "\n";
      out_ += Printer(*g_.body(id), options_).print();
      out_ += "end\n";
    }
  }

  void print_node(NodeId id) {
    const Node& node = g_[id];
    numbers_.emplace(id, numbers_.size());
    out_ += number(id) + " = ";
    out_ += info(node.op).text;
    for (NodeId input : node.inputs) out_ += ' ' + number(input);
    print_payload(node);
    out_ += " : " + type_text(node.dtype, node.shape);
    if (options_.sources && !g_.sources(id).empty()) print_sources(id);
    out_ += '\n';
  }

  void print_payload(const Node& node) {
    size_t next = 0;
    for (const PayloadField& field : payload_fields(node.op)) {
      if (field.kind == PayloadField::Kind::One) {
        print_single(node, field.name, node.payload.at(next++));
        continue;
      }
      size_t count = field.kind == PayloadField::Kind::Rest
                         ? node.payload.size() - next
                         : g_[node.inputs.at(0)].shape.size();
      out_ += ' ' + std::string(field.name) + "=[";
      for (size_t i = 0; i < count; ++i)
        out_ += (i ? "," : "") + std::to_string(node.payload.at(next++));
      out_ += ']';
    }
  }

  void print_single(const Node& node, std::string_view name, int64_t value) {
    if (node.op == Op::Input)
      print_input(g_.inputs().at(static_cast<size_t>(value)));
    else if (node.op == Op::Call && name == "function")
      print_digest(static_cast<uint32_t>(value));
    else if (node.op == Op::Weight)
      print_blob(node, static_cast<uint32_t>(value));
    else if (has_body(node.op) && (name == "body" || name == "other"))
      out_ += ' ' + std::string(name) + '=' +
              std::to_string(bodies_.at(static_cast<uint32_t>(value)));
    else if (name == "bits")
      out_ += " value=" + scalar_text(node.dtype, static_cast<uint64_t>(value));
    else
      out_ += ' ' + std::string(name) + '=' + std::to_string(value);
  }

  void print_input(const GraphInput& input) {
    out_ += ' ' + name_text(input.name) + interface_text(input.node, input.seen);
  }

  void print_number(uint32_t blob) {
    auto number = blobs_.emplace(blob, blobs_.size()).first->second;
    out_ += " #" + std::to_string(number);
  }

  void print_digest(uint32_t blob) {
    print_number(blob);
    out_ += " sha256=" + g_.blob(blob).digest.hex();
  }

  void print_blob(const Node& node, uint32_t blob) {
    if (element_count(node.shape) > kPrintedWeight) return print_digest(blob);
    print_number(blob);
    size_t size = static_cast<size_t>(byte_size(node.dtype));
    std::span<const std::byte> bytes = g_.blob(blob).unnoted_bytes();
    out_ += " {";
    for (size_t at = 0; at < bytes.size(); at += size) {
      uint64_t bits = 0;
      std::memcpy(&bits, bytes.data() + at, size);
      out_ += (at ? ", " : "") + scalar_text(node.dtype, bits);
    }
    out_ += '}';
  }

  void print_sources(NodeId id) {
    out_ += " ; from";
    for (int32_t source : g_.sources(id)) out_ += ' ' + name_text(g_.source_name(source));
  }

  const Graph& g_;
  const PrintOptions& options_;
  std::map<NodeId, size_t> numbers_;
  std::map<uint32_t, size_t> blobs_, bodies_;
  std::string out_;
};

} // namespace

std::string print_graph(const Graph& g, const PrintOptions& options) {
  return Printer(g, options).print();
}

} // namespace svod
