// Most decisions have a common answer, 0, that keeps the model valid, and rare ones that
// do not: a fuzzer finds out soon which bytes those are. Numbers come from a list of
// those that decide something: of axes, sizes and limits.
#include "tests/fuzz/draw_model.h"

#include "importer/operators/onnx_ops.h"
#include "importer/operators/signature.h"
#include "tests/fuzz/decisions.h"
#include "tests/support/onnx_bytes.h"

#include <array>
#include <bit>
#include <limits>

namespace svod::fuzz {

namespace {

using namespace importer;
namespace onnx = onnx_bytes;

constexpr int kMostNodes = 6, kMostDepth = 2;
constexpr std::array<int64_t, 32> kNumbers = {0,
                                              1,
                                              2,
                                              3,
                                              -1,
                                              4,
                                              -2,
                                              5,
                                              8,
                                              7,
                                              -3,
                                              16,
                                              6,
                                              9,
                                              10,
                                              11,
                                              13,
                                              20,
                                              64,
                                              100,
                                              255,
                                              256,
                                              -4,
                                              -100,
                                              1 << 20,
                                              int64_t{1} << 31,
                                              -(int64_t{1} << 31),
                                              int64_t{1} << 32,
                                              int64_t{1} << 40,
                                              int64_t{1} << 62,
                                              std::numeric_limits<int64_t>::max(),
                                              std::numeric_limits<int64_t>::min()};
constexpr std::array<float, 16> kFloats = {1,
                                           0,
                                           0.5F,
                                           -1,
                                           2,
                                           1e-5F,
                                           3,
                                           -0.0F,
                                           100,
                                           1e30F,
                                           -1e30F,
                                           std::numeric_limits<float>::infinity(),
                                           -std::numeric_limits<float>::infinity(),
                                           std::numeric_limits<float>::quiet_NaN(),
                                           1e-40F,
                                           0.25F};
constexpr std::array<const char*, 44> kTexts = {"NOTSET",
                                                "SAME_UPPER",
                                                "SAME_LOWER",
                                                "VALID",
                                                "constant",
                                                "reflect",
                                                "edge",
                                                "wrap",
                                                "nearest",
                                                "linear",
                                                "cubic",
                                                "half_pixel",
                                                "asymmetric",
                                                "align_corners",
                                                "pytorch_half_pixel",
                                                "tf_crop_and_resize",
                                                "floor",
                                                "ceil",
                                                "round_prefer_floor",
                                                "forward",
                                                "reverse",
                                                "bidirectional",
                                                "Relu",
                                                "Tanh",
                                                "Sigmoid",
                                                "none",
                                                "mean",
                                                "sum",
                                                "add",
                                                "mul",
                                                "max",
                                                "min",
                                                "DCR",
                                                "CRD",
                                                "avg",
                                                "output_half_pixel",
                                                "tanh",
                                                "ij,jk->ik",
                                                "bhwc,bhkc->bhwk",
                                                "...i->i",
                                                "i,i",
                                                "LINEAR",
                                                "SOFTMAX",
                                                "[a-z]+"};
// Types as TensorProto has them, and bytes of an element.
struct Type {
  int onnx;
  size_t bytes;
};
constexpr std::array<Type, 18> kTypes = {{{1, 4},
                                          {7, 8},
                                          {6, 4},
                                          {9, 1},
                                          {2, 1},
                                          {3, 1},
                                          {11, 8},
                                          {10, 2},
                                          {8, 0},
                                          {4, 2},
                                          {5, 2},
                                          {12, 4},
                                          {13, 8},
                                          {16, 2},
                                          {17, 1},
                                          {19, 1},
                                          {14, 8},
                                          {21, 1}}};

struct Drawn {
  std::string name;
  int type;
};

class Drawing {
public:
  explicit Drawing(Bytes bytes) : decide_(bytes) {}
  std::string model();

private:
  onnx::GraphParts graph(int depth, const std::vector<Drawn>& outer);
  void add_node(onnx::GraphParts& parts, std::vector<Drawn>& known, int depth);
  std::string input(onnx::GraphParts& parts, std::vector<Drawn>& known, int type,
                    bool number_list);
  std::string attribute(const NodeImport::AttributeRow& row,
                        const std::vector<Drawn>& known, int depth);
  std::string tensor(const std::string& name, int type, bool number_list);
  std::vector<int64_t> numbers(size_t most);
  std::vector<int64_t> dims();
  int type_among(uint32_t allowed);
  std::string fresh() { return "v" + std::to_string(names_++); }

