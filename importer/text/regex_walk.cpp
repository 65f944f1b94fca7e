// A whole match is one walk, a byte per step. Matches inside a string are longest ones
// from every place: as many walks side by side, each of which remembers where it last
// accepted; then a pass from left to right takes those that do not begin inside the one
// before. Both are loops of the run: 64 steps written out took 16 s to compile. Most
// patterns of words and separators are bytes of a set, [a-z0-9_]+ or [ ,]: there a look
// at the byte before does.
#include "importer/text/regex_walk.h"

#include <algorithm>
#include <functional>
#include <optional>

namespace svod::importer {

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

using Exprs = std::vector<Expr>;

// Steps that change what is carried. Each also shows something of one shape.
struct Steps {
  int64_t count;
  Exprs carried;
  int64_t shown;
  // Of a step's number, i64[], and what is carried: what is carried on, then what is
  // shown.
  std::function<Exprs(Expr, const Exprs&)> step;
};

// What is carried at the end, then per shown value all of them, [count, ...]. A loop of
// the run, whose body is compiled once; written out where all is known when packing, and
// inside another loop.
Exprs walk(const NodeImport& node, const Steps& steps, bool is_known) {
  Graph& g = node.g;
  RuleLoop loop;
  loop.limit = steps.count;
  loop.start = constant_int(g, DType::Bool, {}, 1);
  for (Expr value : steps.carried) loop.carried.push_back(value.id);
  loop.stacked = steps.shown;
  loop.body = [&](NodeId at_step, const std::vector<NodeId>& carried) {
    Exprs at;
    for (NodeId id : carried) at.push_back({&g, id});
    std::vector<NodeId> ids{constant_int(g, DType::Bool, {}, 1)};
    for (Expr value : steps.step({&g, at_step}, at)) ids.push_back(value.id);
    return ids;
  };
  const RuleLoopResult made = is_known ? RuleLoopResult{} : node.try_loop(loop);
  if (!made.values.empty()) {
    Exprs out;
    for (size_t i = 1; i < made.values.size(); ++i) out.push_back({&g, made.values[i]});
    return out;
  }
  Exprs carried = steps.carried;
  std::vector<Exprs> shown(static_cast<size_t>(steps.shown));
  for (int64_t k = 0; k < steps.count; ++k) {
    const Exprs made = steps.step(number(g, DType::I64, static_cast<double>(k)), carried);
    std::copy_n(made.begin(), carried.size(), carried.begin());
    for (size_t i = 0; i < shown.size(); ++i)
      shown[i].push_back(unsqueeze(made[carried.size() + i], 0));
  }
  for (const Exprs& all : shown) carried.push_back(join(all, 0));
  return carried;
}

// The length of the longest match that begins at each byte, 0: none; i32[n, width].
Expr longest_from(const NodeImport& node, Expr rows, const WalkTables& tables) {
  const int64_t width = extent(rows, 1);
  const Expr of_class = tables.classes_of(rows);
  const Expr behind = tables.classes_of(like(rows, 0));
  const Expr padded = join({of_class, behind}, 1), none = like(of_class, 0);
  const auto step = [&](Expr k, const Exprs& at) {
    const auto here = [&](Expr x) { return Expr{x.g, node.here(x.id)}; };
    const WalkTables own{here(tables.class_of), here(tables.next), here(tables.accepts),
                         tables.classes};
    const Expr places = count_along(*k.g, DType::I64, width, 0, 1) + k;
    const Expr state = own.step(at[0], take(here(padded), 1, places));
    const Expr length = convert(k + 1.0, DType::I32);
    return Exprs{state, select(own.accepted(state), length, at[1])};
  };
  return walk(node, {width, {none, none}, 0, step}, known(rows))[1];
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
  const Expr longest =
      longest_from(node, rows, walk_tables(*rows.g, automaton, Zeros::End));
  const auto step = [&](Expr k, const Exprs& at) {
    const Expr all{k.g, node.here(longest.id)}, free_from = at[0];
    const Expr length = take(all, 1, reshape(k, {1})), here = convert(k, DType::I32);
    const Expr taken = both(less(like(length, 0), length), less_equal(free_from, here));
    const Expr next = select(taken, length + here, free_from);
    return Exprs{next, convert(taken, DType::I32), convert(less(here, next), DType::I32)};
  };
  const Expr start = with(rows, constant_int(*rows.g, DType::I32, {n, 1}, 0));
  const Exprs walked = walk(node, {width, {start}, 2, step}, known(rows));
  const auto by_string = [&](Expr shown) { // of [width, n, 1]
    return permute(reshape(shown, {width, n}), {1, 0});
  };
  return {by_string(walked[1]), equal(by_string(walked[2]), 1)};
}

} // namespace svod::importer
