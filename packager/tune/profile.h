// What a packed program's --profile=json says, and times of two programs that take turns.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace svod::packager {

struct Profile {
  std::string level;
  double total = 0; // in `unit`, as all of it
  std::string unit = "us";
  std::map<std::string, double> kernels; // by name; of all launches together
};

// Nothing when the text is no such object.
std::optional<Profile> parse_profile(std::string_view text);

// The least of several runs, and how far the next one lies above it.
struct Least {
  double value = 0, next = 0;
  int runs = 0;
  void add(double run);
  double spread() const { return runs < 2 ? value : next - value; }
};

struct LeastTimes {
  Least total;
  std::map<std::string, Least> kernels;
  void add(const Profile& run);
};

// Whether what took `before` takes less, by more than runs of either differ and more than
// `share` of it.
bool is_faster(const Least& now, const Least& before, double share);

} // namespace svod::packager
