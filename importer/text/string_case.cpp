// At run time every byte of every row decodes the character that would begin there; a
// table of two levels (128 characters to a page, equal pages stored once) says what leads
// to the mapped character. A byte of a mapped character gives way to the bytes of the new
// one at the first byte's place. Running sums of the bytes that each place gives are the
// positions in the result, since a mapped character may have another length (U+023A, two
// bytes, becomes U+2C65, three). Where a run finds no byte beyond ASCII it does none of
// that: 26 letters move by 32 (1000 strings of up to 64 bytes: 420 us, and 2 us so).
#include "importer/text/string_case.h"

#include "compiler/ir/region.h"
#include "compiler/support/text.h"

#include <algorithm>
#include <array>
#include <map>

namespace svod::importer {

namespace {

constexpr int64_t kPage = 128;
constexpr int64_t kLastPage = 1023; // U+1FF80: above it no character has case

struct CaseTable {
  std::vector<int64_t> pages; // kLastPage + 1 numbers
  std::vector<int64_t> add;   // kPage per page
  int64_t at(int64_t character) const {
    const int64_t page =
        pages[static_cast<size_t>(std::min(character / kPage, kLastPage))];
    return add[static_cast<size_t>(page * kPage + character % kPage)];
  }
};

CaseTable make_table(LetterCase wanted) {
  std::vector<int64_t> all(static_cast<size_t>((kLastPage + 1) * kPage));
#define CASE(to, first, last, step, add)                                                 \
  if (LetterCase::to == wanted)                                                          \
    for (int64_t c = first; c <= (last); c += step) all[static_cast<size_t>(c)] = add;
#include "importer/text/unicode_case.def"
  CaseTable table;
  std::map<std::vector<int64_t>, int64_t> known;
  for (auto at = all.begin(); at != all.end(); at += kPage) {
    const auto [page, added] =
        known.emplace(std::vector<int64_t>(at, at + kPage), known.size());
    if (added) table.add.insert(table.add.end(), at, at + kPage);
    table.pages.push_back(page->second);
  }
  return table;
}

const CaseTable& case_table(LetterCase to) {
  static const CaseTable lower = make_table(LetterCase::Lower);
  static const CaseTable upper = make_table(LetterCase::Upper);
  return to == LetterCase::Lower ? lower : upper;
}

// x[:, j + by], zeros beyond the end; by < 0: before the beginning.
Expr shifted(Expr x, int64_t by) {
  const int64_t width = extent(x, 1), keep = width - std::abs(by);
  if (keep <= 0) return like(x, 0);
  const Expr kept = cut(x, 1, std::max<int64_t>(by, 0), keep);
  return pad(kept, {0, by < 0 ? -by : 0}, {0, by > 0 ? by : 0}, 0);
}

Expr bits(Expr x, double from, double modulo) { // of numbers that are not negative
  return apply(Op::Mod, x / from, like(x, modulo));
}

Expr within(Expr x, double low, double high) {
  return both(less_equal(like(x, low), x), less_equal(x, like(x, high)));
}

// For each byte what the character that begins there has as bytes, 0 where none begins,
// and the character.
struct Decoded {
  Expr size, character;
};

Decoded decode(Expr bytes) {
  const Expr b0 = bytes, b1 = shifted(bytes, 1), b2 = shifted(bytes, 2),
             b3 = shifted(bytes, 3);
  const Expr t1 = within(b1, 0x80, 0xbf), t2 = both(t1, within(b2, 0x80, 0xbf)),
             t3 = both(t2, within(b3, 0x80, 0xbf));
  const Expr is2 = both(within(b0, 0xc2, 0xdf), t1),
             is3 = both(within(b0, 0xe0, 0xef), t2),
             is4 = both(within(b0, 0xf0, 0xf4), t3);
  const Expr tail1 = b1 - 0x80, tail2 = b2 - 0x80, tail3 = b3 - 0x80;
  const Expr two = (b0 - 0xc0) * 64 + tail1;
  const Expr three = ((b0 - 0xe0) * 64 + tail1) * 64 + tail2;
  const Expr four = (((b0 - 0xf0) * 64 + tail1) * 64 + tail2) * 64 + tail3;
  const Expr one = less(b0, 0x80);
  const Expr zero = like(b0, 0);
  return {select(is4, like(b0, 4),
                 select(is3, like(b0, 3),
                        select(is2, like(b0, 2), convert(one, DType::I32)))),
          select(is4, four, select(is3, three, select(is2, two, select(one, b0, zero))))};
}

// The bytes of characters, first one first; unused ones are 0.
std::array<Expr, 4> encoded(Expr c, Expr size) {
  const Expr last = bits(c, 1, 64) + 0x80, middle = bits(c, 64, 64) + 0x80,
             high = bits(c, 4096, 64) + 0x80, zero = like(c, 0);
  const auto by_size = [&](Expr one, Expr two, Expr three, Expr four) {
    return select(equal(size, 1), one,
                  select(equal(size, 2), two, select(equal(size, 3), three, four)));
  };
  return {by_size(c, c / 64 + 0xc0, c / 4096 + 0xe0, c / 262144 + 0xf0),
          by_size(zero, last, middle, high), by_size(zero, zero, last, middle),
          by_size(zero, zero, zero, last)};
}

Expr table_i32(Graph& g, const std::vector<int64_t>& values) {
  const Shape shape{static_cast<int64_t>(values.size())};
  return convert({&g, tensor_i64(g, shape, values)}, DType::I32);
}

Expr pick(Expr table, Expr index) {
  const Shape shape = index.shape();
  return reshape(gather(table, reshape(index, {element_count(shape)}), 0), shape);
}

} // namespace

std::string in_case(const std::string& text, LetterCase to) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    const auto [character, size] = decode_utf8(text, i);
    const int64_t add = size == 0 ? 0 : case_table(to).at(character);
    if (add == 0)
      out.append(text, i, std::max<size_t>(size, 1));
    else
      append_utf8(out, static_cast<uint32_t>(character + add));
    i += std::max<size_t>(size, 1);
  }
  return out;
}