  Decisions decide_;
  int64_t opset_ = 0;
  int names_ = 0, nodes_ = 0;
  std::string domains_;
};

std::vector<int64_t> Drawing::numbers(size_t most) {
  std::vector<int64_t> out(decide_.below(most + 1));
  for (int64_t& number : out) number = decide_.one_of(kNumbers);
  return out;
}

std::vector<int64_t> Drawing::dims() {
  constexpr std::array<int64_t, 16> kDims = {2, 3, 4, 1, 2, 5, 1, 8,
                                             3, 7, 6, 1, 4, 0, 9, 16};
  std::vector<int64_t> out(decide_.below(6));
  for (int64_t& dim : out) dim = kDims[decide_.below(kDims.size())];
  return out;
}

int Drawing::type_among(uint32_t allowed) {
  std::vector<int> types;
  for (const Type& type : kTypes)
    if ((allowed >> type.onnx & 1) != 0) types.push_back(type.onnx);
  return types.empty() ? 1 : types[decide_.below(types.size())];
}

size_t bytes_of(int type) {
  for (const Type& row : kTypes)
    if (row.onnx == type) return row.bytes;
  return 4;
}

// Values are small whole numbers of the type, or any bytes.
std::string Drawing::tensor(const std::string& name, int type, bool number_list) {
  std::vector<int64_t> shape;
  std::string fields;
  if (number_list) {
    const std::vector<int64_t> list = numbers(6);
    shape = {static_cast<int64_t>(list.size())};
    if (decide_.chance(32)) shape.clear();
    fields = type == 7 ? onnx::data(9, onnx::raw(list)) : "";
    if (type == 6) {
      std::vector<int32_t> narrow;
      for (int64_t number : list) narrow.push_back(static_cast<int32_t>(number));
      fields = onnx::data(9, onnx::raw(narrow));
    }
    if (!fields.empty()) return onnx::tensor(name, type, shape, fields);
  }
  shape = dims();
  size_t count = 1;
  for (int64_t dim : shape)
    count = std::min<size_t>(count * static_cast<size_t>(dim), 4096);
  if (type == 8) {
    for (size_t i = 0; i < count; ++i) fields += onnx::data(6, decide_.one_of(kTexts));
    return onnx::tensor(name, type, shape, fields);
  }
  const size_t bytes = bytes_of(type);
  std::string raw;
  const bool any = decide_.chance(64);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = any ? decide_.word() : i % 4;
    if (!any && type == 1) bits = std::bit_cast<uint32_t>(static_cast<float>(i % 7) - 2);
    if (!any && type == 11)
      bits = std::bit_cast<uint64_t>(static_cast<double>(i % 7) - 2);
    if (type == 9) bits &= 1;
    for (size_t k = 0; k < bytes; ++k) raw += static_cast<char>(bits >> 8 * k);
  }
  if (type == 21) raw.resize((count + 1) / 2);
  return onnx::tensor(name, type, shape, onnx::data(9, raw));
}

// What is known already, a new input of the graph, or a new weight.
std::string Drawing::input(onnx::GraphParts& parts, std::vector<Drawn>& known, int type,
                           bool number_list) {
  const size_t how = decide_.below(8);
  std::vector<const Drawn*> fitting;
  for (const Drawn& drawn : known)
    if (drawn.type == type || decide_.chance(4)) fitting.push_back(&drawn);
  if (!number_list && how < 5 && !fitting.empty())
    return fitting[fitting.size() - 1 - decide_.below(fitting.size())]->name;
  const std::string name = fresh();
  if (how == 5 || how == 6 || number_list) {
    parts.initializers.push_back(tensor(name, type, number_list));
  } else {
    std::vector<onnx::Dim> list;
    for (int64_t dim : dims()) list.emplace_back(dim);
    parts.inputs.push_back(onnx::value(name, list, type));
  }
  known.push_back({name, type});
  return name;
}

std::string Drawing::attribute(const NodeImport::AttributeRow& row,
                               const std::vector<Drawn>& known, int depth) {
  const std::string name(row.name);
  AttributeType type = row.type;
  if (decide_.chance(3)) type = static_cast<AttributeType>(1 + decide_.below(14));
  switch (type) {
  case AttributeType::Float:
    return onnx::attribute(name, decide_.one_of(kFloats));
  case AttributeType::Int:
    return onnx::attribute(name, decide_.one_of(kNumbers));
  case AttributeType::String:
    return onnx::text_attribute(name, row.fallback.empty() || decide_.chance(128)
                                          ? decide_.one_of(kTexts)
                                          : std::string(row.fallback));
  case AttributeType::Ints:
    return onnx::ints_attribute(name, numbers(8));
  case AttributeType::Floats: {
    std::vector<float> list(decide_.below(8));
    for (float& number : list) number = decide_.one_of(kFloats);
    return onnx::data(1, name) + onnx::data(7, onnx::raw(list)) + onnx::number(20, 6);
  }
  case AttributeType::Strings: {
    std::string list;
    for (size_t count = decide_.below(5); count > 0; --count)
      list += onnx::data(9, decide_.one_of(kTexts));
    return onnx::data(1, name) + list + onnx::number(20, 8);
  }
  case AttributeType::Tensor: {
    const int element = decide_.one_of(kTypes).onnx;
    return onnx::data(1, name) + onnx::data(5, tensor("", element, false)) +
           onnx::number(20, 4);
  }
  case AttributeType::Graph:
    if (depth >= kMostDepth) return "";
    return onnx::graph_attribute(name, onnx::graph(graph(depth + 1, known)));
  default:
    return onnx::data(1, name) + onnx::number(20, static_cast<int64_t>(type));
  }
}

void Drawing::add_node(onnx::GraphParts& parts, std::vector<Drawn>& known, int depth) {
  const std::vector<OnnxOp>& rows = onnx_ops();
  const OnnxOp& row = rows[decide_.below(rows.size())];
  const int64_t version = row.domain.empty() ? opset_ : 1;
  const OnnxForm* form = find_onnx_form(row.domain, row.name, version);
  const Signature* signature = find_signature(row.domain, row.name, version);
  std::vector<std::string> inputs, outputs, attributes;
  std::vector<std::pair<int, int>> variables; // and the type that each became
  const auto type_of = [&](const FormalList& list, size_t i) {
    if (signature == nullptr || list.count == 0) return type_among(~0U);
    const FormalValue formal = formal_value(list, static_cast<int64_t>(i));
    for (const auto& [variable, type] : variables)
      if (variable == formal.variable && variable != kOwnVariable && !decide_.chance(4))
        return type;
    const int type = type_among(formal.types);
    variables.emplace_back(formal.variable, type);
    return type;
  };
  size_t count = 1 + decide_.below(3), results = 1;
  if (signature != nullptr) {
    const int64_t most = std::min<int64_t>(signature->most_inputs, 8);
    const int64_t least = std::min(signature->least_inputs, most);
    count =
        static_cast<size_t>(least) + decide_.below(static_cast<size_t>(most - least + 1));
    if (decide_.chance(4)) count += 1;
    results =
        1 + (decide_.chance(96) ? decide_.below(static_cast<size_t>(
                                      std::min<int64_t>(signature->most_outputs, 5)))
                                : 0);
  }
  for (size_t i = 0; i < count; ++i) {
    const int type = type_of(signature ? signature->inputs : FormalList{}, i);
    // Shapes, axes and pads are mostly lists of int64 that come behind the first input.
    const bool list = (type == 7 || type == 6) && i > 0 && !decide_.chance(64);
    inputs.push_back(i > 0 && decide_.chance(12) ? "" : input(parts, known, type, list));
  }
  for (size_t i = 0; i < results; ++i) outputs.push_back(fresh());
  if (form != nullptr)
    for (const auto& attribute_row : form->attributes)
      if (decide_.chance(attribute_row.fallback.empty() ? 128 : 80)) {
        std::string text = attribute(attribute_row, known, depth);
        if (!text.empty()) attributes.push_back(std::move(text));
      }
  // What the driver imports has no row of attributes.
  if (row.by_driver && signature != nullptr)
    for (const FormalAttribute& formal : formal_attributes(*signature))
      if (formal.required || decide_.chance(96)) {
        std::string text = attribute(
            {formal.name, static_cast<AttributeType>(formal.type), ""}, known, depth);
        if (!text.empty()) attributes.push_back(std::move(text));
      }
  for (size_t i = 0; i < results; ++i)
    known.push_back(
        {outputs[i], type_of(signature ? signature->outputs : FormalList{}, i)});
  parts.nodes.push_back(onnx::node(std::string(row.name), inputs, outputs, attributes,
                                   std::string(row.domain), outputs[0]));
  if (!row.domain.empty() && domains_.find(row.domain) == std::string::npos)
    domains_ += onnx::opset(std::string(row.domain), 1);
}

onnx::GraphParts Drawing::graph(int depth, const std::vector<Drawn>& outer) {
  onnx::GraphParts parts;
  std::vector<Drawn> known = outer;
  // A body's inputs are the iteration and the condition, or what a scan hands in.
  if (depth > 0)
    for (size_t count = decide_.below(4); count > 0; --count) {
      const std::string name = fresh();
      const int type = decide_.one_of(kTypes).onnx;
      parts.inputs.push_back(onnx::value(name, {}, type));
      known.push_back({name, type});
    }
  const size_t nodes = 1 + decide_.below(depth == 0 ? kMostNodes : 3);
  for (size_t i = 0; i < nodes && nodes_ < 2 * kMostNodes; ++i, ++nodes_)
    add_node(parts, known, depth);
  const size_t results = 1 + decide_.below(3);
  for (size_t i = 0; i < results && i < known.size(); ++i)
    parts.outputs.push_back(
        onnx::data(1, known[known.size() - 1 - i].name) +
        (depth == 0
             ? onnx::data(
                   2, onnx::data(1, onnx::number(1, known[known.size() - 1 - i].type)))
             : ""));
  return parts;
}

std::string Drawing::model() {
  constexpr std::array<int64_t, 16> kOpsets = {21, 13, 17, 11, 9,  7,  18, 22,
                                               24, 6,  1,  10, 14, 15, 26, kNewestOpset};
  opset_ = kOpsets[decide_.below(kOpsets.size())];
  const onnx::GraphParts parts = graph(0, {});
  return onnx::model(parts, opset_, domains_);
}

} // namespace

std::string draw_model(Bytes bytes) { return Drawing(bytes).model(); }

} // namespace svod::fuzz
