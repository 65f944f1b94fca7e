// Numbers among keys known when packing: what label encoders and counts of n-grams ask.
#pragma once

#include "importer/formula/movement.h"

namespace svod::importer {

// Where numbers lead: table[place] for each.
struct Found {
  std::vector<int64_t> table;
  Expr place;
};

// The value of each whole number, `none` where it is no key. Keys are distinct, with one
// value each.
Found find_whole(Expr x, const std::vector<int64_t>& keys,
                 const std::vector<int64_t>& values, int64_t none);

// The position of each number among ascending keys [count], their count where it is none.
Expr find_sorted(Expr x, Expr keys);

// table[index], of the shape of index.
Expr look_up(Expr table, Expr index);

// The order of the keys by size.
std::vector<size_t> ascending(const std::vector<int64_t>& keys);
std::vector<size_t> ascending(const std::vector<double>& keys);

} // namespace svod::importer
