// A table for a tensor of handles has the rows of all pools it may refer to, one pool
// after the other; a handle becomes the number of a row by one subtraction per pool.
// Where the handles are known the rows are picked by known numbers, which leaves views
// and no gather.
#include "importer/formula/string_table.h"

#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"

#include <algorithm>
#include <cstring>
#include <set>

namespace svod::importer {

namespace {

constexpr int64_t kMostRows = int64_t{1} << 29; // of all pools, so that handles are i32

// The handles of a node that depends on no input.
std::optional<std::vector<int64_t>> known_handles(const Graph& g, NodeId id) {
  if (g.depends_on_input(id)) return std::nullopt;
  if (element_count(g[id].shape) == 0) return std::vector<int64_t>{};
  const auto tensor = known_tensor(g, id, kKnownElements);
  if (!tensor) return std::nullopt;
  std::vector<int64_t> values;
  for (size_t i = 0; i < tensor->bytes.size(); i += sizeof(int32_t)) {
    int32_t value = 0;
    std::memcpy(&value, tensor->bytes.data() + i, sizeof value);
    values.push_back(value);
  }
  return values;
}

// Whether every element of the result is one of an input of its type, or zero.
bool moves_elements(const Node& node) {
  const OpClass kind = info(node.op).op_class;
  if (node.op == Op::Scatter)
    return node.payload[1] == static_cast<int64_t>(Combiner::Set);
  return kind == OpClass::View || kind == OpClass::Join || node.op == Op::Gather ||
         node.op == Op::Select;
}

NodeId number(Graph& g, NodeId like, int64_t value) {
  return constant_int(g, g[like].dtype, g[like].shape, value);
}

NodeId widen(Graph& g, NodeId rows, int64_t width) {
  const int64_t more = width - g[rows].shape[1];
  return more == 0 ? rows : pad(g, rows, {0, 0}, {0, more}, 0);
}

NodeId tensor_i32(Graph& g, const std::vector<int64_t>& values) {
  const auto count = static_cast<int64_t>(values.size());
  return cast(g, tensor_i64(g, {count}, values), DType::I32);
}

// rows[index]; index is [n].
NodeId pick_rows(Graph& g, NodeId rows, NodeId index) {
  const int64_t n = g[index].shape[0], width = g[rows].shape[1];
  const NodeId wide = expand(g, reshape(g, index, {n, 1}), {n, width});
  return gather(g, rows, wide, 0);
}

// The same for numbers known when packing: runs of neighbours are slices.
NodeId pick_known_rows(Graph& g, NodeId rows, const std::vector<int64_t>& index) {
  constexpr size_t kMostRuns = 16;
  std::vector<NodeId> runs;
  for (size_t i = 0; i < index.size() && runs.size() <= kMostRuns;) {
    size_t end = i + 1;
    while (end < index.size() && index[end] == index[end - 1] + 1) ++end;
    runs.push_back(slice_axis(g, rows, 0, index[i], static_cast<int64_t>(end - i)));
    i = end;
  }
  if (runs.size() == 1) return runs[0];
  if (runs.size() <= kMostRuns) return concat(g, runs, 0);
  return pick_rows(g, rows, tensor_i32(g, index));
}

} // namespace

StringTable::StringTable() { constant(""); }

int64_t StringTable::constant(const std::string& text) {
  const auto next = static_cast<int64_t>(constants_.size());
  const auto [at, added] = by_text_.emplace(text, next);
  if (added) {
    SVOD_CHECK(next < kFirstRow) << "more strings than there are handles";
    constants_.push_back(text);
  }
  return at->second;
}

NodeId StringTable::tensor(Graph& g, Shape shape,
                           const std::vector<std::string>& strings) {
  std::vector<std::byte> bytes(strings.size() * sizeof(int32_t));
  for (size_t i = 0; i < strings.size(); ++i) {
    const auto handle = static_cast<int32_t>(constant(strings[i]));
    std::memcpy(bytes.data() + i * sizeof handle, &handle, sizeof handle);
  }
  return weight(g, DType::String, std::move(shape), g.add_blob(std::move(bytes)));
}

NodeId StringTable::add_rows(Graph& g, NodeId rows) {
  if (const auto found = handles_of_rows_.find(rows); found != handles_of_rows_.end())
    return found->second;
  const int64_t count = g[rows].shape[0];
  if (next_row_ - kFirstRow + count > kMostRows)
    throw TooLarge("more strings than there are handles");
  const NodeId at = iota(g, DType::I32, {count}, 0);
  const NodeId handles = map(g, Op::Add, {at, number(g, at, next_row_)});
  pools_.emplace(next_row_, Pool{count, rows});
  next_row_ += count;
  return handles_of_rows_[rows] = bitcast(g, handles, DType::String);
}

std::map<int64_t, StringTable::Pool>::const_iterator
StringTable::pool_of(int64_t handle) const {
  auto at = pools_.upper_bound(handle);
  SVOD_CHECK(at != pools_.begin()) << "handle " << handle << " names no string";
  --at;
  SVOD_CHECK(handle < at->first + at->second.count) << "handle " << handle << " is free";
  return at;
}

void StringTable::add_known(const std::vector<int64_t>& values, Reach& reach) const {
  for (int64_t handle : values)
    if (is_constant(handle))
      reach.constants.push_back(handle);
    else if (const int64_t first = pool_of(handle)->first;
             reach.pools.empty() || reach.pools.back() != first)
      reach.pools.push_back(first);
}

StringTable::Reach StringTable::reach(const Graph& g, NodeId handles) const {
  Reach reach;
  std::set<NodeId> seen{handles};
  std::vector<NodeId> open{handles};
  while (!open.empty()) {
    const NodeId id = open.back();
    open.pop_back();
    const Node& node = g[id];
    // What a pad adds and what a scatter leaves may be handle 0.
    if (node.op == Op::Pad) reach.constants.push_back(0);
    if (!g.depends_on_input(id)) {
      const auto values = known_handles(g, id);
      if (!values) {
        reach.failure = "a tensor of more strings than can be followed";
        return reach;
      }
      add_known(*values, reach);
      continue;
    }
    bool moved = false;
    if (moves_elements(node))
      for (NodeId input : node.inputs) {
        if (g[input].dtype != DType::String) continue;
        moved = true;
        if (seen.insert(input).second) open.push_back(input);
      }
    if (!moved) reach.failure = "strings that come from numbers";
    if (!reach.failure.empty()) return reach;
  }
  for (auto* list : {&reach.constants, &reach.pools}) {
    std::ranges::sort(*list);
    list->erase(std::unique(list->begin(), list->end()), list->end());
  }
  return reach;
}

NodeId StringTable::constant_rows(Graph& g, const std::vector<std::string>& strings,
                                  int64_t width, std::string& failure) {
  for (const std::string& text : strings) {
    width = std::max(width, static_cast<int64_t>(text.size()));
    if (text.find('\0') == std::string::npos) continue;
    failure = "a string with a zero byte in it";
    return kNoNode;
  }
  width = std::max<int64_t>(width, 1);
  const auto count = static_cast<int64_t>(strings.size());
  int64_t size = 0;
  if (__builtin_mul_overflow(count, width, &size) || size > kStringTableBytes) {
    failure = std::to_string(count) + " strings of up to " + std::to_string(width) +
              " bytes, a table of more than " + std::to_string(kStringTableBytes) +
              " bytes";
    return kNoNode;
  }
  std::vector<std::byte> bytes(static_cast<size_t>(size));
  for (size_t i = 0; i < strings.size(); ++i)
    std::memcpy(bytes.data() + i * static_cast<size_t>(width), strings[i].data(),
                strings[i].size());
  return weight(g, DType::U8, {count, width}, g.add_blob(std::move(bytes)));
}

// Where the rows of each pool begin in a table.
struct StringTable::Layout {
  std::vector<int64_t> constants;                 // handles, ascending, rows 0 and up
  std::vector<std::pair<int64_t, int64_t>> pools; // first handle, first row

