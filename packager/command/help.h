// What is printed about the options: generated from their table, so that none is missing.
#pragma once

#include "packager/options.h"

#include <string>

namespace svod::packager {

std::string help_text(Verb verb);
// What svod-pack consists of and under which terms, and what of it is in what it writes.
std::string licences();
// In roff, section 1.
std::string man_page();
// Of "bash", "zsh" or "fish"; empty for any other word.
std::string completion_script(const std::string& shell);

} // namespace svod::packager
