// The JSON is read for three names and two levels deep; all else is passed over, so that
// a runner may say more than that.
#include "packager/tune/profile.h"

#include <algorithm>
#include <charconv>
#include <utility>

namespace svod::packager {

namespace {

// Reads one value after the other; `ok` is false from the first fault on.
class Reader {
public:
  explicit Reader(std::string_view text) : rest_(text) {}
  bool ok = true;

  // Whether another member of an object or list comes, of which `count` were read.
  bool next(char close, size_t count) {
    spaces();
    if (accept(close)) return false;
    if (count > 0) expect(',');
    return ok;
  }
  template <class ReadMember> void object(ReadMember read) {
    expect('{');
    for (size_t count = 0; ok && next('}', count); ++count) {
      const std::string name = string();
      expect(':');
      read(name);
    }
  }
  template <class ReadValue> void list(ReadValue read) {
    expect('[');
    for (size_t count = 0; ok && next(']', count); ++count) read();
  }
  // As it stands between the quotes: names of kernels and levels have no escapes.
  std::string string() {
    expect('"');
    std::string out;
    while (!rest_.empty() && rest_[0] != '"') {
      const size_t size = rest_[0] == '\\' ? std::min<size_t>(2, rest_.size()) : 1;
      out += rest_.substr(0, size);
      rest_.remove_prefix(size);
    }
    expect('"');
    return out;
  }
  double number() {
    spaces();
    double value = 0;
    const auto [end, error] =
        std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    ok = ok && error == std::errc();
    rest_.remove_prefix(static_cast<size_t>(end - rest_.data()));
    return value;
  }
  void skip(int depth = 0) {
    constexpr int kMostDepth = 64;
    spaces();
    if (depth > kMostDepth || rest_.empty())
      ok = false;
    else if (rest_[0] == '{')
      object([&](const std::string&) { skip(depth + 1); });
    else if (rest_[0] == '[')
      list([&] { skip(depth + 1); });
    else if (rest_[0] == '"')
      string();
    else
      rest_.remove_prefix(std::min(rest_.find_first_of(",]} \n\r\t"), rest_.size()));
  }

private:
  void spaces() {
    rest_.remove_prefix(std::min(rest_.find_first_not_of(" \n\r\t"), rest_.size()));
  }
  bool accept(char c) {
    if (rest_.empty() || rest_[0] != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    spaces();
    ok = accept(c) && ok;
  }

  std::string_view rest_;
};

void read_kernel(Reader& reader, Profile& out) {
  std::string name;
  double us = 0;
  reader.object([&](const std::string& member) {
    if (member == "name")
      name = reader.string();
    else if (member == "us")
      us = reader.number();
    else
      reader.skip();
  });
  out.kernels[name] += us;
}

} // namespace

std::optional<Profile> parse_profile(std::string_view text) {
  Profile out;
  Reader reader(text);
  reader.object([&](const std::string& member) {
    if (member == "kernels")
      reader.list([&] { read_kernel(reader, out); });
    else if (member == "total_us")
      out.total = reader.number();
    else if (member == "level")
      out.level = reader.string();
    else if (member == "unit")
      out.unit = reader.string();
    else
      reader.skip();
  });
  if (!reader.ok || out.kernels.empty() || !(out.total > 0)) return std::nullopt;
  return out;
}

void Least::add(double run) {
  if (runs == 0 || run < value)
    next = std::exchange(value, run);
  else if (runs == 1 || run < next)
    next = run;
  ++runs;
}

void LeastTimes::add(const Profile& run) {
  total.add(run.total);
  for (const auto& [name, time] : run.kernels) kernels[name].add(time);
}

bool is_faster(const Least& now, const Least& before, double share) {
  const double beyond = std::max({share * before.value, now.spread(), before.spread()});
  return before.value - now.value > beyond;
}

} // namespace svod::packager
