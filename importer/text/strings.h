// Formulas over the bytes of strings. Bytes are u8[n, width], one row per element of a
// tensor of strings in row-major order, zeros after each string's end.
#pragma once

#include "importer/formula/movement.h"

namespace svod::importer {

// An input of an operator that takes nothing but strings.
Expr text_operand(NodeImport& node, size_t i);
// The rows of a tensor of strings; unsupported() where they cannot be had.
Expr rows_of(const NodeImport& node, Expr strings);
// A tensor of strings from computed rows, one per element of `shape`.
Expr strings_from(const NodeImport& node, Expr rows, Shape shape);
// Strings known when packing, as a tensor and as rows.
Expr constant_strings(const NodeImport& node, const std::vector<std::string>& strings,
                      Shape shape);
Expr constant_rows(const NodeImport& node, const std::vector<std::string>& strings);
Expr widen_rows(Expr rows, int64_t width);
// The bytes in each row, i32[n].
Expr row_lengths(Expr rows);
// Row by row, b behind a.
Expr join_rows(Expr a, Expr b);
// Whether each byte of UTF-8 is the first one of a character.
Expr begins_character(Expr rows);
// 0 .. width-1 along the second of two axes, i32[1, width].
Expr columns(Graph& g, int64_t width);

// Where a tensor's elements can only be strings known when packing: the strings, and for
// each element the number of its own. So any function of a string is a table.
struct Choice {
  std::vector<std::string> strings;
  Expr index; // i32, of the tensor's shape
};
std::optional<Choice> choice_of(const NodeImport& node, Expr strings);
// table[choice], of the choice's shape; `table` has one entry per string.
Expr look_up(const Choice& choice, Expr table);

// Whether strings are equal, with broadcasting.
Expr same_strings(const NodeImport& node, Expr a, Expr b);
// The position of each string in `keys`, i64; keys.size() where it is none of them. The
// first of equal keys counts.
Expr find_strings(const NodeImport& node, Expr strings,
                  const std::vector<std::string>& keys);
// The labels of a classifier from its attribute of integers; where its classes are
// strings, their numbers, and give_label() turns numbers into strings.
std::vector<int64_t> class_labels(const NodeImport& node, std::string_view ints);
void give_label(NodeImport& node, Expr labels);
// How many of the ascending `keys` [count] are not above each x, i64 of x's shape.
Expr count_not_above(Expr keys, Expr x);

} // namespace svod::importer
