// The text of a call is the user's file and a function svod_call behind it, which casts
// the tensors it is given and fills in sizes and attributes as constants. It is kept as a
// blob of the graph, so equal calls of different models are equal kernels.
#include "importer/driver/custom_call.h"

#include "compiler/support/check.h"
#include "compiler/support/diags.h"
#include "importer/formula/expression.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace svod::importer {
namespace {

using Kind = CustomParameter::Kind;

const ModelAttribute* find_attribute(const NodeImport& node, const std::string& name) {
  for (const ModelAttribute& attribute : node.model_node.attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

std::string hex(uint64_t bits) {
  static const char* digits = "0123456789abcdef";
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += digits[bits >> shift & 15];
  return "0x" + out + "ull";
}

std::string integer_text(int64_t value) {
  return "static_cast<__INT64_TYPE__>(" + hex(static_cast<uint64_t>(value)) + ")";
}
std::string float_text(double value) {
  return "__builtin_bit_cast(double, " + hex(std::bit_cast<uint64_t>(value)) + ")";
}

std::string shape_of(const Shape& shape) {
  std::string out = "[";
  for (size_t i = 0; i < shape.size(); ++i)
    out += (i ? "," : "") + std::to_string(shape[i]);
  return out + "]";
}

// One call under construction.
class Call {
public:
  Call(NodeImport& node, const CustomOp& op) : node_(node), op_(op) {}

  void build() {
    check_attributes();
    find_tensors();
    std::string arguments;
    for (size_t i = 0; i < op_.parameters.size(); ++i)
      arguments += (i ? ",\n      " : "\n      ") + argument(i);
    const std::string text = *op_.text + "#line 1 \"svod\"\n" +
                             "static __INT32_TYPE__ svod_call(void* const* tensors) {\n" +
                             constants_ + "  " + op_.function + "(" + arguments +
                             ");\n  return 0;\n}\n";
    give_outputs(text);
  }

private:
  [[noreturn]] void misfit(const std::string& what) const {
    node_.unsupported(what + " (" + op_.place() + ")");
  }

  // An attribute that no parameter takes would be lost without a word.
  void check_attributes() const {
    for (const ModelAttribute& attribute : node_.model_node.attributes)
      if (std::ranges::none_of(op_.parameters, [&](const CustomParameter& p) {
            return p.name == attribute.name &&
                   (p.kind == Kind::Number || p.kind == Kind::Numbers);
          }))
        misfit("attribute '" + escaped(attribute.name) + "' is no parameter of " +
               op_.function);
  }

  // Which tensor each pointer is: inputs first, then outputs.
  void find_tensors() {
    size_t inputs = 0, outputs = 0;
    for (const CustomParameter& p : op_.parameters) {
      if (p.kind == Kind::Input)
        tensor_of_.push_back(inputs++);
      else if (p.kind == Kind::Output)
        tensor_of_.push_back(outputs++);
      else
        tensor_of_.push_back(0);
    }
    if (node_.output_count() > outputs)
      misfit("it has " + std::to_string(node_.output_count()) + " outputs, " +
             op_.function + " gives " + std::to_string(outputs));
    for (const CustomParameter& p : op_.parameters)
      if (p.kind == Kind::Output) add_output(p);
    for (size_t i = 0; i < inputs; ++i)
      if (element_count(node_.shape(i)) == 0)
        misfit("input " + std::to_string(i) + " has no element");
  }

  void add_output(const CustomParameter& p) {
    const size_t i = shapes_.size();
    const std::string& rule = op_.shapes[i];
    std::optional<Shape> shape = node_.declared_shape(i);
    if (rule != "declared")
      shape = node_.shape(std::stoul(rule.substr(rule.find('(') + 1)));
    if (!shape)
      misfit("the model declares no shape for output " + std::to_string(i) +
             "; annotate one, such as \"same(0)\"");
    if (element_count(*shape) > int64_t{1} << 31)
      misfit("output " + std::to_string(i) + " has too many elements");
    shapes_.push_back(*shape);
    dtypes_.push_back(p.dtype);
  }

  const Shape& tensor_shape(size_t parameter) const {
    const CustomParameter& p = op_.parameters[parameter];
    const size_t i = tensor_of_[parameter];
    return p.kind == Kind::Input ? node_.shape(i) : shapes_[i];
  }

  std::string argument(size_t i) {
    const CustomParameter& p = op_.parameters[i];
    switch (p.kind) {
    case Kind::Input:
      return "static_cast<const " + p.type + "*>(tensors[" +
             std::to_string(tensor_of_[i]) + "])";
    case Kind::Output:
      return "static_cast<" + p.type + "*>(tensors[" +
             std::to_string(node_.input_count() + tensor_of_[i]) + "])";
    case Kind::Number:
      return "static_cast<" + p.type + ">(" + number(p) + ")";
    case Kind::Numbers:
      return numbers(p);
    case Kind::Size:
      if (op_.parameters[p.of].kind == Kind::Numbers)
        return std::to_string(list_of(op_.parameters[p.of]).size());
      return integer_text(element_count(tensor_shape(p.of)));
    case Kind::Rank:
      return std::to_string(tensor_shape(p.of).size());
    case Kind::Dims: {
      std::vector<std::string> dims;
      for (int64_t extent : tensor_shape(p.of)) dims.push_back(integer_text(extent));
      return constant_array("__INT64_TYPE__", dims);
    }
    }
    SVOD_CHECK(false) << "unknown kind of parameter";
    return "";
  }

  std::string number(const CustomParameter& p) const {
    const ModelAttribute* attribute = find_attribute(node_, p.name);
    if (!attribute) {
      if (!p.fallback)
        misfit("attribute '" + p.name + "' is missing, and " + op_.function +
               " has no default for it");
      return is_float(p.dtype) ? float_text(*p.fallback)
                               : integer_text(static_cast<int64_t>(*p.fallback));
    }
    if (is_float(p.dtype) && attribute->type == AttributeType::Float)
      return float_text(attribute->f);
    if (!is_float(p.dtype) && attribute->type == AttributeType::Int &&
        scalar_bits_fit(p.dtype, attribute->i))
      return integer_text(attribute->i);
    misfit("attribute '" + p.name + "' does not fit the parameter's type '" + p.type +
           "'");
  }

  static bool scalar_bits_fit(DType dtype, int64_t value) {
    if (dtype == DType::Bool) return value == 0 || value == 1;
    if (dtype == DType::U64) return value >= 0;
    const int bits = 8 * byte_size(dtype);
    const bool is_signed = info(dtype).kind == DTypeKind::Int;
    if (bits == 64) return true;
    const int64_t high = int64_t{1} << (is_signed ? bits - 1 : bits);
    return value < high && value >= (is_signed ? -high : 0);
  }

  std::vector<std::string> list_of(const CustomParameter& p) const {
    std::vector<std::string> items;
    const ModelAttribute* attribute = find_attribute(node_, p.name);
    if (!attribute) return items;
    const bool fits = attribute->type == (p.dtype == DType::F32 ? AttributeType::Floats
                                                                : AttributeType::Ints);
    if (!fits) misfit("attribute '" + p.name + "' is no list of " + p.type);
    for (float f : attribute->floats)
      items.push_back("static_cast<float>(" + float_text(f) + ")");
    for (int64_t i : attribute->ints) items.push_back(integer_text(i));
    return items;
  }

  std::string numbers(const CustomParameter& p) {
    return constant_array(p.type, list_of(p));
  }

  std::string constant_array(const std::string& type,
                             const std::vector<std::string>& items) {
    const std::string name = "svod_constants" + std::to_string(arrays_++);
    constants_ += "  static constexpr " + type + " " + name + "[] = {";
    for (const std::string& item : items) constants_ += item + ", ";
    if (items.empty()) constants_ += "0"; // C++ has no empty array
    constants_ += "};\n";
    return name;
  }

  void give_outputs(const std::string& text) {
    Graph& g = node_.g;
    const auto bytes = std::as_bytes(std::span(text.data(), text.size()));
    Payload payload{g.add_blob(std::vector<std::byte>(bytes.begin(), bytes.end())), 0};
    for (size_t i = 0; i < shapes_.size(); ++i)
      payload.push_back(element_count(shapes_[i]) * byte_size(dtypes_[i]));
    std::vector<NodeId> inputs;
    for (size_t i = 0; i < node_.input_count(); ++i) inputs.push_back(node_.input(i));
    for (size_t i = 0; i < shapes_.size() && i < node_.output_count(); ++i) {
      payload[1] = static_cast<int64_t>(i);
      node_.output(i, rebuild(g, {Op::Call, dtypes_[i], shapes_[i], payload, inputs}));
    }
  }

  NodeImport& node_;
  const CustomOp& op_;
  std::vector<size_t> tensor_of_; // by parameter
  std::vector<Shape> shapes_;     // of outputs
  std::vector<DType> dtypes_;
  std::string constants_;
  int arrays_ = 0;
};

// Why a function does not take the node's inputs; empty when it does.
std::string why_not(const NodeImport& node, const CustomOp& op) {
  size_t i = 0;
  for (const CustomParameter& p : op.parameters) {
    if (p.kind != Kind::Input) continue;
    if (!node.has_input(i))
      return op.function + " (" + op.place() + ") takes an input " + std::to_string(i) +
             " '" + p.name + "', which the node does not have";
    if (node.dtype(i) != p.dtype)
      return "input " + std::to_string(i) + " is " +
             std::string(info(node.dtype(i)).text) + ", but " + op.function + " (" +
             op.place() + ") takes const " + p.type + "* " + p.name;
    ++i;
  }
  if (i == node.input_count()) return "";
  return op.function + " (" + op.place() + ") takes " + std::to_string(i) +
         " inputs, the node has " + std::to_string(node.input_count());
}

std::string cpp_type(DType dtype) {
  // What C++ has no type for is given as its bits.
  if (byte_size(dtype) == 1 && is_float(dtype))
    return std::string(info(dtype).store_type);
  switch (info(dtype).kind) {
  case DTypeKind::Bool:
    return "bool";
  case DTypeKind::Float:
    return dtype == DType::F16    ? "_Float16"
           : dtype == DType::BF16 ? "__bf16"
           : dtype == DType::F64  ? "double"
                                  : "float";
  case DTypeKind::Int:
    return "int" + std::to_string(8 * byte_size(dtype)) + "_t";
  case DTypeKind::Uint:
    return "uint" + std::to_string(8 * byte_size(dtype)) + "_t";
  case DTypeKind::Handle:
    break; // run_rule() refuses them before
  }
  return "float";
}

// A model's name as a C++ one, or as text between quotes.
std::string identifier(const std::string& name) {
  std::string out;
  for (char c : name) {
    const bool upper = c >= 'A' && c <= 'Z', letter = upper || (c >= 'a' && c <= 'z');
    const bool digit = c >= '0' && c <= '9';
    if (upper && !out.empty() && out.back() != '_') out += '_';
    out += upper ? static_cast<char>(c - 'A' + 'a') : letter || digit ? c : '_';
    if (out.size() >= 64) break;
  }
  return out.empty() || (out[0] >= '0' && out[0] <= '9') ? "op_" + out : out;
}

std::string quoted_text(const std::string& text) {
  std::string out = escaped(text);
  for (char& c : out)
    if (c == '"' || c == '\\') c = '?';
  return '"' + out + '"';
}

std::string attribute_parameter(const ModelAttribute& attribute) {
  const std::string mark = "[[clang::annotate(\"svod::attribute\")]] const ";
  const std::string name = escaped(attribute.name);
  switch (attribute.type) {
  case AttributeType::Float:
    return "float " + name;
  case AttributeType::Int:
    return "int64_t " + name;
  case AttributeType::Floats:
    return mark + "float* " + name + ", int64_t " + name + "_size";
  case AttributeType::Ints:
    return mark + "int64_t* " + name + ", int64_t " + name + "_size";
  default:
    return "/* attribute '" + escaped(name) + "' cannot be passed */";
  }
}

} // namespace

std::vector<const CustomOp*> find_custom_ops(const std::vector<CustomOp>& all,
                                             const ModelNode& node) {
  std::vector<const CustomOp*> found;
  for (const CustomOp& op : all)
    if (op.domain == node.domain && op.name == node.op_type) found.push_back(&op);
  return found;
}

void import_custom_call(NodeImport& node, const std::vector<const CustomOp*>& functions) {
  std::string reasons;
  for (const CustomOp* op : functions) {
    const std::string reason = why_not(node, *op);
    if (reason.empty()) return Call(node, *op).build();
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }
  node.unsupported(reasons);
}

std::string custom_declaration(const Graph& g, const ModelNode& node,
                               const std::vector<NodeId>& inputs,
                               const std::vector<DeclaredOutput>& outputs) {
  std::string parameters;
  const auto add = [&](const std::string& text) {
    parameters += (parameters.empty() ? "" : ", ") + text;
  };
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::string name = "x" + std::to_string(i);
    if (inputs[i] == kNoNode || is_compound(inputs[i])) continue;
    const Node& input = g[inputs[i]];
    add("const " + cpp_type(input.dtype) + "* " + name + " /* " + shape_of(input.shape) +
        " */");
  }
  std::string shapes;
  for (size_t i = 0; i < outputs.size(); ++i) {
    add(cpp_type(outputs[i].dtype.value_or(DType::F32)) + "* y" + std::to_string(i) +
        (outputs[i].shape ? " /* " + shape_of(*outputs[i].shape) + " */" : ""));
    shapes += outputs[i].shape ? ", \"declared\"" : ", \"same(0)\"";
  }
  for (const ModelAttribute& attribute : node.attributes)
    add(attribute_parameter(attribute));
  return "[[clang::annotate(\"svod::op\", " +
         quoted_text(node.domain.empty() ? "ai.onnx" : node.domain) + ", " +
         quoted_text(node.op_type) + shapes + ")]] void " + identifier(node.op_type) +
         "(" + parameters + ")";
}

} // namespace svod::importer
