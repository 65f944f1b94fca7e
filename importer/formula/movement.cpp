// Runs: a greedy split of the positions into stretches of constant step. Nearest
// upsampling by a whole number (0 0 1 1 2 2) is the one pattern with many runs that still
// needs no gather.
#include "importer/formula/movement.h"

#include "importer/formula/rule.h"

#include <algorithm>

namespace svod::importer {

int64_t extent(Expr x, int64_t axis) {
  if (axis < 0 || axis >= x.rank())
    throw RuleFailure{"a tensor of shape " + shape_text(x.shape()) +
                      " has too few axes for it"};
  return x.shape()[static_cast<size_t>(axis)];
}
namespace {

constexpr size_t kMostRuns = 16; // more slices than this cost more than one gather

struct Run {
  int64_t start, step, count;
};

std::vector<Run> runs_of(const std::vector<int64_t>& positions) {
  std::vector<Run> runs;
  for (size_t i = 0; i < positions.size();) {
    Run run{positions[i], 0, 1};
    if (i + 1 < positions.size()) run.step = positions[i + 1] - positions[i];
    while (i + static_cast<size_t>(run.count) < positions.size() &&
           positions[i + static_cast<size_t>(run.count)] ==
               run.start + run.count * run.step)
      ++run.count;
    i += static_cast<size_t>(run.count);
    runs.push_back(run);
  }
  return runs;
}

Expr take_run(Expr x, int64_t axis, const Run& run) {
  auto at = static_cast<size_t>(axis);
  if (run.step == 0) {
    Shape wide = x.shape();
    wide[at] = run.count;
    return broadcast(cut(x, axis, run.start, 1), wide);
  }
  Shape start(x.shape().size(), 0), step(x.shape().size(), 1), extent = x.shape();
  start[at] = run.start;
  step[at] = run.step;
  extent[at] = run.count;
  return slice(x, start, step, extent);
}

// How often every position of 0 .. n-1 is repeated in order, 0 when that is not the
// pattern.
int64_t repeat_factor(const std::vector<int64_t>& positions, int64_t n) {
  auto count = static_cast<int64_t>(positions.size());
  if (n == 0 || count % n != 0) return 0;
  int64_t factor = count / n;
  for (int64_t i = 0; i < count; ++i)
    if (positions[static_cast<size_t>(i)] != i / factor) return 0;
  return factor;
}

Expr repeat_each(Expr x, int64_t axis, int64_t factor) {
  Shape wide = x.shape(), flat = x.shape();
  wide.insert(wide.begin() + axis + 1, factor);
  flat[static_cast<size_t>(axis)] *= factor;
  return reshape(broadcast(unsqueeze(x, axis + 1), wide), flat);
}

} // namespace

Expr join(const std::vector<Expr>& parts, int64_t axis) {
  std::vector<NodeId> ids;
  for (Expr part : parts) ids.push_back(part.id);
  return with(parts[0], concat(*parts[0].g, std::move(ids), axis));
}

int64_t within_reach(const NodeImport& node, int64_t value, const char* what) {
  if (value < 0 || value >= (int64_t{1} << 31))
    node.invalid(std::string(what) + " is negative or over the limit");
  return value;
}

int64_t known_int(const NodeImport& node, size_t i) {
  const std::vector<int64_t> values = node.known_ints(i);
  if (values.size() != 1)
    node.invalid("input " + std::to_string(i) + " must be one number");
  return values[0];
}

double known_float(const NodeImport& node, size_t i) {
  const std::vector<double> values = node.known_floats(i);
  if (values.size() != 1)
    node.invalid("input " + std::to_string(i) + " must be one number");
  return values[0];
}

std::optional<std::vector<int64_t>> ints_if_known(const NodeImport& node, size_t i) {
  const NodeId id = node.input(i);
  // A constant goes to known_ints() even where it is too long: it is refused there.
  if (element_count(node.g[id].shape) > 0 && !is_known(node.g, id) &&
      !known_ints(node.g, id))
    return std::nullopt;
  return node.known_ints(i);
}

Shape declared_instead(const NodeImport& node, size_t i, size_t out, int64_t rank) {
  std::optional<Shape> declared = node.declared_shape(out);
  if (!declared || (rank >= 0 && static_cast<int64_t>(declared->size()) != rank))
    node.needs_value(
        i, "input " + std::to_string(i) +
               " depends on the model's inputs, and the model declares no shape for "
               "output " +
               std::to_string(out));
  return *declared;
}

Expr if_kept(Expr promise, Expr index) {
  constexpr double kOutside = 1LL << 52;
  return select(promise, index, like(index, kOutside));
}

Expr all_true(Expr condition) {
  const int64_t count = element_count(condition.shape());
  const Expr found = sum(reshape(convert(condition, DType::I64), {count}), {0});
  return reshape(equal(found, static_cast<double>(count)), {});
}

void promise(NodeImport& node, Expr promise) { node.promises.push_back(promise.id); }

void promise_values(NodeImport& node, size_t i, const Shape& values) {
  const int64_t count = element_count(node.shape(i));
  require(node, count == static_cast<int64_t>(values.size()),
          "the declared shape has another rank than the run's");
  if (count == 0) return;
  const Expr given = reshape(convert(operand(node, i), DType::I64), {count});
  promise(node, all_true(equal(given, {&node.g, tensor_i64(node.g, {count}, values)})));
}

void keep_promises(NodeImport& node) {
  if (node.promises.empty()) return;
  Expr all{&node.g, node.promises[0]};
  for (const NodeId promise : node.promises)
    all = apply(Op::And, all, {&node.g, promise});
  const Expr at = reshape(if_kept(all, number(node.g, DType::I64, 0)), {1});
  for (size_t i = 0; i < node.results().size(); ++i) {
    const NodeId id = node.results()[i];
    if (id == kNoNode || is_compound(id)) continue;
    Shape wide = node.g[id].shape;
    wide.insert(wide.begin(), 1);
    const Expr whole = reshape({&node.g, id}, wide);
    give(node, i, reshape(take(whole, 0, at), node.g[id].shape));
  }
}

// A stable descending sort brings the true elements to the front in their order.
Expr true_positions(NodeImport& node, Expr condition, int64_t count) {
  require(node, condition.rank() == 1 && count <= extent(condition, 0),
          "the declared shape is too large");
  const Expr order{&node.g, argsort(node.g, convert(condition, DType::U8).id, 0, true)};
  const Expr found = sum(convert(condition, DType::I64), {0});
  promise(node, reshape(equal(found, static_cast<double>(count)), {}));
  return cut(order, 0, 0, count);
}

Expr take(Expr x, int64_t axis, Expr index) {
  if (index.dtype() != DType::I32 && index.dtype() != DType::I64)
    throw RuleFailure{"its indices must be int32 or int64"};
  int64_t count = element_count(index.shape());
  Shape wide = x.shape();
  wide[static_cast<size_t>(axis)] = count;
  return gather(x, broadcast(along(index, axis, x.rank()), wide), axis);
}

Expr take(Expr x, int64_t axis, const std::vector<int64_t>& positions) {
  auto at = static_cast<size_t>(axis);
  if (positions.empty()) {
    Shape none = x.shape();
    none[at] = 0;
    return slice(x, Shape(none.size(), 0), Shape(none.size(), 1), none);
  }
  std::vector<Run> runs = runs_of(positions);
  if (runs.size() == 1) return take_run(x, axis, runs[0]);
  int64_t factor = repeat_factor(positions, extent(x, axis));
  if (factor > 1) return repeat_each(x, axis, factor);
  if (runs.size() <= kMostRuns) {
    std::vector<Expr> parts;
    for (const Run& run : runs) parts.push_back(take_run(x, axis, run));
    return join(parts, axis);
  }
  Shape shape{static_cast<int64_t>(positions.size())};
  return take(x, axis, with(x, tensor_i64(*x.g, shape, positions)));
}

Expr take_shaped(Expr x, int64_t axis, Expr index) {
  Shape to(x.shape().begin(), x.shape().begin() + axis);
  to.insert(to.end(), index.shape().begin(), index.shape().end());
  to.insert(to.end(), x.shape().begin() + axis + 1, x.shape().end());
  std::optional<std::vector<int64_t>> positions = known_ints(*x.g, index.id);
  Expr y = positions ? take(x, axis, *positions)
                     : take(x, axis, reshape(index, {element_count(index.shape())}));
  return reshape(y, to);
}

Expr wrap_index(NodeImport& node, Expr index, int64_t extent) {
  std::optional<std::vector<int64_t>> values = known_ints(*index.g, index.id);
  if (!values)
    return select(less(index, 0.0), index + static_cast<double>(extent), index);
  for (int64_t& value : *values) {
    if (value < -extent || value >= extent)
      node.invalid("index " + std::to_string(value) + " is outside an axis of extent " +
                   std::to_string(extent));
    if (value < 0) value += extent;
  }
  return with(index, tensor_i64(*index.g, index.shape(), *values));
}

Expr channels_second(const NodeImport& node, Expr x) {
  require(node, x.rank() >= 3, "the input must have a batch, channels and positions");
  std::vector<int64_t> order{0, x.rank() - 1};
  for (int64_t axis = 1; axis + 1 < x.rank(); ++axis) order.push_back(axis);
  return permute(x, order);
}

Expr channels_last(Expr x) {
  std::vector<int64_t> order{0};
  for (int64_t axis = 2; axis < x.rank(); ++axis) order.push_back(axis);
  order.push_back(1);
  return permute(x, order);
}

} // namespace svod::importer
