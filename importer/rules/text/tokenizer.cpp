// Tokenizer of com.microsoft: each string becomes a row of tokens, padded to the most
// that any string has, which only the run knows: a bounded size. Tokens are what
// separators leave, what a pattern matches, or single characters.
#include "importer/bounded/bounded.h"
#include "importer/text/regex_walk.h"
#include "importer/text/string_split.h"

namespace svod::importer {
namespace {

Expr is_text(Expr rows) { return apply(Op::Not, equal(rows, 0)); }

// What lies between the matches of the separators, each looked for in what those before
// it leave.
Matches between(const NodeImport& node, Expr rows,
                const std::vector<std::string>& separators) {
  Expr rest = rows;
  for (const std::string& separator : separators) {
    const Matches found = find_matches(node, rest, automaton_of(node, separator));
    rest = select(found.inside, like(rest, 0), rest);
  }
  const Expr inside = is_text(rest), some = convert(inside, DType::I32);
  const int64_t width = extent(rows, 1);
  return {some * (1.0 - pad(cut(some, 1, 0, width - 1), {0, 1}, {0, 0}, 0)), inside};
}

// The tokens of u8[n, width] and the most that a string of this width can have.
Matches find_tokens(NodeImport& node, Expr rows, int64_t shortest, int64_t& most) {
  const int64_t width = extent(rows, 1);
  const std::vector<std::string> separators = node.get_strings("separators");
  most = (width + 1) / (shortest + 1);
  if (separators.size() == 1 && separators[0].empty()) {
    require(node, shortest == 1, "mincharnum must be 1 where characters are the tokens");
    most = width;
    return {convert(begins_character(rows), DType::I32), is_text(rows)};
  }
  for (const std::string& separator : separators)
    require(node, !separator.empty(), "an empty separator beside others");
  if (!separators.empty()) return between(node, rows, separators);
  require(node, node.has("tokenexp"), "it has neither separators nor tokenexp");
  most = width / shortest;
  return find_matches(node, rows, automaton_of(node, node.get_string("tokenexp")));
}

struct Tokens {
  Expr strings; // [n, most]
  Expr counts;  // i32[n, 1]
};

// Tokens of at least `shortest` characters, those of a string at the front.
Tokens read_tokens(NodeImport& node, Expr rows, int64_t shortest) {
  int64_t most = 0;
  const Matches found = find_tokens(node, rows, shortest, most);
  // Shorter ones need room until they are dropped.
  const int64_t room = shortest > 1 ? extent(rows, 1) : std::max<int64_t>(most, 1);
  const int64_t n = extent(rows, 0), width = extent(rows, 1);
  const Expr parts =
      reshape(parts_of(rows, found.begins, found.inside, room), {n * room, width});
  const Expr strings = strings_from(node, parts, {n, room});
  if (shortest == 1) return {strings, sum(found.begins, {1})};
  const Expr characters = sum(convert(begins_character(parts), DType::I32), {1});
  const Expr long_enough = reshape(
      less_equal(like(characters, static_cast<double>(shortest)), characters), {n, room});
  const Expr column = broadcast(columns(node.g, room), {n, room});
  const Expr key = select(long_enough, column, column + static_cast<double>(room));
  const Expr order{&node.g, argsort(node.g, key.id, 1, false)};
  const Expr first = count_along(node.g, DType::I64, n, 0, 2) * static_cast<double>(room);
  const Expr places = reshape(convert(order, DType::I64) + first, {n * room});
  const Expr sorted = reshape(gather(reshape(strings, {n * room}), places, 0), {n, room});
  return {cut(sorted, 1, 0, std::max<int64_t>(most, 1)),
          sum(convert(long_enough, DType::I32), {1})};
}

} // namespace

void import_tokenizer(NodeImport& node) {
  const Expr x = operand(node, 0);
  require(node, x.dtype() == DType::String, "the input must hold strings");
  require(node, x.rank() == 1 || x.rank() == 2, "the input must have one or two axes");
  require(node, node.has("pad_value"), "attribute 'pad_value' is missing");
  const int64_t shortest = within_reach(node, node.get_int("mincharnum"), "mincharnum");
  require(node, shortest >= 1, "mincharnum must be at least 1");
  const int64_t n = element_count(x.shape());
  if (n == 0) return give(node, 0, constant_strings(node, {}, x.shape()));
  const auto text = [&](const std::string& string) {
    return constant_strings(node, {string}, {1, 1});
  };
  Tokens tokens = read_tokens(node, rows_of(node, x), shortest);
  const Expr counts = reshape(tokens.counts, {n, 1});
  Expr longest = reshape(reduce(Op::ReduceMax, convert(counts, DType::I64), {0, 1}), {});
  Expr y = tokens.strings, last = counts;
  const Expr padding = text(node.get_string("pad_value"));
  if (node.get_int("mark") != 0) {
    // Of no tokens at all, not even the marks are left.
    y = join({broadcast(text("\x02"), {n, 1}), y, broadcast(padding, {n, 1})}, 1);
    last = counts + 2.0;
    longest = select(equal(longest, 0), longest, longest + 2.0);
  }
  const int64_t room = extent(y, 1);
  const Expr column = columns(node.g, room);
  y = select(less(column, last), y, padding);
  if (node.get_int("mark") != 0) y = select(equal(column, last - 1.0), text("\x03"), y);
  Shape shape = x.shape();
  std::vector<Size> sizes;
  for (int64_t size : shape) sizes.push_back(known_size(node.g, size));
  shape.push_back(room);
  sizes.push_back({longest, room});
  give_bounded(node, 0, reshape(y, shape), sizes);
}

} // namespace svod::importer
