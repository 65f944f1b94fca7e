// Operators of com.microsoft that place, look up or hash: inverse matrices, crops of
// images, embeddings of characters, banned n-grams, buckets of relative positions.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace svod::importer {

namespace {

// One step of Gauss and Jordan on [batch.., n, 2n]: the row with the largest element of
// column `step` at or below the diagonal becomes row `step`, with a 1 there and zeros in
// the column's other rows.
Expr eliminated(Expr a, int64_t step) {
  const int64_t row = a.rank() - 2, column = a.rank() - 1;
  const int64_t n = extent(a, row), width = extent(a, column);
  const Expr below = cut(cut(a, row, step, n - step), column, step, 1);
  const Expr best =
      with(a, arg_reduce(*a.g, Op::ArgMax, absolute(below).id, row, false)) +
      static_cast<double>(step);
  Shape across = below.shape();
  across[static_cast<size_t>(row)] = 1;
  across.back() = width;
  const Expr chosen = gather(a, broadcast(best, across), row);
  const Expr here = counter(*a.g, DType::I64, Shape(a.shape()), row);
  // The exchange: the pivot's place gets row `step`.
  const Expr swapped = select(equal(here, best), cut(a, row, step, 1), a);
  const Expr pivot = chosen / cut(chosen, column, step, 1);
  const Expr rest = swapped - cut(swapped, column, step, 1) * pivot;
  return select(equal(here, static_cast<double>(step)), pivot, rest);
}

Expr rotated_left(Expr x, int64_t by) {
  return either(apply(Op::ShiftLeft, x, like(x, static_cast<double>(by))),
                apply(Op::ShiftRight, x, like(x, static_cast<double>(32 - by))));
}
Expr exclusive_or(Expr a, Expr b) { return apply(Op::Xor, a, b); }
Expr exclusive_or_shifted(Expr x, int64_t by) {
  return exclusive_or(x, apply(Op::ShiftRight, x, like(x, static_cast<double>(by))));
}

// The published 32-bit form of the hash, over the 4 or 8 bytes of each element.
Expr murmur3(const std::vector<Expr>& words, uint32_t seed) {
  Expr h = like(words[0], seed);
  for (Expr k : words) {
    k = rotated_left(k * double{0xcc9e2d51}, 15) * double{0x1b873593};
    h = rotated_left(exclusive_or(h, k), 13) * 5.0 + double{0xe6546b64};
  }
  h = exclusive_or(h, like(h, static_cast<double>(4 * words.size())));
  h = exclusive_or_shifted(h, 16) * double{0x85ebca6b};
  h = exclusive_or_shifted(h, 13) * double{0xc2b2ae35};
  return exclusive_or_shifted(h, 16);
}

// Rows of a matrix at indices of any shape.
Expr rows_at(Expr table, Expr index) {
  Shape shape = index.shape();
  shape.push_back(extent(table, 1));
  return reshape(take(table, 0, reshape(index, {element_count(index.shape())})), shape);
}

// Where the crops of each box read along one axis, as [boxes, count] in units of pixels.
Expr crop_positions(Expr low, Expr high, int64_t count, int64_t size) {
  const double last = static_cast<double>(size - 1);
  if (count == 1) return (low + high) * (0.5 * last);
  const Expr at = count_along(*low.g, DType::F32, count, 1, 2);
  const Expr inner =
      low * last + at * ((high - low) * last / static_cast<double>(count - 1));
  // The ends are exact.
  return select(equal(at, static_cast<double>(count - 1)), high * last, inner);
}

struct CropAxis {
  Expr inside, low, high, share; // share of `high`
};

CropAxis crop_axis(Expr at, int64_t size, bool nearest) {
  const Expr inside = both(less_equal(like(at, 0), at),
                           less_equal(at, like(at, static_cast<double>(size - 1))));
  const auto place = [&](Expr x) {
    return convert(clamp(x, 0, static_cast<double>(size - 1)), DType::I64);
  };
  if (nearest) {
    const Expr near = place(apply(Op::Floor, at + 0.5));
    return {inside, near, near, like(at, 0)};
  }
  const Expr below = apply(Op::Floor, at);
  return {inside, place(below), place(apply(Op::Ceil, at)), at - below};
}

} // namespace

// The inverse of square matrices.
void import_inverse(NodeImport& node) {
  const Expr x = wide(node, 0);
  const Shape shape = x.shape();
  require(node, shape.size() >= 2 && shape.back() == shape[shape.size() - 2],
          "the input must hold square matrices");
  const int64_t n = shape.back();
  if (n > 32) node.unsupported("the inverse of a matrix of more than 32 rows");
  if (element_count(shape) == 0) return give(node, 0, operand(node, 0));
  const int64_t row = x.rank() - 2, column = x.rank() - 1;
  const Expr unit = convert(equal(counter(node.g, DType::I64, shape, row),
                                  counter(node.g, DType::I64, shape, column)),
                            x.dtype());
  Expr a = join({x, unit}, column);
  for (int64_t step = 0; step < n; ++step) a = eliminated(a, step);
  finish(node, cut(a, column, n, n));
}

