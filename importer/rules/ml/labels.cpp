// Labels to labels: LabelEncoder and CategoryMapper of ai.onnx.ml. A label's place among
// the keys is found; the values are a table with the default behind the last one, where a
// label that is no key leads.
#include "importer/text/find_numbers.h"
#include "importer/text/strings.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

namespace svod::importer {
namespace {

// Keys of one kind, each once, and the value that each leads to, as a position.
struct Keys {
  std::vector<std::string> texts;
  std::vector<double> floats;
  std::vector<int64_t> ints;
  std::vector<int64_t> values;
};

// Of equal keys the last one counts.
template <class T>
void add_distinct(const std::vector<T>& from, std::vector<T>& to,
                  std::vector<int64_t>& values) {
  std::map<T, size_t> places;
  for (size_t i = 0; i < from.size(); ++i) {
    const auto [at, added] = places.emplace(from[i], to.size());
    if (added) {
      to.push_back(from[i]);
      values.push_back(0);
    }
    values[at->second] = static_cast<int64_t>(i);
  }
}

Expr tensor_f64(Graph& g, const std::vector<double>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(double));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  const Shape all{static_cast<int64_t>(values.size())};
  return {&g, weight(g, DType::F64, all, g.add_blob(std::move(bytes)))};
}

// Positions of values, `none` for what is no key.
Found find_numbers(NodeImport& node, Expr x, const Keys& keys, int64_t none) {
  if (!is_float(x.dtype())) return find_whole(x, keys.ints, keys.values, none);
  int64_t not_a_number = none;
  std::vector<double> floats;
  std::vector<int64_t> values, table;
  for (size_t i = 0; i < keys.floats.size(); ++i)
    if (std::isnan(keys.floats[i])) {
      not_a_number = keys.values[i];
    } else {
      floats.push_back(keys.floats[i]);
      values.push_back(keys.values[i]);
    }
  std::vector<double> sorted;
  for (size_t i : ascending(floats)) {
    sorted.push_back(floats[i]);
    table.push_back(values[i]);
  }
  table.push_back(none);
  const Expr zero = with(x, constant_int(node.g, DType::I64, x.shape(), 0));
  if (sorted.empty()) return {std::move(table), zero};
  Expr place = find_sorted(x, convert(tensor_f64(node.g, sorted), x.dtype()));
  if (not_a_number != none) {
    place = select(apply(Op::IsNan, x), like(place, static_cast<double>(table.size())),
                   place);
    table.push_back(not_a_number);
  }
  return {std::move(table), place};
}

Found find_keys(NodeImport& node, Expr x, const Keys& keys, int64_t none) {
  if (x.dtype() != DType::String) return find_numbers(node, x, keys, none);
  std::vector<int64_t> table = keys.values;
  table.push_back(none);
  return {std::move(table), find_strings(node, x, keys.texts)};
}

// values[index] with the default at the end.
void give_values(NodeImport& node, Expr values, Expr otherwise, Expr index) {
  give(node, 0, look_up(join({values, reshape(otherwise, {1})}, 0), index));
}

// The same for what labels lead to. Both tables are known: they become one.
void give_found(NodeImport& node, Expr values, Expr otherwise, const Found& found) {
  const Shape all{static_cast<int64_t>(found.table.size())};
  const Expr leads{&node.g, tensor_i64(node.g, all, found.table)};
  const Expr table = join({values, reshape(otherwise, {1})}, 0);
  give(node, 0, look_up(look_up(table, leads), found.place));
}

Expr tensor_of_strings(NodeImport& node, const std::vector<std::string>& texts) {
  return constant_strings(node, texts, {static_cast<int64_t>(texts.size())});
}

Expr tensor_of_ints(NodeImport& node, const std::vector<int64_t>& values) {
  return {&node.g, tensor_i64(node.g, {static_cast<int64_t>(values.size())}, values)};
}

Keys keys_of_tensor(NodeImport& node, DType dtype) {
  const ModelTensor& tensor = node.get_tensor("keys_tensor");
  Keys keys;
  if (dtype == DType::String) {
    add_distinct(tensor.strings, keys.texts, keys.values);
    return keys;
  }
  const NodeId id = node.tensor(tensor);
  require(node, node.g[id].dtype == dtype,
          "keys_tensor is of another type than the input");
  if (is_float(dtype))
    add_distinct(known_floats(node.g, id).value_or(std::vector<double>{}), keys.floats,
                 keys.values);
  else
    add_distinct(known_ints(node.g, id).value_or(std::vector<int64_t>{}), keys.ints,
                 keys.values);
  return keys;
}

Keys read_keys(NodeImport& node, DType dtype) {
  if (node.opset >= 4 && node.has("keys_tensor")) return keys_of_tensor(node, dtype);
  Keys keys;
  if (dtype == DType::String)
    add_distinct(node.get_strings("keys_strings"), keys.texts, keys.values);
  if (dtype == DType::I64)
    add_distinct(node.get_ints("keys_int64s"), keys.ints, keys.values);
  if (dtype == DType::F32) {
    const std::vector<float> floats = node.get_floats("keys_floats");
    add_distinct(std::vector<double>(floats.begin(), floats.end()), keys.floats,
                 keys.values);
  }
  require(node, !keys.values.empty(), "it has no keys of its input's type");
  return keys;
}

struct Values {
  Expr table, otherwise;
};

Values read_values(NodeImport& node) {
  Graph& g = node.g;
  if (node.opset >= 4 && node.has("values_tensor")) {
    const Expr table{&g, node.tensor(node.get_tensor("values_tensor"))};
    const bool given = node.has("default_tensor");
    const Expr otherwise =
        given ? Expr{&g, node.tensor(node.get_tensor("default_tensor"))}
              : (table.dtype() == DType::String
                     ? tensor_of_strings(node, {"_Unused"})
                     : number(g, table.dtype(), is_float(table.dtype()) ? -0.0 : -1));
    require(node,
            otherwise.dtype() == table.dtype() && element_count(otherwise.shape()) == 1,
            "default_tensor must be one element of the values' type");
    return {reshape(table, {element_count(table.shape())}), otherwise};
  }
  if (node.has("values_strings"))
    return {tensor_of_strings(node, node.get_strings("values_strings")),
            tensor_of_strings(node, {node.get_string("default_string")})};
  if (node.has("values_int64s"))
    return {tensor_of_ints(node, node.get_ints("values_int64s")),
            tensor_of_ints(node, {node.get_int("default_int64")})};
  const std::vector<float> floats = node.get_floats("values_floats");
  const Shape all{static_cast<int64_t>(floats.size())};
  return {{&g, tensor_f32(g, all, floats)},
          number(g, DType::F32, node.get_float("default_float"))};
}

} // namespace

