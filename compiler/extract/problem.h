// Extraction as a problem of its own: of each class that is needed one form is taken, and
// the classes that it reads are needed too. The cost is that of the forms taken, each
// counted once however often it is read (DAG cost), so sharing pays. What is taken may
// not read itself.
//
// Costs are integers: sums do not depend on their order, and equal is equal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace svod::extract {

using ClassId = uint32_t;

struct Form {
  int64_t cost = 0; // not negative
  std::vector<ClassId> inputs;
};

struct Problem {
  std::vector<std::vector<Form>> classes; // each has a form
  std::vector<ClassId> roots;
};

// By class: the number of its form, kNotTaken where the class is not needed.
using Choice = std::vector<uint32_t>;
inline constexpr uint32_t kNotTaken = ~0u;

} // namespace svod::extract
