// String operators of ai.onnx.contrib, the extensions that tokenizers of exporters are
// made of. Their maps are lines of a text attribute, `key TAB value`.
#include "importer/text/string_case.h"
#include "importer/text/string_split.h"

#include <algorithm>
#include <charconv>
#include <map>

namespace svod::importer {
namespace {

struct Entry {
  std::string key, value;
};

// Of equal keys the last line counts.
std::vector<Entry> map_lines(NodeImport& node) {
  require(node, node.has("map"), "attribute 'map' is missing");
  std::map<std::string, std::string> entries;
  for (const std::string& line : split_text(node.get_string("map"), "\n", 1 << 30)) {
    if (line.empty()) continue;
    const std::vector<std::string> parts = split_text(line, "\t", 1 << 30);
    require(node, parts.size() == 2, "a line of 'map' is not a key, a tab and a value");
    entries.insert_or_assign(parts[0], parts[1]);
  }
  require(node, !entries.empty(), "'map' has no entries");
  std::vector<Entry> out;
  for (const auto& [key, value] : entries) out.push_back({key, value});
  return out;
}

std::vector<int64_t> numbers_in(NodeImport& node, const std::string& text) {
  std::vector<int64_t> out;
  for (const std::string& word : split_text(text, "", 1 << 30)) {
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size())
      node.invalid("'" + word + "' in 'map' is no integer");
    out.push_back(value);
  }
  require(node, !out.empty(), "a vector without numbers");
  return out;
}

std::vector<std::string> keys_of(const std::vector<Entry>& entries) {
  std::vector<std::string> keys;
  for (const Entry& entry : entries) keys.push_back(entry.key);
  return keys;
}

} // namespace

namespace {

void map_rows(NodeImport& node, Expr (*map)(Expr)) {
  const Expr x = text_operand(node, 0);
  if (element_count(x.shape()) == 0) return give(node, 0, x);
  give(node, 0, strings_from(node, map(rows_of(node, x)), x.shape()));
}

} // namespace

// Of ASCII only, as the extension does it.
void import_contrib_upper(NodeImport& node) {
  map_rows(node, [](Expr rows) {
    const Expr small =
        both(less_equal(like(rows, 'a'), rows), less_equal(rows, like(rows, 'z')));
    return select(small, rows - like(rows, 'a' - 'A'), rows);
  });
}

// Of all alphabets; the extension knows Latin and Cyrillic letters.
void import_contrib_lower(NodeImport& node) {
  map_rows(node, [](Expr rows) { return rows_in_case(rows, LetterCase::Lower); });
}

void import_contrib_equal(NodeImport& node) {
  give(node, 0, same_strings(node, text_operand(node, 0), text_operand(node, 1)));
}

// In characters: bytes that do not go on with one.
void import_contrib_length(NodeImport& node) {
  const Expr x = text_operand(node, 0);
  if (element_count(x.shape()) == 0)
    return give(node, 0, with(x, constant(node.g, DType::I64, x.shape(), 0)));
  const Expr lengths = sum(convert(begins_character(rows_of(node, x)), DType::I64), {1});
  give(node, 0, reshape(lengths, x.shape()));
}

// The strings along an axis become one, a separator between them.
void import_contrib_join(NodeImport& node) {
  Expr x = text_operand(node, 0);
  if (x.rank() == 0) return give(node, 0, unsqueeze(x, 0));
  require(node, element_count(node.shape(1)) == 1, "the separator must be one string");
  const auto separator = node.strings->known(node.g, text_operand(node, 1).id);
  if (!separator) node.needs_value(1, "a separator that is not known when packing");
  const int64_t axis = known_int(node, 2);
  require(node, axis >= 0 && axis < x.rank(), "the axis is outside the input's rank");
  Shape shape = x.shape();
  const int64_t count = shape[static_cast<size_t>(axis)];
  shape.erase(shape.begin() + axis);
  if (shape.empty()) shape = {1};
  const int64_t n = element_count(shape);
  if (count == 0 || n == 0)
    return give(
        node, 0,
        constant_strings(node, std::vector<std::string>(static_cast<size_t>(n)), shape));
  const Expr row = constant_rows(node, *separator);
  const Expr between = broadcast(row, {n, extent(row, 1)});
  Expr joined = x;
  for (int64_t i = 0; i < count; ++i) {
    const Expr part = rows_of(node, reshape(cut(x, axis, i, 1), {n}));
    joined = i == 0 ? part : join_rows(join_rows(joined, between), part);
  }
  give(node, 0, strings_from(node, joined, shape));
}

