// Finding a string among many keys must not compare it with each: a hash of 64 bits of
// the row, the keys sorted by theirs, a search by halves without branches, then one
// comparison of bytes with the key that was found. The hash is a sum of bytes times odd
// constants, chosen anew until the keys' hashes differ.
#include "importer/text/strings.h"

#include "compiler/support/splitmix.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

namespace svod::importer {

namespace {

uint64_t factor(uint64_t seed, uint64_t column) {
  return mix_splitmix((seed << 32 | column) + kSplitmixStep) | 1;
}

uint64_t hash_of(const std::string& text, uint64_t seed) {
  uint64_t sum = 0;
  for (size_t i = 0; i < text.size(); ++i)
    sum += static_cast<uint8_t>(text[i]) * factor(seed, i);
  return sum;
}

Expr tensor_u64(Graph& g, const std::vector<uint64_t>& values) {
  std::vector<int64_t> same(values.begin(), values.end());
  const auto count = static_cast<int64_t>(same.size());
  return {&g, bitcast(g, tensor_i64(g, {count}, same), DType::U64)};
}

Expr hash_rows(Expr rows, uint64_t seed) {
  std::vector<uint64_t> factors;
  for (int64_t i = 0; i < extent(rows, 1); ++i)
    factors.push_back(factor(seed, static_cast<uint64_t>(i)));
  return squeeze(sum(convert(rows, DType::U64) * tensor_u64(*rows.g, factors), {1}), 1);
}

Expr equal_rows(Expr a, Expr b) {
  const int64_t width = std::max(extent(a, 1), extent(b, 1));
  const Expr same = equal(widen_rows(a, width), widen_rows(b, width));
  return equal(squeeze(reduce(Op::ReduceMin, convert(same, DType::U8), {1}), 1), 1);
}

// Numbers of keys with distinct hashes, in the order of these.
std::vector<int64_t> sort_by_hash(const std::vector<std::string>& keys, uint64_t& seed,
                                  std::vector<uint64_t>& hashes) {
  for (seed = 0;; ++seed) {
    std::map<uint64_t, int64_t> places;
    for (size_t i = 0; i < keys.size(); ++i)
      places.emplace(hash_of(keys[i], seed), static_cast<int64_t>(i));
    if (places.size() != keys.size()) continue;
    std::vector<int64_t> order;
    for (const auto& [hash, i] : places) {
      hashes.push_back(hash);
      order.push_back(i);
    }
    return order;
  }
}

} // namespace

Expr text_operand(NodeImport& node, size_t i) {
  const Expr x = operand(node, i);
  require(node, x.dtype() == DType::String, "the input must hold strings");
  return x;
}

Expr rows_of(const NodeImport& node, Expr strings) {
  SVOD_CHECK(strings.dtype() == DType::String) << "rows of what is no string";
  std::string failure;
  const NodeId rows = node.strings->rows_of(node.g, strings.id, failure);
  if (rows == kNoNode) node.unsupported(failure);
  return with(strings, rows);
}

Expr strings_from(const NodeImport& node, Expr rows, Shape shape) {
  const int64_t width = extent(rows, 1);
  if (width > kStringRowBytes)
    node.unsupported("its strings may have " + std::to_string(width) +
                     " bytes, the limit is " + std::to_string(kStringRowBytes) +
                     "; pack with fewer bytes per input string (--string-bytes)");
  if (element_count(shape) == 0) return constant_strings(node, {}, std::move(shape));
  if (const auto known = known_ints(node.g, rows.id)) {
    std::vector<std::string> texts;
    for (auto at = known->begin(); at != known->end(); at += width) {
      const auto end = std::find(at, at + width, 0);
      texts.emplace_back(at, end);
    }
    return constant_strings(node, texts, std::move(shape));
  }
  const Expr handles = with(rows, node.strings->add_rows(node.g, rows.id));
  return reshape(handles, std::move(shape));
}

Expr constant_strings(const NodeImport& node, const std::vector<std::string>& strings,
                      Shape shape) {
  return {&node.g, node.strings->tensor(node.g, std::move(shape), strings)};
}

Expr constant_rows(const NodeImport& node, const std::vector<std::string>& strings) {
  std::string failure;
  const NodeId rows = StringTable::constant_rows(node.g, strings, 1, failure);
  if (rows == kNoNode) node.unsupported(failure);
  return {&node.g, rows};
}

Expr widen_rows(Expr rows, int64_t width) {
  const int64_t more = width - extent(rows, 1);
  return more <= 0 ? rows : pad(rows, {0, 0}, {0, more}, 0);
}

Expr row_lengths(Expr rows) {
  const Expr some = apply(Op::Not, equal(rows, 0));
  return squeeze(sum(convert(some, DType::I32), {1}), 1);
}

Expr join_rows(Expr a, Expr b) {
  const int64_t width = extent(a, 1) + extent(b, 1);
  const Expr column = columns(*a.g, width);
  const Expr length = reshape(row_lengths(a), {extent(a, 0), 1});
  const Expr from = column - length; // in b
  const Expr index = clamp(from, 0, static_cast<double>(width - 1));
  const Expr tail = gather(widen_rows(b, width), index, 1);
  return select(less(column, length), widen_rows(a, width), tail);
}

Expr begins_character(Expr rows) {
  const Expr high_bits = apply(Op::And, rows, like(rows, 0xc0));
  return both(apply(Op::Not, equal(rows, 0)), apply(Op::Not, equal(high_bits, 0x80)));
}

Expr columns(Graph& g, int64_t width) { return count_along(g, DType::I32, width, 1, 2); }

std::optional<Choice> choice_of(const NodeImport& node, Expr strings) {
  const StringTable::Reach reach = node.strings->reach(node.g, strings.id);
  if (!reach.failure.empty() || !reach.pools.empty() || reach.constants.empty())
    return std::nullopt;
  Choice choice{{}, {&node.g, bitcast(node.g, strings.id, DType::I32)}};
  const int64_t first = reach.constants.front();
  std::vector<int64_t> numbers(static_cast<size_t>(reach.constants.back() - first + 1));
  for (int64_t handle : reach.constants) {
    numbers[static_cast<size_t>(handle - first)] =
        static_cast<int64_t>(choice.strings.size());
    choice.strings.push_back(node.strings->text(handle));
  }
  choice.index = choice.index - static_cast<double>(first);
  if (numbers.size() != choice.strings.size()) {
    const Shape all{static_cast<int64_t>(numbers.size())};
    const Expr dense = convert({&node.g, tensor_i64(node.g, all, numbers)}, DType::I32);
    choice.index = look_up(choice, dense);
  }
  return choice;
}

Expr look_up(const Choice& choice, Expr table) {
  const Shape shape = choice.index.shape();
  return reshape(gather(table, reshape(choice.index, {element_count(shape)}), 0), shape);
}

Expr same_strings(const NodeImport& node, Expr a, Expr b) {
  const Shape shape = broadcast_shape(node, {a.shape(), b.shape()});
  // Equal constants have equal handles.
  if (choice_of(node, a) && choice_of(node, b))
    return equal(with(a, bitcast(node.g, a.id, DType::I32)),
                 with(b, bitcast(node.g, b.id, DType::I32)));
  const auto rows = [&](Expr x) { return rows_of(node, broadcast(x, shape)); };
  return reshape(equal_rows(rows(a), rows(b)), shape);
}

Expr count_not_above(Expr keys, Expr x) {
  const int64_t count = extent(keys, 0);
  const Shape shape = x.shape();
  x = reshape(x, {element_count(shape)});
  Expr found = with(x, constant_int(*x.g, DType::I64, x.shape(), 0));
  int64_t step = 1;
  while (step * 2 <= count) step *= 2;
  for (; step > 0; step /= 2) {
    const Expr next = found + static_cast<double>(step);
    const Expr key = gather(keys, minimum(next, static_cast<double>(count)) - 1.0, 0);
    const Expr more = both(less_equal(next, like(next, static_cast<double>(count))),
                           less_equal(key, x));
    found = select(more, next, found);
  }
  return reshape(found, shape);
}

Expr find_strings(const NodeImport& node, Expr strings,
                  const std::vector<std::string>& keys) {
  const auto none = static_cast<int64_t>(keys.size());
  const Shape shape = strings.shape();
  if (const auto choice = choice_of(node, strings)) {
    std::map<std::string_view, int64_t> places;
    int64_t next = 0;
    for (const std::string& key : keys) places.emplace(key, next++);
    std::vector<int64_t> found;
    for (const std::string& text : choice->strings) {
      const auto at = places.find(text);
      found.push_back(at == places.end() ? none : at->second);
    }
    const Shape all{static_cast<int64_t>(found.size())};
    return look_up(*choice, {&node.g, tensor_i64(node.g, all, found)});
  }
  const Expr rows = rows_of(node, strings);
  // A key that is longer than any row, or has a zero byte, is in no row.
  std::vector<std::string> possible;
  std::set<std::string_view> seen;
  std::vector<int64_t> numbers;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (static_cast<int64_t>(keys[i].size()) > extent(rows, 1) ||
        keys[i].find('\0') != std::string::npos || !seen.insert(keys[i]).second)
      continue;
    possible.push_back(keys[i]);
    numbers.push_back(static_cast<int64_t>(i));
  }
  if (possible.empty()) return {&node.g, constant_int(node.g, DType::I64, shape, none)};
  uint64_t seed = 0;
  std::vector<uint64_t> hashes;
  const std::vector<int64_t> order = sort_by_hash(possible, seed, hashes);
  std::vector<std::string> sorted;
  std::vector<int64_t> sorted_numbers;
  for (int64_t i : order) {
    sorted.push_back(possible[static_cast<size_t>(i)]);
    sorted_numbers.push_back(numbers[static_cast<size_t>(i)]);
  }
  const Expr above = count_not_above(tensor_u64(node.g, hashes), hash_rows(rows, seed));
  const Expr at = maximum(above - 1.0, 0);
  const Expr same = equal_rows(rows, take(constant_rows(node, sorted), 0, at));
  const Shape all{static_cast<int64_t>(sorted_numbers.size())};
  const Expr number = gather(with(rows, tensor_i64(node.g, all, sorted_numbers)), at, 0);
  const Expr found = select(same, number, like(number, static_cast<double>(none)));
  return reshape(found, shape);
}

std::vector<int64_t> class_labels(const NodeImport& node, std::string_view ints) {
  std::vector<int64_t> labels = node.get_ints(ints);
  if (!labels.empty()) return labels;
  labels.resize(node.get_strings("classlabels_strings").size());
  std::iota(labels.begin(), labels.end(), 0);
  require(node, !labels.empty(), "it has no class labels");
  return labels;
}

void give_label(NodeImport& node, Expr labels) {
  const std::vector<std::string> texts = node.get_strings("classlabels_strings");
  const bool numbers = !node.get_ints(node.model_node.op_type == "TreeEnsembleClassifier"
                                          ? "classlabels_int64s"
                                          : "classlabels_ints")
                            .empty();
  if (numbers) return give(node, 0, labels);
  const Shape all{static_cast<int64_t>(texts.size())};
  give(node, 0, take(constant_strings(node, texts, all), 0, labels));
}

} // namespace svod::importer
