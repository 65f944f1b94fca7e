// ai.onnx.ml on maps. The keys are known when packing, so a map is a vector of values,
// and looking keys up is done here, once: what runs is a choice of columns.
#include "importer/formula/movement.h"

#include <algorithm>
#include <numeric>

namespace svod::importer {
namespace {

using Kind = Compound::Kind;

// The attribute that is given of a pair of which the operator wants exactly one.
MapKeys one_of(const NodeImport& node, std::string_view ints, std::string_view strings) {
  MapKeys keys{node.get_ints(ints), node.get_strings(strings)};
  require(node, keys.numbers.empty() != keys.texts.empty(),
          "it needs either integers or strings as keys");
  return keys;
}

const Compound& map_input(const NodeImport& node) {
  const Compound* map = node.compound(0);
  if (!map || map->kind != Kind::Map) node.invalid("input 0 must be a map");
  return *map;
}

// Where the map holds key `i` of `wanted`; the number of its keys where it does not.
int64_t place_of(const MapKeys& keys, const MapKeys& wanted, size_t i) {
  const auto find = [](const auto& in, const auto& key) {
    return std::ranges::find(in, key) - in.begin();
  };
  return wanted.texts.empty() ? find(keys.numbers, wanted.numbers[i])
                              : find(keys.texts, wanted.texts[i]);
}

// The values with one more at the end, for keys that are missing.
Expr with_default(Expr values, double value) {
  return join({values, {values.g, constant(*values.g, values.dtype(), {1}, value)}}, 0);
}

Expr one_row(Expr values) { return unsqueeze(values, 0); }

DType cast_type(const NodeImport& node) {
  const std::string to = node.get_string("cast_to");
  if (to == "TO_FLOAT") return DType::F32;
  if (to == "TO_INT64") return DType::I64;
  if (to == "TO_STRING") node.unsupported("cast_to TO_STRING");
  node.invalid("cast_to '" + to + "' is not one of TO_FLOAT, TO_INT64, TO_STRING");
}

} // namespace

void import_zip_map(NodeImport& node) {
  Expr x = operand(node, 0);
  if (x.rank() == 1) x = unsqueeze(x, 0);
  require(node, x.rank() == 2, "the input must be a matrix");
  MapKeys keys = one_of(node, "classlabels_int64s", "classlabels_strings");
  require(node, static_cast<int64_t>(keys.size()) == extent(x, 1),
          "there must be one label per column");
  node.output(0, Compound{Kind::Maps, {x.id}, 0, kNoNode, std::move(keys)});
}

void import_dict_vectorizer(NodeImport& node) {
  const Compound& map = map_input(node);
  const MapKeys wanted = one_of(node, "int64_vocabulary", "string_vocabulary");
  require(node, wanted.texts.empty() == map.keys.texts.empty(),
          "the vocabulary is not of the type of the map's keys");
  std::vector<int64_t> places;
  for (size_t i = 0; i < wanted.size(); ++i)
    places.push_back(place_of(map.keys, wanted, i));
  const Expr values{&node.g, map.items[0]};
  give(node, 0, one_row(take(with_default(values, 0), 0, places)));
}

// Dense: the values in the order of their keys. Sparse: the keys are the positions of the
// values in a row of `max_map` zeros.
void import_cast_map(NodeImport& node) {
  const Compound& map = map_input(node);
  require(node, map.keys.texts.empty(), "the map's keys must be integers");
  const std::string form = node.get_string("map_form");
  const std::vector<int64_t>& keys = map.keys.numbers;
  Expr values = convert({&node.g, map.items[0]}, cast_type(node));
  std::vector<int64_t> places;
  if (form == "SPARSE") {
    const int64_t size = node.get_int("max_map");
    require(node, size > 0, "max_map must be positive");
    if (size > kMostElements) node.unsupported("max_map is over the limit");
    places.assign(static_cast<size_t>(size), static_cast<int64_t>(keys.size()));
    for (size_t i = 0; i < keys.size(); ++i) {
      require(node, keys[i] >= 0 && keys[i] < size, "a key of the map is over max_map");
      places[static_cast<size_t>(keys[i])] = static_cast<int64_t>(i);
    }
    values = with_default(values, 0);
  } else {
    require(node, form == "DENSE", "map_form must be DENSE or SPARSE");
    places.resize(keys.size());
    std::iota(places.begin(), places.end(), 0);
    std::ranges::sort(places, {},
                      [&](int64_t i) { return keys[static_cast<size_t>(i)]; });
  }
  give(node, 0, one_row(take(values, 0, places)));
}

} // namespace svod::importer