// What is no key stays as it is.
void import_contrib_mapping(NodeImport& node) {
  const Expr x = text_operand(node, 0);
  const std::vector<Entry> entries = map_lines(node);
  std::vector<std::string> values;
  for (const Entry& entry : entries) values.push_back(entry.value);
  const auto count = static_cast<int64_t>(entries.size());
  const Expr index = find_strings(node, x, keys_of(entries));
  const Shape shape = x.shape();
  const Expr known = minimum(reshape(index, {element_count(shape)}), double(count - 1));
  const Expr found =
      reshape(gather(constant_strings(node, values, {count}), known, 0), shape);
  give(node, 0, select(less(index, double(count)), found, x));
}

// Strings to vectors of integers.
void import_string_to_vector(NodeImport& node) {
  const Expr x = text_operand(node, 0);
  const std::vector<Entry> entries = map_lines(node);
  std::vector<int64_t> table;
  size_t width = 0;
  const auto add = [&](const std::string& text) {
    const std::vector<int64_t> values = numbers_in(node, text);
    require(node, width == 0 || width == values.size(), "vectors of several lengths");
    width = values.size();
    table.insert(table.end(), values.begin(), values.end());
  };
  for (const Entry& entry : entries) add(entry.value);
  require(node, node.has("unk"), "attribute 'unk' is missing");
  add(node.get_string("unk"));
  const auto columns = static_cast<int64_t>(width);
  const Expr vectors{&node.g,
                     tensor_i64(node.g, {std::ssize(entries) + 1, columns}, table)};
  Shape shape = x.shape();
  const Expr index =
      reshape(find_strings(node, x, keys_of(entries)), {element_count(shape)});
  shape.push_back(columns);
  give(node, 0, reshape(take(vectors, 0, index), shape));
}

// Vectors of integers to strings. Where the vectors of the map have one element, each
// number is one.
void import_vector_to_string(NodeImport& node) {
  const Expr x = convert(operand(node, 0), DType::I64);
  std::vector<std::string> texts{node.get_string("unk")};
  std::map<std::vector<int64_t>, std::string> entries;
  for (const std::string& line : split_text(node.get_string("map"), "\n", 1 << 30)) {
    if (line.empty()) continue;
    const std::vector<std::string> parts = split_text(line, "\t", 1 << 30);
    require(node, parts.size() == 2, "a line of 'map' is not a text, a tab and a vector");
    entries.insert_or_assign(numbers_in(node, parts[1]), parts[0]);
  }
  require(node, !entries.empty(), "'map' has no entries");
  const auto width = static_cast<int64_t>(entries.begin()->first.size());
  std::vector<int64_t> table;
  for (const auto& [vector, text] : entries) {
    require(node, std::ssize(vector) == width, "vectors of several lengths");
    table.insert(table.end(), vector.begin(), vector.end());
    texts.push_back(text);
  }
  Shape shape = x.shape();
  if (width > 1 || (shape.size() > 1 && shape.back() == 1)) {
    require(node, !shape.empty() && shape.back() == width,
            "the input's vectors have another length than the map's");
    shape.pop_back();
  }
  const auto count = static_cast<int64_t>(entries.size()), n = element_count(shape);
  if (n * count * width > int64_t{1} << 24) node.unsupported("a map of this size");
  const Expr keys{&node.g, tensor_i64(node.g, {1, count, width}, table)};
  const Expr same = equal(reshape(x, {n, 1, width}), keys);
  const Expr hit = reduce(Op::ReduceMin, convert(same, DType::U8), {2});
  const Expr number = count_along(node.g, DType::I64, count, 1, 2) + 1.0;
  const Expr place = sum(convert(reshape(hit, {n, count}), DType::I64) * number, {1});
  const Expr found =
      gather(constant_strings(node, texts, {count + 1}), reshape(place, {n}), 0);
  give(node, 0, reshape(found, shape));
}

} // namespace svod::importer
