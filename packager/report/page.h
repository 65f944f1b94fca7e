// Pages about packs: each is one HTML file that needs no other one and no network.
#pragma once

#include <string>

namespace svod::packager {

// `json`: what --json writes of the pack. The page holds it as it is, and all that it
// shows it reads from there when it is opened.
std::string page_text(const std::string& json);

// What changed between two packs.
std::string comparison_text(const std::string& before, const std::string& after);

// `profile`: what --profile=json of a program prints. `machine`: what write_machine
// writes, or null.
std::string profile_text(const std::string& profile, const std::string& machine);

} // namespace svod::packager