// Each element's hash. Strings are hashed by the packer only when it knows them.
void import_murmur_hash3(NodeImport& node) {
  const Expr x = operand(node, 0);
  const DType dtype = x.dtype();
  const auto size = static_cast<int64_t>(byte_size(dtype));
  if (size != 4 && size != 8)
    node.unsupported("hashes of elements of " + std::to_string(size) + " bytes");
  std::vector<Expr> words;
  if (size == 4) {
    words.push_back(with(x, bitcast(node.g, x.id, DType::U32)));
  } else {
    const Expr whole = with(x, bitcast(node.g, x.id, DType::U64));
    words.push_back(
        convert(apply(Op::And, whole, like(whole, 4294967295.0)), DType::U32));
    words.push_back(convert(apply(Op::ShiftRight, whole, like(whole, 32)), DType::U32));
  }
  const int64_t seed = node.get_int("seed");
  require(node, seed >= 0 && seed <= 4294967295, "the seed must have 32 bits");
  const Expr hash = murmur3(words, static_cast<uint32_t>(seed));
  const bool positive = node.get_int("positive") != 0;
  give(node, 0, positive ? hash : with(hash, bitcast(node.g, hash.id, DType::I32)));
}

// A word that would repeat an n-gram of the text gets the score of minus infinity.
void import_ngram_repeat_block(NodeImport& node) {
  const Expr ids = operand(node, 0), scores = wide(node, 1);
  const int64_t n = within_reach(node, node.get_int("ngram_size"), "ngram_size");
  require(node,
          n > 0 && ids.rank() == 2 && scores.rank() == 2 &&
              extent(ids, 0) == extent(scores, 0),
          "ids and scores must be [batch, length] and [batch, words]");
  const int64_t batch = extent(ids, 0), length = extent(ids, 1);
  const int64_t places = length - n + 1;
  if (places <= 0) return node.output(0, node.input(1));
  // [batch, places, n - 1] against the last n - 1 words.
  Expr banned = with(ids, constant(node.g, DType::Bool, {batch, places}, 1));
  for (int64_t i = 0; i + 1 < n; ++i)
    banned = both(banned, equal(cut(ids, 1, i, places), cut(ids, 1, places + i, 1)));
  const Expr next = wrap_index(node, cut(ids, 1, n - 1, places), extent(scores, 1));
  const Expr none = with(scores, constant(node.g, scores.dtype(), {batch, places}, 0));
  const Expr penalty =
      select(banned, like(none, -std::numeric_limits<double>::infinity()), none);
  const Expr zero = like(scores, 0);
  const Expr y = scores + scatter(zero, next, penalty, 1, Combiner::Min);
  give(node, 0, convert(y, node.dtype(1)));
}

// Characters' embeddings convolved along each word, the largest of tanh of it. A word
// that starts with 0 is no word and gives zeros; characters from its length on are 0.
void import_word_conv_embedding(NodeImport& node) {
  const Expr ids = operand(node, 0), w = wide(node, 1), bias = wide(node, 2);
  const Expr table = wide(node, 3);
  require(node, ids.rank() == 2 && w.rank() == 4 && table.rank() == 2 && bias.rank() == 1,
          "the operands' ranks are not those of the operator");
  const int64_t words = extent(ids, 0), letters = extent(ids, 1);
  const int64_t filters = extent(w, 0), span = extent(w, 2), size = extent(table, 1);
  require(node,
          extent(w, 1) == 1 && extent(w, 3) == size && extent(bias, 0) == filters &&
              span >= 1 && span <= letters,
          "the filters fit neither the words nor the table");
  const Expr used = convert(less(like(ids, 0), ids), DType::I64);
  const Expr length = sum(used, {1}) * cut(used, 1, 0, 1);
  // What is looked up: the word, at least as long as a filter.
  const Expr reach = maximum(length, static_cast<double>(span));
  const Expr place = count_along(node.g, DType::I64, letters, 1, 2);
  const Expr letter = unsqueeze(less(place, reach), 2);
  const Expr rows = rows_at(table, wrap_index(node, ids, extent(table, 0)));
  const Expr x = select(letter, rows, like(rows, 0));
  // [words, places, size, span] -> [words, places, size * span]
  const Expr windows = with(x, window(node.g, x.id, 1, span, 1, 1));
  const int64_t places = letters - span + 1;
  const Expr flat = reshape(windows, {words, places, size * span});
  const Expr kernel = reshape(permute(reshape(w, {filters, span, size}), {2, 1, 0}),
                              {size * span, filters});
  const Expr y = tanh(matmul(flat, kernel) + bias);
  const Expr seen = less(count_along(node.g, DType::I64, places, 1, 2),
                         reach - static_cast<double>(span - 1));
  const Expr best =
      reshape(reduce(Op::ReduceMax, select(unsqueeze(seen, 2), y, like(y, -1e12)), {1}),
              {words, filters});
  give(node, 0, select(less(0.0, length), best, like(best, 0)));
}