namespace {

// A case mapping makes a row longer by half at most.
int64_t mapped_width(Expr rows) { return extent(rows, 1) + extent(rows, 1) / 2; }

Expr ascii_in_case(Expr rows, LetterCase to) {
  const bool lower = to == LetterCase::Lower;
  const Expr moved = lower ? rows + 32.0 : rows - 32.0;
  const Expr letter = lower ? within(rows, 'A', 'Z') : within(rows, 'a', 'z');
  return pad(select(letter, moved, rows), {0, 0},
             {0, mapped_width(rows) - extent(rows, 1)}, 0);
}

Expr unicode_in_case(Expr rows, LetterCase to) {
  Graph& g = *rows.g;
  const CaseTable& table = case_table(to);
  const Expr bytes = convert(rows, DType::I32);
  const Decoded at = decode(bytes);
  const Expr page =
      pick(table_i32(g, table.pages), minimum(at.character / static_cast<double>(kPage),
                                              static_cast<double>(kLastPage)));
  const Expr place =
      page * static_cast<double>(kPage) +
      apply(Op::Mod, at.character, like(bytes, static_cast<double>(kPage)));
  const Expr add = pick(table_i32(g, table.add), place);
  const Expr mapped = apply(Op::Not, equal(add, 0));
  // Bytes behind the first one of a mapped character.
  const Expr size = select(mapped, at.size, like(bytes, 0));
  Expr covered = less(1, shifted(size, -1));
  covered = either(covered, less(2, shifted(size, -2)));
  covered = either(covered, less(3, shifted(size, -3)));
  const Expr character = at.character + add;
  const auto needs = [&](double above) {
    return convert(less(above, character), DType::I32);
  };
  const Expr new_size = needs(0x7f) + needs(0x7ff) + needs(0xffff) + 1.0;
  const Expr plain = select(covered, like(bytes, 0),
                            convert(apply(Op::Not, equal(bytes, 0)), DType::I32));
  const Expr count = select(mapped, new_size, plain);
  const Expr end = with(count, scan(g, Op::ScanSum, count.id, 1));
  const int64_t width = mapped_width(rows);
  const std::array<Expr, 4> parts = encoded(character, new_size);
  Expr out = with(rows, constant_int(g, DType::U8, {extent(rows, 0), width + 1}, 0));
  for (int i = 0; i < 4; ++i) {
    const Expr value =
        i == 0 ? select(mapped, parts[0], bytes) : parts[static_cast<size_t>(i)];
    const Expr index = select(less(i, count), end - count + static_cast<double>(i),
                              like(count, static_cast<double>(width)));
    out = scatter(out, index, convert(value, DType::U8), 1, Combiner::Set);
  }
  return cut(out, 1, 0, width);
}

} // namespace

Expr rows_in_case(Expr rows, LetterCase to) {
  Graph& g = *rows.g;
  if (!g.depends_on_input(rows.id) || element_count(rows.shape()) == 0)
    return unicode_in_case(rows, to);
  const auto body = [&](Expr (*in_case)(Expr, LetterCase)) {
    Graph inside;
    const Expr in{&inside, inside.add_input("", rows.dtype(), rows.shape())};
    inside.add_output("", in_case(in, to).id);
    return g.add_body(std::make_shared<const Graph>(std::move(inside)));
  };
  const Expr greatest = reshape(reduce(Op::ReduceMax, rows, {0, 1}), {});
  const NodeId ascii = less(greatest, 0x80).id;
  const uint32_t plain = body(ascii_in_case), other = body(unicode_in_case);
  return {&g, result(g, branch(g, plain, other, {ascii, rows.id}), 0)};
}

} // namespace svod::importer