  int64_t row(int64_t handle) const {
    const auto at = std::ranges::lower_bound(constants, handle);
    if (at != constants.end() && *at == handle) return at - constants.begin();
    size_t pool = pools.size() - 1;
    while (pools[pool].first > handle) --pool;
    return pools[pool].second + handle - pools[pool].first;
  }
  NodeId rows(Graph& g, NodeId handles) const;
};

// The numbers of rows of handles that depend on data.
NodeId StringTable::Layout::rows(Graph& g, NodeId handles) const {
  const NodeId at = bitcast(g, handles, DType::I32);
  NodeId row = kNoNode;
  if (!constants.empty()) {
    const int64_t first = constants.front(), range = constants.back() - first + 1;
    row = map(g, Op::Sub, {at, number(g, at, first)});
    if (range != static_cast<int64_t>(constants.size())) {
      std::vector<int64_t> numbers(static_cast<size_t>(range));
      for (size_t i = 0; i < constants.size(); ++i)
        numbers[static_cast<size_t>(constants[i] - first)] = static_cast<int64_t>(i);
      // A handle of another pool reads any number here, and its own below.
      if (!pools.empty()) row = map(g, Op::Min, {row, number(g, row, range - 1)});
      row = gather(g, tensor_i32(g, numbers), row, 0);
    }
  }
  for (const auto& [first, start] : pools) {
    const NodeId here = map(g, Op::Add, {at, number(g, at, start - first)});
    row = row == kNoNode
              ? here
              : map(g, Op::Select,
                    {map(g, Op::LessEqual, {number(g, at, first), at}), here, row});
  }
  return row;
}

NodeId StringTable::table(Graph& g, const Reach& reach, Layout& layout,
                          std::string& failure) const {
  std::vector<NodeId> parts;
  int64_t width = 1, row = 0;
  if (!reach.constants.empty()) {
    std::vector<std::string> strings;
    for (int64_t handle : reach.constants) strings.push_back(text(handle));
    const NodeId rows = constant_rows(g, strings, 1, failure);
    if (rows == kNoNode) return kNoNode;
    layout.constants = reach.constants;
    parts.push_back(rows);
    row = static_cast<int64_t>(strings.size());
  }
  for (int64_t first : reach.pools) {
    const Pool& pool = pools_.at(first);
    layout.pools.emplace_back(first, row);
    parts.push_back(pool.rows);
    row += pool.count;
  }
  for (NodeId part : parts) width = std::max(width, g[part].shape[1]);
  for (NodeId& part : parts) part = widen(g, part, width);
  return parts.size() == 1 ? parts[0] : concat(g, parts, 0);
}

NodeId StringTable::rows_of(Graph& g, NodeId handles, std::string& failure) const {
  const int64_t count = element_count(g[handles].shape);
  if (count == 0) return constant_int(g, DType::U8, {0, 1}, 0);
  const Reach reached = reach(g, handles);
  failure = reached.failure;
  if (!failure.empty()) return kNoNode;
  Layout layout;
  const NodeId rows = table(g, reached, layout, failure);
  if (rows == kNoNode) return kNoNode;
  if (const auto values = known_handles(g, handles)) {
    std::vector<int64_t> index;
    for (int64_t handle : *values) index.push_back(layout.row(handle));
    return pick_known_rows(g, rows, index);
  }
  return pick_rows(g, rows, layout.rows(g, reshape(g, handles, {count})));
}

std::optional<std::vector<std::string>> StringTable::known(const Graph& g,
                                                           NodeId handles) const {
  const auto values = known_handles(g, handles);
  if (!values) return std::nullopt;
  std::vector<std::string> strings;
  for (int64_t handle : *values) {
    if (!is_constant(handle)) return std::nullopt;
    strings.push_back(text(handle));
  }
  return strings;
}

} // namespace svod::importer