// Boxes [boxes, 4] of y, x, y, x in units of the image, its corners included.
void import_crop_and_resize(NodeImport& node) {
  const Expr x = wide(node, 0), boxes = wide(node, 1), batch = operand(node, 2);
  const std::vector<int64_t> to = node.known_ints(3);
  require(node,
          x.rank() == 4 && boxes.rank() == 2 && extent(boxes, 1) == 4 &&
              batch.shape() == Shape{extent(boxes, 0)} && to.size() == 2,
          "the boxes, their images or the size have a wrong shape");
  for (int64_t size : to) within_reach(node, size, "crop_size");
  require(node, to[0] > 0 && to[1] > 0 && element_count(x.shape()) > 0,
          "the crop or the input is empty");
  const std::string mode = node.get_string("mode");
  require(node, mode == "bilinear" || mode == "nearest",
          "mode must be bilinear or nearest");
  const int64_t count = extent(boxes, 0), channels = extent(x, 1);
  const auto side = [&](int64_t i) { return cut(boxes, 1, i, 1); };
  const CropAxis rows = crop_axis(crop_positions(side(0), side(2), to[0], extent(x, 2)),
                                  extent(x, 2), mode == "nearest");
  const CropAxis columns =
      crop_axis(crop_positions(side(1), side(3), to[1], extent(x, 3)), extent(x, 3),
                mode == "nearest");
  const Expr images = take(x, 0, wrap_index(node, batch, extent(x, 0)));
  const auto pick = [&](Expr from, Expr at, int64_t axis) {
    Shape shape{count, 1, 1, 1}, whole = from.shape();
    shape[static_cast<size_t>(axis)] = extent(at, 1);
    whole[static_cast<size_t>(axis)] = extent(at, 1);
    return gather(from, broadcast(reshape(at, shape), whole), axis);
  };
  const auto blend = [&](Expr from, const CropAxis& axis, int64_t at) {
    const Expr low = pick(from, axis.low, at), high = pick(from, axis.high, at);
    Shape shape{count, 1, 1, 1};
    shape[static_cast<size_t>(at)] = extent(axis.share, 1);
    return low + (high - low) * reshape(axis.share, shape);
  };
  const Expr y = blend(blend(images, columns, 3), rows, 2);
  const Expr inside = both(reshape(rows.inside, {count, 1, to[0], 1}),
                           reshape(columns.inside, {count, 1, 1, to[1]}));
  require(node, channels > 0, "the input is empty");
  finish(node, select(inside, y, like(y, node.get_float("extrapolation_value"))));
}

// T5's buckets: half of them one per distance, the other half wider and wider up to
// max_distance, and in both directions where asked.
void import_relative_position_bias(NodeImport& node) {
  const Expr table = wide(node, 0);
  require(node, table.rank() == 2, "the table must be [buckets, heads]");
  // Lengths of the run have a bound: the places up to it are found when packing.
  const auto length = [&](size_t i, const char* name) {
    require(node, element_count(node.shape(i)) == 1,
            "query_length and key_length must be one number each");
    if (ints_if_known(node, i))
      return known_size(node.g, within_reach(node, known_int(node, i), name));
    return bounded_size(node, reshape(convert(operand(node, i), DType::I64), {}));
  };
  const Size of_queries = length(1, "query_length"), of_keys = length(2, "key_length");
  const int64_t queries = of_queries.bound, keys = of_keys.bound;
  const int64_t furthest =
      within_reach(node, node.get_int("max_distance"), "max_distance");
  const bool both_ways = node.get_int("is_bidirectional") != 0;
  const int64_t buckets = extent(table, 0) / (both_ways ? 2 : 1), exact = buckets / 2;
  require(node, exact >= 1 && furthest > exact, "too few buckets for max_distance");
  if (queries * keys > (int64_t{1} << 24))
    node.unsupported("more positions than can be placed when packing");
  std::vector<int64_t> index;
  for (int64_t q = 0; q < queries; ++q)
    for (int64_t k = 0; k < keys; ++k) {
      int64_t bucket = 0, distance = q - k;
      if (both_ways && distance < 0) bucket = buckets;
      distance = both_ways ? std::abs(distance) : std::max<int64_t>(distance, 0);
      if (distance >= exact) {
        const float ratio =
            std::log(static_cast<float>(distance) / static_cast<float>(exact)) /
            std::log(static_cast<float>(furthest) / static_cast<float>(exact));
        distance =
            exact + static_cast<int64_t>(ratio * static_cast<float>(buckets - exact));
      }
      index.push_back(bucket + std::min(distance, buckets - 1));
    }
  const Expr at{&node.g, tensor_i64(node.g, {queries, keys}, index)};
  const Expr bias = unsqueeze(permute(rows_at(table, at), {2, 0, 1}), 0);
  give_bounded(
      node, 0, convert(bias, node.dtype(0)),
      {known_size(node.g, 1), known_size(node.g, extent(bias, 1)), of_queries, of_keys});
}

} // namespace svod::importer
