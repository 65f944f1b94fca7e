// Runs that are shared between threads only where that pays.
#include "runtime_stub/program/sharing.h"

#include <catch2/catch.hpp>

using packed::Sharing;

namespace {

// Ticks of runs on one machine; what the caller waits is of shared ones.
struct Machine {
  uint64_t shared, alone, waited;
};

struct Total {
  uint64_t ticks = 0, shared = 0;
};

Total runs(Sharing& sharing, const Machine& machine, int count) {
  Total out;
  for (int i = 0; i < count; ++i) {
    const bool shares = sharing.shares();
    const uint64_t ticks = shares ? machine.shared : machine.alone;
    sharing.took(ticks, shares ? machine.waited : 0);
    out.ticks += ticks;
    out.shared += shares ? 1 : 0;
  }
  return out;
}

constexpr Machine kQuiet{5500, 10000, 300}, kBusy{14000, 10000, 6000}, kTiny{17, 10, 7},
    kUneven{8000, 10000, 3000};

} // namespace

TEST_CASE("where threads help, runs are shared", "[sharing]") {
  Sharing sharing;
  CHECK(runs(sharing, kQuiet, 20).shared == 20);
  const Total later = runs(sharing, kQuiet, 10000);
  CHECK(later.ticks < 10000 * 5500 * 1.012);
  CHECK(later.shared < 10000); // it asks again
}

TEST_CASE("where a second thread costs more than it does, runs are alone", "[sharing]") {
  for (const Machine& machine : {kBusy, kTiny}) {
    Sharing sharing;
    const Total all = runs(sharing, machine, 10000);
    CHECK(double(all.ticks) < 10000 * double(machine.alone) * 1.02);
    CHECK(all.shared > 0);
  }
}

TEST_CASE("a core that becomes busy is noticed at once, one that becomes free soon",
          "[sharing]") {
  Sharing sharing;
  runs(sharing, kQuiet, 1000);
  const Total busy = runs(sharing, kBusy, 100);
  CHECK(busy.shared <= 2 + 1);
  const Total free = runs(sharing, kQuiet, 1000);
  CHECK(free.shared > 800);
}

TEST_CASE("a large model whose core is busy from the beginning loses three runs",
          "[sharing]") {
  Sharing sharing;
  CHECK(runs(sharing, kBusy, 8).shared == 3);
  CHECK(runs(sharing, kBusy, 24).shared == 0);
}

TEST_CASE("waiting that pays nevertheless is asked about once", "[sharing]") {
  Sharing sharing;
  const Total all = runs(sharing, kUneven, 10000);
  CHECK(double(all.ticks) < 10000 * double(kUneven.shared) * 1.012);
}

TEST_CASE("without a counter runs are shared", "[sharing]") {
  Sharing sharing;
  const Total all = runs(sharing, {0, 0, 0}, 1000);
  CHECK(all.shared == 1000 - 3);
}
