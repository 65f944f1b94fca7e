// Which loop axes the value of an expression depends on, through whatever it is made of.
#pragma once

#include "compiler/kernel/kernel.h"

namespace svod {

// By expression, by axis. The result of a stage depends on no axis that the stage
// reduces.
using Dependence = std::vector<std::vector<bool>>;
Dependence dependence_of(const Kernel& kernel);

} // namespace svod
