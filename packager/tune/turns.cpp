#include "packager/tune/turns.h"

namespace svod::packager {

// The one that begins changes, since the second finds the caches that the first one left.
std::optional<Turns>
take_turns(int turns, const std::string& now, const std::string& other,
           const std::string& level,
           const std::function<std::optional<Profile>(const std::string&)>& run,
           const std::function<bool()>& stops) {
  Turns out;
  for (; out.whole < turns; ++out.whole)
    for (const bool is_now : {out.whole % 2 == 0, out.whole % 2 != 0}) {
      if (stops()) return out;
      const std::optional<Profile> profile = run(is_now ? now : other);
      if (!profile || profile->level != level) return std::nullopt;
      (is_now ? out.now : out.other).add(*profile);
    }
  return out;
}

} // namespace svod::packager
