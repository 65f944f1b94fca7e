// One line of a text form, read word by word. A fault is thrown as the sentence that says
// what was expected; the reader of the whole text adds the line's number.
#pragma once

#include "compiler/kernel/text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

class LineScanner {
public:
  explicit LineScanner(std::string_view line) : rest_(line) { skip_spaces(); }

  bool done() const { return rest_.empty(); }
  bool at(std::string_view text) const { return rest_.starts_with(text); }
  // Takes `text` if the line goes on with it.
  bool accept(std::string_view text) {
    if (!rest_.starts_with(text)) return false;
    rest_.remove_prefix(text.size());
    skip_spaces();
    return true;
  }
  void expect(std::string_view text) {
    if (!accept(text)) fail("'" + std::string(text) + "'");
  }
  int64_t number() {
    int64_t value = 0;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error != std::errc()) fail("a number");
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    skip_spaces();
    return value;
  }
  // The number behind a letter, as 12 of i12.
  uint32_t numbered(char letter) {
    if (!accept(std::string_view(&letter, 1))) fail(std::string(1, letter) + "N");
    const int64_t value = number();
    if (value < 0 || value > UINT32_MAX) fail(std::string(1, letter) + "N");
    return static_cast<uint32_t>(value);
  }
  bool at_numbered(char letter) const {
    return rest_.size() > 1 && rest_[0] == letter && rest_[1] >= '0' && rest_[1] <= '9';
  }
  std::vector<uint32_t> all_numbered(char letter) {
    std::vector<uint32_t> out;
    while (at_numbered(letter)) out.push_back(numbered(letter));
    return out;
  }
  // i3:2 i4:5
  std::vector<TileAxis> all_counts() {
    constexpr int64_t kMost = 1 << 16;
    std::vector<TileAxis> out;
    while (at_numbered('i')) {
      const AxisId axis = numbered('i');
      expect(":");
      const int64_t count = number();
      if (count < 0 || count > kMost) fail("a number from 0 to 65536");
      out.push_back({axis, static_cast<int>(count)});
    }
    return out;
  }
  // Up to the next space or one of `ends`.
  std::string_view word(std::string_view ends = {}) {
    size_t size = 0;
    while (size < rest_.size() && rest_[size] != ' ' &&
           ends.find(rest_[size]) == std::string_view::npos)
      ++size;
    if (size == 0) fail("a word");
    const std::string_view out = rest_.substr(0, size);
    rest_.remove_prefix(size);
    skip_spaces();
    return out;
  }
  void end() {
    if (!done()) fail("the end of the line");
  }
  [[noreturn]] void fail(const std::string& expected) const {
    throw expected + " was expected before '" + std::string(rest_.substr(0, 40)) + "'";
  }

private:
  void skip_spaces() {
    while (!rest_.empty() && (rest_[0] == ' ' || rest_[0] == '\r'))
      rest_.remove_prefix(1);
  }

  std::string_view rest_;
};

// The lines of a text, with numbers from 1; empty ones and those that begin with # count
// but are passed over.
struct NumberedLine {
  int number;
  std::string_view text;
};
inline std::vector<NumberedLine> lines_of(std::string_view text) {
  std::vector<NumberedLine> out;
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    const size_t begin = line.find_first_not_of(" \r");
    if (begin != std::string_view::npos && line[begin] != '#')
      out.push_back({number, line.substr(begin)});
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

// Gives each line to `read_line`; false at the first that it throws for.
template <class ReadLine>
bool read_lines(std::string_view text, TextFault& fault, ReadLine read_line) {
  for (const NumberedLine& line : lines_of(text)) {
    try {
      read_line(line.text);
    } catch (const std::string& why) {
      fault = {line.number, why};
      return false;
    }
  }
  return true;
}

} // namespace svod
