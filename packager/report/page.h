// The page that --report writes: one HTML file that needs no other one and no network.
#pragma once

#include <string>

namespace svod::packager {

// `json`: what --json writes of the pack. The page holds it as it is, and all that it
// shows it reads from there when it is opened.
std::string page_text(const std::string& json);

} // namespace svod::packager
