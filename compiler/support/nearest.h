// Which of the words there are a user may have meant.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace svod {

// The word with the fewest letters to insert, leave out or replace; the first of equals.
// `words` is not empty.
std::string_view nearest(std::string_view word, std::span<const std::string_view> words);

// What a message says after an unknown word: "; the nearest is 'add'; there are add,
// sub".
std::string nearest_text(std::string_view word, std::span<const std::string_view> words);

} // namespace svod
