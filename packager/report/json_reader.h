// Reads JSON that somebody gives: whether it is JSON at all, and what its object holds.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace svod::packager {

// The members of the object that `text` is, each as its own JSON, by the names as they
// are written. Nothing when the text is no JSON (RFC 8259) or no object. The members
// point into the text.
std::optional<std::map<std::string, std::string_view>>
json_members(std::string_view text);

} // namespace svod::packager
