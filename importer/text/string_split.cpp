// Each byte of a row is sent to its place in its part: a running count of the parts that
// have begun is the part, the distance from the last beginning (a running maximum) the
// place in it. Bytes of separators go to a column that is cut away.
#include "importer/text/string_split.h"

#include <algorithm>

namespace svod::importer {

namespace {

Expr running(Op op, Expr x) { return with(x, scan(*x.g, op, x.id, 1)); }

// x[:, j - 1], with `first` in front.
Expr before(Expr x, double first) {
  const int64_t width = extent(x, 1);
  return pad(cut(x, 1, 0, width - 1), {0, 1}, {0, 0}, first);
}

bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

Expr is_space(Expr x) {
  return either(equal(x, ' '),
                both(less_equal(like(x, '\t'), x), less_equal(x, like(x, '\r'))));
}

// `part` and `start`: of each byte, i32[n, width]; `kept`: whether it is in a part. A
// byte of a part that has no room stops the run.
Expr send(Expr rows, Expr part, Expr start, Expr kept, int64_t parts) {
  Graph& g = *rows.g;
  const int64_t n = extent(rows, 0), width = extent(rows, 1), size = parts * width;
  const Expr place = part * static_cast<double>(width) + (columns(g, width) - start);
  const Expr inside = select(kept, place, like(place, static_cast<double>(size)));
  const Expr beyond = both(less(like(part, static_cast<double>(parts - 1)), part),
                           apply(Op::Not, equal(rows, 0)));
  const Expr index = select(beyond, like(place, static_cast<double>(size + 1)), inside);
  const Expr empty = with(rows, constant_int(g, DType::U8, {n, size + 1}, 0));
  const Expr sent = scatter(empty, index, rows, 1, Combiner::Set);
  return reshape(cut(sent, 1, 0, size), {n, parts, width});
}

// Whether the separator stands at each byte; bool [n, width].
Expr occurrences(Expr rows, const std::string& separator) {
  const auto length = static_cast<int64_t>(separator.size());
  const int64_t width = extent(rows, 1);
  Expr found = equal(rows, static_cast<uint8_t>(separator[0]));
  for (int64_t k = 1; k < std::min(length, width); ++k) {
    const Expr next = pad(cut(rows, 1, k, width - k), {0, 0}, {0, k}, 0);
    found =
        both(found, equal(next, static_cast<uint8_t>(separator[static_cast<size_t>(k)])));
  }
  return length > width ? both(found, less(like(rows, 1), like(rows, 0))) : found;
}

// Whether two occurrences of a text may overlap: a part at its end is one at its
// beginning.
bool overlaps_itself(const std::string& text) {
  for (size_t k = 1; k < text.size(); ++k)
    if (text.compare(k, std::string::npos, text, 0, text.size() - k) == 0) return true;
  return false;
}

// Of occurrences that overlap the first counts; they are taken from left to right.
Expr without_overlaps(const NodeImport& node, Expr found, int64_t length) {
  constexpr int64_t kMostSteps = 1024;
  const int64_t width = extent(found, 1);
  if (width > kMostSteps)
    node.unsupported("a separator that may overlap itself, in strings of more than " +
                     std::to_string(kMostSteps) + " bytes");
  std::vector<Expr> taken;
  Expr free_from =
      with(found, constant_int(*found.g, DType::I32, {extent(found, 0), 1}, 0));
  for (int64_t j = 0; j < width; ++j) {
    const Expr here =
        both(cut(found, 1, j, 1), less_equal(free_from, like(free_from, double(j))));
    taken.push_back(here);
    free_from = select(here, like(free_from, double(j + length)), free_from);
  }
  return join(taken, 1);
}

} // namespace

SplitRows split_at(const NodeImport& node, Expr rows, const std::string& separator,
                   int64_t most, int64_t parts) {
  const auto length = static_cast<int64_t>(separator.size());
  const int64_t width = extent(rows, 1);
  Expr found = occurrences(rows, separator);
  if (overlaps_itself(separator)) found = without_overlaps(node, found, length);
  Expr hits = convert(found, DType::I32);
  Expr part = running(Op::ScanSum, hits);
  const Expr counted = less_equal(part, like(part, static_cast<double>(most)));
  hits = hits * convert(counted, DType::I32);
  // A byte belongs to a separator that began up to `length` - 1 bytes ago.
  const Expr column = columns(*rows.g, width);
  const Expr ends =
      select(equal(hits, 1), column + static_cast<double>(length), like(hits, 0));
  const Expr start = running(Op::ScanMax, ends);
  const Expr kept = both(less_equal(start, broadcast(column, start.shape())),
                         apply(Op::Not, equal(rows, 0)));
  part = minimum(part, static_cast<double>(std::min(most, width)));
  const Expr counts = squeeze(sum(hits, {1}), 1) + 1.0;
  return {send(rows, part, start, kept, parts), counts};
}

SplitRows split_at_space(Expr rows, int64_t most, int64_t parts) {
  const int64_t width = extent(rows, 1);
  const Expr some = apply(Op::Not, equal(rows, 0));
  const Expr solid = convert(both(some, apply(Op::Not, is_space(rows))), DType::I32);
  Expr begins = solid * (1.0 - before(solid, 0));
  Expr part = running(Op::ScanSum, begins);
  const Expr counted = less_equal(part, like(part, static_cast<double>(most) + 1));
  begins = begins * convert(counted, DType::I32);
  // Behind the last cut the rest is one part, with the space in it.
  const Expr rest = less(like(part, static_cast<double>(std::min(most, width))), part);
  part = minimum(part, static_cast<double>(std::min(most, width)) + 1) - 1.0;
  const Expr column = broadcast(columns(*rows.g, width), begins.shape());
  const Expr start = running(Op::ScanMax, begins * column);
  const Expr kept = both(some, either(equal(solid, 1), rest));
  return {send(rows, part, start, kept, parts), squeeze(sum(begins, {1}), 1)};
}

Expr parts_of(Expr rows, Expr begins, Expr inside, int64_t parts) {
  const Expr part = running(Op::ScanSum, begins) - 1.0;
  const Expr column = broadcast(columns(*rows.g, extent(rows, 1)), begins.shape());
  return send(rows, part, running(Op::ScanMax, begins * column), inside, parts);
}

std::vector<std::string> split_text(const std::string& text, const std::string& separator,
                                    int64_t most) {
  std::vector<std::string> parts;
  if (!separator.empty()) {
    size_t at = 0;
    for (size_t end; static_cast<int64_t>(parts.size()) < most &&
                     (end = text.find(separator, at)) != std::string::npos;
         at = end + separator.size())
      parts.push_back(text.substr(at, end - at));
    parts.push_back(text.substr(at));
    return parts;
  }
  for (size_t at = 0; at < text.size();) {
    if (is_space(text[at])) {
      ++at;
      continue;
    }
    size_t end = at;
    const bool last = static_cast<int64_t>(parts.size()) == most;
    while (end < text.size() && (last || !is_space(text[end]))) ++end;
    parts.push_back(text.substr(at, end - at));
    at = end;
  }
  return parts;
}

} // namespace svod::importer
