// A whole match is one walk, a byte per step. Matches inside a string are longest ones
// from every place: as many walks side by side, each of which remembers where it last
// accepted; then a pass from left to right takes those that do not begin inside the one
// before. Most patterns of words and separators are bytes of a set, [a-z0-9_]+ or [ ,]:
// there a look at the byte before does.
#include "importer/regex_walk.h"

#include <algorithm>
#include <optional>

namespace svod {

namespace {

// Steps that are written out, each of several nodes.
constexpr int64_t kMostSteps = 1024;
constexpr int64_t kMostWalks = 256; // from every place, so their work is its square

void check_width(const NodeImport& node, int64_t width, int64_t most) {
  if (width > most)
    node.unsupported("strings of more than " + std::to_string(most) + " bytes");
}

Expr table_of(Graph& g, const std::vector<int64_t>& values) {
  const Shape all{static_cast<int64_t>(values.size())};
  return convert({&g, tensor_i64(g, all, values)}, DType::I32);
}

// gather(table, index) for an index of any shape.
Expr entries(Expr table, Expr index) {
  const Shape shape = index.shape();
  return reshape(gather(table, reshape(index, {element_count(shape)}), 0), shape);
}

// x[:, j - 1], 0 in front.
Expr before(Expr x) { return pad(cut(x, 1, 0, extent(x, 1) - 1), {0, 1}, {0, 0}, 0); }

// The matches are single bytes of a set, or as many as follow one another.
struct ByteSet {
  std::vector<int64_t> has; // 256, 0 or 1
  bool repeats;
};

std::optional<ByteSet> as_byte_set(const Automaton& automaton) {
  const auto classes = static_cast<size_t>(automaton.class_count);
  std::vector<bool> dead; // nothing that begins here matches
  for (size_t s = 0; s < automaton.accepts.size(); ++s) {
    const auto row = automaton.next.begin() + static_cast<ptrdiff_t>(s * classes);
    dead.push_back(!automaton.accepts[s] &&
                   std::all_of(row, row + static_cast<ptrdiff_t>(classes),
                               [&](uint32_t to) { return to == s; }));
  }
  const auto leads_on = [&](size_t state) {
    std::vector<bool> out;
    for (size_t c = 0; c < classes; ++c)
      out.push_back(!dead[automaton.next[state * classes + c]]);
    return out;
  };
  const std::vector<bool> first = leads_on(0), nothing(classes);
  std::optional<std::vector<bool>> later; // the same for all states but the first
  for (size_t s = 1; s < dead.size(); ++s) {
    if (dead[s]) continue;
    const std::vector<bool> here = leads_on(s);
    if (!automaton.accepts[s] || (later && *later != here)) return std::nullopt;
    later = here;
  }
  if (!later || (*later != first && *later != nothing)) return std::nullopt;
  ByteSet set{std::vector<int64_t>(256), *later == first};
  for (size_t byte = 1; byte < 256; ++byte)
    set.has[byte] = first[automaton.classes[byte]];
  return set;
}

Matches find_bytes(Expr rows, const ByteSet& set) {
  const Expr inside = entries(table_of(*rows.g, set.has), convert(rows, DType::I32));
  const Expr begins = set.repeats ? inside * (1.0 - before(inside)) : inside;
  return {begins, equal(inside, 1)};
}

// The length of the longest match that begins at each byte, 0: none; i32[n, width].
Expr longest_from(Expr rows, const WalkTables& tables) {
  const int64_t width = extent(rows, 1);
  const Expr of_class = tables.classes_of(rows);
  const Expr behind = tables.classes_of(like(cut(rows, 1, 0, 1), 0)); // of a zero
  Expr state = like(of_class, 0), longest = state;
  for (int64_t k = 0; k < width; ++k) {
    const Expr front = cut(of_class, 1, k, width - k);
    const Expr tail = broadcast(behind, {extent(rows, 0), k});
    state = tables.step(state, k == 0 ? front : join({front, tail}, 1));
    longest = select(tables.accepted(state), like(longest, static_cast<double>(k + 1)),
                     longest);
  }
  return longest;
}

} // namespace

Automaton automaton_of(const NodeImport& node, const std::string& pattern) {
  CompiledRegex regex = compile_regex(pattern);
  const std::string what = "the pattern cannot be used: " + regex.failure;
  if (!regex.failure.empty())
    regex.malformed ? node.invalid(what) : node.unsupported(what);
  return std::move(regex.automaton);
}

Expr WalkTables::classes_of(Expr rows) const {
  return entries(class_of, convert(rows, DType::I32));
}
Expr WalkTables::step(Expr state, Expr of_class) const {
  return entries(next, state + of_class);
}
Expr WalkTables::accepted(Expr state) const {
  return equal(entries(accepts, state / static_cast<double>(classes)), 1);
}

WalkTables walk_tables(Graph& g, const Automaton& automaton, Zeros zeros) {
  const int64_t classes = automaton.class_count + 1,
                states = static_cast<int64_t>(automaton.accepts.size());
  std::vector<int64_t> class_of(automaton.classes.begin(), automaton.classes.end());
  class_of[0] = classes - 1;
  std::vector<int64_t> next, accepts;
  for (int64_t s = 0; s < states; ++s) {
    for (int64_t c = 0; c + 1 < classes; ++c)
      next.push_back(classes *
                     automaton.next[static_cast<size_t>(s * (classes - 1) + c)]);
    next.push_back(classes * (zeros == Zeros::Stay ? s : states));
    accepts.push_back(automaton.accepts[static_cast<size_t>(s)]);
  }
  if (zeros == Zeros::End) { // a state of which nothing leads away
    next.insert(next.end(), static_cast<size_t>(classes), classes * states);
    accepts.push_back(0);
  }
  return {table_of(g, class_of), table_of(g, next), table_of(g, accepts), classes};
}

Expr whole_matches(const NodeImport& node, Expr rows, const Automaton& automaton) {
  const int64_t n = extent(rows, 0), width = extent(rows, 1);
  check_width(node, width, kMostSteps);
  const WalkTables tables = walk_tables(*rows.g, automaton, Zeros::Stay);
  const Expr of_class = tables.classes_of(rows);
  Expr state = with(rows, constant_int(*rows.g, DType::I32, {n}, 0));
  for (int64_t j = 0; j < width; ++j)
    state = tables.step(state, squeeze(cut(of_class, 1, j, 1), 1));
  return tables.accepted(state);
}

Matches find_matches(const NodeImport& node, Expr rows, const Automaton& automaton) {
  if (automaton.looks_around)
    node.unsupported("a pattern with ^, $ or \\b inside longer strings");
  if (const auto set = as_byte_set(automaton)) return find_bytes(rows, *set);
  const int64_t n = extent(rows, 0), width = extent(rows, 1);
  check_width(node, width, kMostWalks);
  const Expr longest = longest_from(rows, walk_tables(*rows.g, automaton, Zeros::End));
  std::vector<Expr> begins, inside;
  Expr free_from = with(rows, constant_int(*rows.g, DType::I32, {n, 1}, 0));
  for (int64_t j = 0; j < width; ++j) {
    const Expr here = like(free_from, static_cast<double>(j));
    const Expr length = cut(longest, 1, j, 1);
    const Expr taken = both(less(like(length, 0), length), less_equal(free_from, here));
    free_from = select(taken, length + static_cast<double>(j), free_from);
    begins.push_back(convert(taken, DType::I32));
    inside.push_back(less(here, free_from));
  }
  return {join(begins, 1), join(inside, 1)};
}

} // namespace svod
