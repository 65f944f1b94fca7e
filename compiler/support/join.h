// Words or numbers of a list as one text.
#pragma once

#include <concepts>
#include <string>
#include <string_view>
#include <type_traits>

namespace svod {

// "a, b"; empty for an empty list.
template <typename List>
std::string join(const List& list, std::string_view separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& item : list) {
    if (!first) out += separator;
    first = false;
    if constexpr (std::integral<std::remove_cvref_t<decltype(item)>>)
      out += std::to_string(item);
    else
      out += item;
  }
  return out;
}

} // namespace svod
