// --max-flash: which kernels stay for speed.
#include "packager/max_flash.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::packager;

namespace {

struct Made {
  const char* symbol;
  uint64_t small, fast;
  double work;
};

// Three kernels beside 1000 bytes of other things, and what was tried.
struct Builder {
  std::vector<Made> kernels = {
      {"k0", 100, 500, 1e3}, {"k1", 200, 900, 9e6}, {"k2", 300, 400, 1e6}};
  uint64_t shared = 0; // bytes that come with the first kernel for speed
  std::vector<size_t> tried;

  FlashAttempt operator()(const std::set<Digest>& fast) {
    FlashAttempt out{1000 + (fast.empty() ? 0 : shared), {}};
    for (const Made& k : kernels) {
      const Digest digest = sha256(std::string_view(k.symbol));
      const uint64_t bytes = fast.contains(digest) ? k.fast : k.small;
      out.kernels.push_back({digest, k.symbol, bytes, k.work});
      out.flash += bytes;
    }
    tried.push_back(fast.size());
    return out;
  }
  std::string fit(uint64_t most) {
    return fit_flash(most, 2800, [&](const std::set<Digest>& fast) {
      return std::optional((*this)(fast));
    });
  }
};

} // namespace

TEST_CASE("what gains most per byte stays for speed", "[max-flash]") {
  Builder all;
  CHECK(all.fit(2400) ==
        "--max-flash: 1 of 3 kernels are for size, which saves 400 bytes of 2800; for "
        "speed are k1, k2, which do 100 % of the operations");
  Builder one;
  CHECK(one.fit(2350) ==
        "--max-flash: 2 of 3 kernels are for size, which saves 500 bytes of 2800; for "
        "speed are k1, which do 90 % of the operations");
  // The busiest one is too large.
  Builder light;
  CHECK(light.fit(1700) ==
        "--max-flash: 2 of 3 kernels are for size, which saves 1100 bytes of 2800; for "
        "speed are k2, which do 10 % of the operations");
}

TEST_CASE("what kernels share counts, too", "[max-flash]") {
  Builder shared;
  shared.shared = 50;
  CHECK(shared.fit(2400).find("2 of 3 kernels are for size") != std::string::npos);
  // None, all, two that seemed to fit, and one that does.
  CHECK(shared.tried == std::vector<size_t>{0, 3, 2, 1});
}

TEST_CASE("what cannot fit is said", "[max-flash]") {
  Builder none;
  CHECK(none.fit(1500) ==
        "--max-flash: all kernels are for size, and it is 1600 bytes all the same");
  CHECK(none.tried == std::vector<size_t>{0});
}
