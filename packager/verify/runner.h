// How a program that was packed for another machine is run on this one.
#pragma once

#include "packager/options.h"

#include <optional>
#include <string>
#include <vector>

namespace svod::packager {

// Words in front of a program's own: none where it runs here as it is, --runner's where
// that is given, else an emulator of Linux programs that is on PATH. No value: nothing
// runs it.
std::optional<std::vector<std::string>> find_runner(const Options& options);

// A program of PATH by its name, as a path; empty when there is none.
std::string find_on_path(const std::string& name);

// "ssh board run" as words.
std::vector<std::string> runner_words(const std::string& command);

} // namespace svod::packager
