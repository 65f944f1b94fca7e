// Why each kernel is what it is: --explain, as text beside --emit=fused and in --json.
#pragma once

#include "compiler/explain/explain.h"

namespace svod::packager {

std::string explanation_text(const explain::Account& account);
// An object.
std::string explanation_json(const explain::Account& account);

} // namespace svod::packager
