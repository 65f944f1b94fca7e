// Unique, of values and of slices along an axis, for data of the run: a stable sort puts
// equal slices side by side, the first of each group stands for it. How many groups there
// are depends on the data; the extent along the axis is the bound.
#include "importer/bounded/bounded.h"

#include <algorithm>

namespace svod::importer {

namespace {

constexpr int64_t kMostColumns = 256; // a sort each, the last column first

// [n, m]: the slices along the axis as rows.
Expr rows_of(Expr x, int64_t axis) {
  std::vector<int64_t> perm = axes_from(0, x.rank());
  std::rotate(perm.begin(), perm.begin() + axis, perm.begin() + axis + 1);
  const int64_t n = extent(x, axis);
  return reshape(permute(x, perm), {n, n == 0 ? 0 : element_count(x.shape()) / n});
}

// The order of the rows: places that are not meant come last.
Expr sorted_order(NodeImport& node, Expr rows, std::optional<Expr> count) {
  const int64_t n = extent(rows, 0), m = extent(rows, 1);
  if (m > kMostColumns)
    node.unsupported("slices of more than " + std::to_string(kMostColumns) + " elements");
  Expr order = count_along(node.g, DType::I64, n, 0, 1);
  const auto sort_by = [&](Expr key) {
    const Expr turn{&node.g, argsort(node.g, take(key, 0, order).id, 0, false)};
    order = gather(order, turn, 0);
  };
  for (int64_t column = m; column-- > 0;) sort_by(squeeze(cut(rows, 1, column, 1), 1));
  if (count) sort_by(convert(apply(Op::Not, meant(*count, n)), DType::U8));
  return order;
}

// Which rows differ from the one before.
Expr starts_group(Expr sorted) {
  const int64_t n = extent(sorted, 0);
  const Expr first{sorted.g, constant(*sorted.g, DType::Bool, {1}, 1)};
  if (n < 2) return first;
  const Expr same = equal(cut(sorted, 0, 1, n - 1), cut(sorted, 0, 0, n - 1));
  const Expr differs =
      reduce(Op::ReduceMax, convert(apply(Op::Not, same), DType::U8), {1});
  return join({first, convert(reshape(differs, {n - 1}), DType::Bool)}, 0);
}

Expr before(Expr flags) {
  return {flags.g, scan(*flags.g, Op::ScanSum, convert(flags, DType::I64).id, 0)};
}

} // namespace

namespace {

// Which outputs hold the places of the first ones, the inverse and the counts.
struct Outputs {
  size_t first, inverse, counts;
};

void give_unique(NodeImport& node, bool flat, bool sorted, const Outputs& out) {
  Expr x = operand(node, 0);
  // Parts of a complex number are compared like columns of a slice, the real one first.
  const int64_t rank = x.rank() - (node.pairs ? 1 : 0);
  const int64_t axis = flat ? 0 : node.axis(node.get_int("axis"), rank);
  std::optional<Expr> meant_count;
  for (int64_t i = 0; i < rank; ++i) {
    const NodeId count = count_along(node, 0, i);
    if (count == kNoNode) continue;
    if (i != axis || (flat && rank != 1)) refuse_bounded(node, 0, i);
    meant_count = Expr{&node.g, count};
  }
  if (flat && node.pairs)
    x = reshape(x, {element_count(x.shape()) / 2, 2});
  else if (flat)
    x = reshape(x, {element_count(x.shape())});
  const int64_t n = extent(x, axis);
  if (n == 0) {
    for (size_t i = 0; i < node.output_count(); ++i)
      give(node, i, i == 0 ? x : with(x, constant(node.g, DType::I64, {0}, 0)));
    return;
  }
  Expr rows = rows_of(x, axis);
  if (rows.dtype() == DType::Bool) rows = convert(rows, DType::U8);
  const Expr order = sorted_order(node, rows, meant_count);
  Expr starts = starts_group(take(rows, 0, order));
  if (meant_count) starts = both(starts, meant(*meant_count, n));
  const Places groups = true_places(starts);
  Expr first = gather(order, groups.places, 0); // of each group, in sorted order
  // The group of every place: its number in sorted order, moved back to where it was.
  const Expr zeros{&node.g, constant(node.g, DType::I64, {n}, 0)};
  Expr inverse = scatter(zeros, order, before(starts) - 1.0, 0, Combiner::Set);
  if (!sorted) {
    // Groups are numbered as they first appear.
    const Expr spare{&node.g, constant(node.g, DType::I64, {n + 1}, 0)};
    const Expr slot = select(meant(groups.count, n), first, like(first, double(n)));
    const Expr one = like(first, 1);
    const Expr is_first = cut(scatter(spare, slot, one, 0, Combiner::Set), 0, 0, n);
    const Expr rank = with(x, scan(node.g, Op::ScanSum, is_first.id, 0)) - 1.0;
    inverse = gather(rank, gather(first, inverse, 0), 0);
    first = true_places(equal(is_first, 1.0)).places;
  }
  const Size count{groups.count, n};
  std::vector<Size> sizes;
  for (int64_t i = 0; i < x.rank(); ++i)
    sizes.push_back(i == axis ? count : known_size(node.g, extent(x, i)));
  give_bounded(node, 0, take(x, axis, first), sizes);
  if (node.wants_output(out.first)) give_bounded(node, out.first, first, {count});
  if (node.wants_output(out.inverse)) {
    give(node, out.inverse, inverse);
    if (meant_count) node.set_counts(out.inverse, {meant_count->id});
  }
  if (!node.wants_output(out.counts)) return;
  Expr ones = like(zeros, 1);
  if (meant_count) ones = convert(meant(*meant_count, n), DType::I64);
  give_bounded(node, out.counts, scatter(zeros, inverse, ones, 0, Combiner::Add),
               {count});
}

} // namespace

void import_unique(NodeImport& node) {
  give_unique(node, !node.has("axis"), node.get_int("sorted") != 0, {1, 2, 3});
}

// com.microsoft: of a vector, in the order of first appearance; values, inverse, counts.
void import_vendor_unique(NodeImport& node) {
  require(node, node.rank(0) == 1, "the input must be a vector");
  constexpr size_t kNone = SIZE_MAX;
  give_unique(node, true, false, {kNone, 1, 2});
}

void bounded_unique(NodeImport& node, Rule rule) { rule(node); }

} // namespace svod::importer