void import_label_encoder(NodeImport& node) {
  const Expr x = operand(node, 0);
  const Keys keys = read_keys(node, x.dtype());
  const Values values = read_values(node);
  const int64_t count = extent(values.table, 0);
  for (int64_t at : keys.values)
    require(node, at < count, "there must be one value per key");
  give_found(node, values.table, values.otherwise, find_keys(node, x, keys, count));
}

// Opset 1: between strings and their positions, whichever way the input says.
void import_label_encoder_classes(NodeImport& node) {
  const Expr x = operand(node, 0);
  const std::vector<std::string> classes = node.get_strings("classes_strings");
  const auto count = static_cast<int64_t>(classes.size());
  if (x.dtype() == DType::String) {
    Keys keys;
    add_distinct(classes, keys.texts, keys.values);
    std::vector<int64_t> numbers;
    for (int64_t i = 0; i < count; ++i) numbers.push_back(i);
    return give_found(node, tensor_of_ints(node, numbers),
                      tensor_of_ints(node, {node.get_int("default_int64")}),
                      find_keys(node, x, keys, count));
  }
  const Expr inside =
      both(less_equal(like(x, 0), x), less(x, static_cast<double>(count)));
  give_values(node, tensor_of_strings(node, classes),
              tensor_of_strings(node, {node.get_string("default_string")}),
              select(inside, x, like(x, static_cast<double>(count))));
}

void import_category_mapper(NodeImport& node) {
  const Expr x = operand(node, 0);
  const std::vector<std::string> texts = node.get_strings("cats_strings");
  const std::vector<int64_t> numbers = node.get_ints("cats_int64s");
  require(node, texts.size() == numbers.size() && !texts.empty(),
          "cats_strings and cats_int64s must have one entry per category");
  const auto count = static_cast<int64_t>(texts.size());
  Keys keys;
  if (x.dtype() == DType::String) {
    add_distinct(texts, keys.texts, keys.values);
    return give_found(node, tensor_of_ints(node, numbers),
                      tensor_of_ints(node, {node.get_int("default_int64")}),
                      find_keys(node, x, keys, count));
  }
  add_distinct(numbers, keys.ints, keys.values);
  give_found(node, tensor_of_strings(node, texts),
             tensor_of_strings(node, {node.get_string("default_string")}),
             find_keys(node, x, keys, count));
}

} // namespace svod::importer
