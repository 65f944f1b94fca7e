#include "packager/report/json_reader.h"

namespace svod::packager {

namespace {

// Deeper than any report, and far from where the stack ends.
constexpr int kDeepest = 64;

class JsonScan {
public:
  explicit JsonScan(std::string_view text) : text_(text) {}
  bool value(int depth);
  bool object(int depth, std::map<std::string, std::string_view>* members);
  void spaces() {
    while (at_ < text_.size() &&
           std::string_view(" \t\r\n").find(text_[at_]) != std::string_view::npos)
      ++at_;
  }
  bool ended() const { return at_ == text_.size(); }

private:
  char next() const { return at_ < text_.size() ? text_[at_] : '\0'; }
  bool take(char c) {
    if (next() != c) return false;
    ++at_;
    return true;
  }
  bool word(std::string_view word) {
    if (!text_.substr(at_).starts_with(word)) return false;
    at_ += word.size();
    return true;
  }
  bool digits() {
    const size_t begin = at_;
    while (next() >= '0' && next() <= '9') ++at_;
    return at_ > begin;
  }
  bool number();
  bool string();
  bool list(int depth);

  std::string_view text_;
  size_t at_ = 0;
};

bool JsonScan::number() {
  take('-');
  if (!take('0') && !digits()) return false;
  if (take('.') && !digits()) return false;
  if (!take('e') && !take('E')) return true;
  if (!take('+')) take('-');
  return digits();
}

bool JsonScan::string() {
  if (!take('"')) return false;
  while (at_ < text_.size()) {
    const char c = text_[at_++];
    if (c == '"') return true;
    if (static_cast<unsigned char>(c) < 0x20) return false;
    if (c != '\\') continue;
    if (take('u')) {
      for (int i = 0; i < 4; ++i, ++at_)
        if (std::string_view("0123456789abcdefABCDEF").find(next()) ==
            std::string_view::npos)
          return false;
    } else if (std::string_view("\"\\/bfnrt").find(next()) == std::string_view::npos) {
      return false;
    } else {
      ++at_;
    }
  }
  return false;
}

bool JsonScan::list(int depth) {
  take('[');
  spaces();
  if (take(']')) return true;
  do {
    if (!value(depth)) return false;
  } while (take(','));
  return take(']');
}

bool JsonScan::object(int depth, std::map<std::string, std::string_view>* members) {
  if (!take('{')) return false;
  spaces();
  if (take('}')) return true;
  do {
    spaces();
    const size_t name = at_;
    if (!string()) return false;
    const std::string_view key = text_.substr(name + 1, at_ - name - 2);
    spaces();
    if (!take(':')) return false;
    spaces();
    const size_t begin = at_;
    if (!value(depth)) return false;
    if (members)
      members->insert_or_assign(std::string(key), text_.substr(begin, at_ - begin));
  } while (take(','));
  return take('}');
}

// With the spaces around it.
bool JsonScan::value(int depth) {
  if (depth == kDeepest) return false;
  spaces();
  bool good = false;
  if (next() == '{')
    good = object(depth + 1, nullptr);
  else if (next() == '[')
    good = list(depth + 1);
  else if (next() == '"')
    good = string();
  else
    good = word("true") || word("false") || word("null") || number();
  spaces();
  return good;
}

} // namespace

std::optional<std::map<std::string, std::string_view>>
json_members(std::string_view text) {
  JsonScan scan(text);
  std::map<std::string, std::string_view> members;
  scan.spaces();
  if (!scan.object(0, &members)) return std::nullopt;
  scan.spaces();
  if (!scan.ended()) return std::nullopt;
  return members;
}

} // namespace svod::packager
