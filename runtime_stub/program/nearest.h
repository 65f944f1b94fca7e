// The nearest of several names: the one that the fewest insertions, deletions and
// replacements of a character turn the given one into.
#ifndef SVOD_PROGRAM_NEAREST_H
#define SVOD_PROGRAM_NEAREST_H

#include "runtime_stub/program/text.h"

namespace packed {

class Nearest {
public:
  explicit Nearest(Text given) : given_(given) {}
  void consider(Text name);
  Text name() const { return name_; } // empty: nothing was considered

private:
  Text given_, name_;
  uint32_t away_ = ~0u;
};

} // namespace packed

#endif
