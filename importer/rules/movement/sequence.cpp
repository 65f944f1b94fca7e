// Sequences and optionals. Their lengths are known when packing, so an operator only
// moves ids in a list: no element is copied. A position that is data of the run stacks
// the elements, which must have one type then, and picks rows of the stack, checked when
// the program runs.
#include "importer/formula/complex.h"

namespace svod::importer {
namespace {

using Kind = Compound::Kind;

// "x" -> the element type of a value, 0 when it is no tensor.
int type_of(const NodeImport& node, NodeId value) {
  return is_compound(value) ? 0 : info(node.g[value].dtype).onnx;
}

const Compound& sequence(const NodeImport& node, size_t i) {
  const Compound* value = node.compound(i);
  if (!value || (value->kind != Kind::Sequence && value->kind != Kind::Maps))
    node.invalid("input " + std::to_string(i) + " must be a sequence");
  if (value->kind == Kind::Maps) node.unsupported("a sequence of maps is only an output");
  return *value;
}

void give_sequence(NodeImport& node, std::vector<NodeId> items, int onnx_type) {
  node.output(0, Compound{Kind::Sequence, std::move(items), onnx_type});
}

// A position in a sequence that may be data of the run. It is one number.
Expr position(NodeImport& node, size_t i) {
  const Expr at = operand(node, i);
  require(node, is_integer(at.dtype()) && element_count(at.shape()) == 1,
          "the position must be one integer");
  return reshape(convert(at, DType::I64), {1});
}

// The position as one of [0, count), when it is known.
std::optional<int64_t> known_position(NodeImport& node, Expr at, int64_t count) {
  const auto values = known_ints(node.g, at.id);
  if (!values) return std::nullopt;
  const int64_t value = values->front();
  if (value < -count || value >= count)
    node.invalid("position " + std::to_string(value) + " is outside a sequence of " +
                 std::to_string(count) + " elements");
  return value < 0 ? value + count : value;
}

// The elements along a new first axis, for the position `at` that is data of the run.
Expr stacked(NodeImport& node, const std::vector<NodeId>& items, Expr at) {
  std::vector<Expr> rows;
  for (NodeId item : items) {
    if (is_compound(item) || node.g[item].dtype != node.g[items[0]].dtype ||
        node.g[item].shape != node.g[items[0]].shape)
      node.needs_value_of(at.id,
                          "the position in the sequence is only known at run time, and "
                          "its elements differ in shape; make the position a constant");
    rows.push_back(unsqueeze(Expr{&node.g, item}, 0));
  }
  return join(rows, 0);
}

// Row `at` of the stack; `at` holds one number.
NodeId row(Expr stack, Expr at) { return squeeze(take(stack, 0, at), 0).id; }

Expr int_like(Expr at, int64_t value) { return like(at, static_cast<double>(value)); }

// `at` counted from the front; `outside` where it is not within [-count, count).
Expr checked(Expr at, int64_t count, int64_t outside) {
  const Expr front = select(less(at, 0), at + static_cast<double>(count), at);
  const Expr wrong = either(less(front, 0), less(static_cast<double>(count) - 1, front));
  return select(wrong, int_like(at, outside), front);
}

} // namespace

void import_sequence_empty(NodeImport& node) {
  give_sequence(node, {}, static_cast<int>(node.get_int("dtype")));
}

void import_sequence_construct(NodeImport& node) {
  std::vector<NodeId> items;
  for (size_t i = 0; i < node.input_count(); ++i) items.push_back(node.input(i));
  require(node, !items.empty(), "it needs at least one input");
  give_sequence(node, items, type_of(node, items[0]));
}

void import_sequence_length(NodeImport& node) {
  const Compound* maps = node.compound(0);
  const int64_t length = maps && maps->kind == Kind::Maps
                             ? node.g[maps->items[0]].shape[0]
                             : static_cast<int64_t>(sequence(node, 0).items.size());
  node.output(0, constant_int(node.g, DType::I64, {}, length));
}

void import_sequence_at(NodeImport& node) {
  const std::vector<NodeId>& items = sequence(node, 0).items;
  const auto count = static_cast<int64_t>(items.size());
  const Expr at = position(node, 1);
  if (const auto known = known_position(node, at, count))
    return node.output(0, items[static_cast<size_t>(*known)]);
  require(node, count > 0, "the sequence is empty");
  node.output(0, row(stacked(node, items, at), checked(at, count, count)));
}

void import_sequence_insert(NodeImport& node) {
  const Compound& from = sequence(node, 0);
  std::vector<NodeId> items = from.items;
  const NodeId added = node.input(1);
  const int type = type_of(node, added);
  require(node, items.empty() || type == type_of(node, items[0]),
          "the element is not of the sequence's type");
  const auto count = static_cast<int64_t>(items.size());
  if (!node.has_input(2)) {
    items.push_back(added);
    return give_sequence(node, items, type);
  }
  // Between the elements and at both ends: one position more than there are elements.
  const Expr at = position(node, 2);
  if (const auto values = known_ints(node.g, at.id)) {
    const int64_t value = values->front();
    if (value < -count || value > count)
      node.invalid("position " + std::to_string(value) + " is outside a sequence of " +
                   std::to_string(count) + " elements");
    items.insert(items.begin() + (value < 0 ? value + count : value), added);
    return give_sequence(node, items, type);
  }
  items.push_back(added);
  const Expr stack = stacked(node, items, at);
  const Expr front = select(less(at, 0), at + static_cast<double>(count), at);
  const Expr wrong = either(less(front, 0), less(static_cast<double>(count), front));
  for (int64_t i = 0; i <= count; ++i) {
    const Expr here = int_like(at, i);
    const Expr source = select(less(here, front), here,
                               select(equal(here, front), int_like(at, count), here - 1));
    items[static_cast<size_t>(i)] =
        row(stack, select(wrong, int_like(at, count + 1), source));
  }
  give_sequence(node, items, type);
}

void import_sequence_erase(NodeImport& node) {
  const Compound& from = sequence(node, 0);
  std::vector<NodeId> items = from.items;
  const auto count = static_cast<int64_t>(items.size());
  require(node, count > 0, "the sequence is empty");
  const Expr last{&node.g, constant_int(node.g, DType::I64, {1}, count - 1)};
  const Expr at = node.has_input(1) ? position(node, 1) : last;
  if (const auto known = known_position(node, at, count)) {
    items.erase(items.begin() + *known);
    return give_sequence(node, items, from.onnx_type);
  }
  const Expr stack = stacked(node, items, at);
  const Expr gone = checked(at, count, count);
  const Expr wrong = equal(gone, static_cast<double>(count));
  items.pop_back();
  for (int64_t i = 0; i + 1 < count; ++i) {
    const Expr here = int_like(at, i);
    const Expr source = select(less(here, gone), here, here + 1);
    items[static_cast<size_t>(i)] =
        row(stack, select(wrong, int_like(at, count), source));
  }
  give_sequence(node, items, from.onnx_type);
}

void import_split_to_sequence(NodeImport& node) {
  const Expr x = operand(node, 0);
  const int64_t axis = node.axis(node.get_int("axis"), x.rank());
  const int64_t whole = extent(x, axis);
  std::vector<int64_t> sizes;
  bool keep = true;
  if (!node.has_input(1)) {
    keep = node.get_int("keepdims") != 0;
    if (whole > kMostElements) node.unsupported("the sequence is too long");
    sizes.assign(static_cast<size_t>(whole), 1);
  } else if (node.rank(1) == 0) {
    const int64_t size = node.known_ints(1).at(0);
    require(node, size > 0, "the size of the parts must be positive");
    if (whole / size >= kMostElements) node.unsupported("the sequence is too long");
    for (int64_t at = 0; at < whole; at += size)
      sizes.push_back(std::min(size, whole - at));
  } else {
    sizes = node.known_ints(1);
    if (static_cast<int64_t>(sizes.size()) > kMostElements)
      node.unsupported("the sequence is too long");
  }
  std::vector<NodeId> items;
  int64_t at = 0;
  for (int64_t size : sizes) {
    require(node, size >= 0 && size <= whole - at, "the parts do not fit the axis");
    const Expr part = cut(x, axis, at, size);
    items.push_back((keep ? part : squeeze(part, axis)).id);
    at += size;
  }
  require(node, at == whole, "the parts do not fill the axis");
  give_sequence(node, items, type_of(node, x.id));
}

void import_concat_from_sequence(NodeImport& node) {
  const std::vector<NodeId>& items = sequence(node, 0).items;
  require(node, !items.empty(), "the sequence is empty");
  const bool fresh = node.get_int("new_axis") != 0;
  std::vector<Expr> parts;
  for (NodeId item : items) parts.push_back({&node.g, item});
  const int64_t rank = parts[0].rank() + (fresh ? 1 : 0);
  const int64_t axis = node.axis(node.get_int("axis"), rank);
  for (Expr& part : parts) {
    require(node, part.dtype() == parts[0].dtype(), "the elements differ in type");
    if (fresh) part = unsqueeze(part, axis);
    Shape shape = part.shape();
    require(node, part.rank() == rank, "the elements differ in rank");
    shape[static_cast<size_t>(axis)] = extent(parts[0], axis);
    require(node, shape == parts[0].shape(), "the elements' shapes do not go together");
  }
  give(node, 0, join(parts, axis));
}

// The body once per element; what is no sequence goes to every element as it is.
void import_sequence_map(NodeImport& node) {
  const size_t length = sequence(node, 0).items.size();
  std::vector<NodeId> inputs;
  for (size_t i = 0; i < node.input_count(); ++i) {
    inputs.push_back(node.value(i));
    const bool same = is_compound(inside(*node.compounds, inputs[i]));
    require(node, !same || sequence(node, i).items.size() == length,
            "its sequences differ in length");
  }
  std::vector<Compound> made(node.output_count());
  for (size_t e = 0; e < length; ++e) {
    std::vector<NodeId> arguments = inputs;
    for (NodeId& id : arguments)
      if (is_compound(inside(*node.compounds, id))) id = (*node.compounds)[id].items[e];
    const std::vector<NodeId> results = node.run_graph("body", arguments);
    require(node, results.size() >= made.size(), "its body has too few outputs");
    for (size_t k = 0; k < made.size(); ++k) {
      require(node, !is_compound(inside(*node.compounds, results[k])),
              "its body gives no tensor");
      made[k].items.push_back(results[k]);
      made[k].onnx_type = type_of(node, results[k]);
    }
  }
  for (size_t k = 0; k < made.size(); ++k) node.output(k, std::move(made[k]));
}

void import_optional(NodeImport& node) {
  Compound out{Kind::Optional};
  if (node.has_input(0)) {
    out.items = {node.value(0)};
    out.onnx_type = type_of(node, node.value(0));
  } else {
    require(node, node.has("type"), "it has neither an input nor a type");
  }
  node.output(0, std::move(out));
}

void import_optional_has_element(NodeImport& node) {
  bool there = node.has_input(0);
  const Compound* value = there ? node.compound(0) : nullptr;
  if (value && value->kind == Kind::Optional) {
    there = !value->items.empty();
    if (value->present != kNoNode) return node.output(0, value->present);
  }
  node.output(0, constant_int(node.g, DType::Bool, {}, there ? 1 : 0));
}

// A value that is no optional is its own element.
void import_optional_get_element(NodeImport& node) {
  const Compound* value = node.compound(0);
  if (!value || value->kind != Kind::Optional) return node.output(0, node.value(0));
  if (value->items.empty()) node.invalid("the optional is empty");
  const NodeId item = value->items[0];
  if (value->present == kNoNode) return node.output(0, item);
  node.output(0, node.compounds->guarded(node.g, item, value->present));
}

} // namespace svod::importer
