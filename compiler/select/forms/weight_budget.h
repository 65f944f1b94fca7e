// Which contractions get a fast form where those may add only so many bytes of weights.
#pragma once

#include <cstdint>
#include <vector>

namespace svod::select {

// A form of a contraction with fewer products, beside the contraction as it is written.
struct FormPrice {
  double saved_ns = 0;
  uint64_t more_bytes = 0; // of weights
};

// Of each contraction the bytes that its form may add, 0 where it stays as it is written.
// `forms`: of each contraction. All of them add no more than `budget`.
std::vector<uint64_t> spend(const std::vector<std::vector<FormPrice>>& forms,
                            uint64_t budget);

} // namespace svod::select
