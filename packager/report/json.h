// Writes JSON in the order it is told: the same calls give the same bytes. Strings are
// model data, so every byte that is not plain ASCII text leaves as an escape.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace svod::packager {

class JsonWriter {
public:
  JsonWriter& begin_object() { return open('{'); }
  JsonWriter& end_object() { return close('}'); }
  JsonWriter& begin_list() { return open('['); }
  JsonWriter& end_list() { return close(']'); }
  JsonWriter& key(std::string_view name);
  JsonWriter& value(std::string_view text);
  JsonWriter& value(const char* text) { return value(std::string_view(text)); }
  JsonWriter& value(int64_t number);
  JsonWriter& value(uint64_t number);
  JsonWriter& value(int number) { return value(int64_t{number}); }
  JsonWriter& milliseconds(double number); // three decimals
  JsonWriter& boolean(bool truth);
  // An object that was written before, as it stands.
  JsonWriter& raw(std::string_view json);
  template <class T> JsonWriter& pair(std::string_view name, const T& content) {
    return key(name).value(content);
  }

  const std::string& text() const { return text_; }

private:
  JsonWriter& open(char bracket);
  JsonWriter& close(char bracket);
  void separate();
  void quote(std::string_view text);
  std::string text_;
  std::vector<bool> has_members_; // of each open bracket
  bool after_key_ = false;
};

} // namespace svod::packager
