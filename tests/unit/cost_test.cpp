// What kernels cost: instructions and bytes of small kernels counted by hand, and that
// more work never costs less.
#include "compiler/kernel/text.h"
#include "compiler/optimize/cost/cost.h"
#include "compiler/optimize/cost/instructions.h"
#include "compiler/optimize/cost/traffic.h"

#include <catch2/catch.hpp>

#include <set>

using namespace svod;
using namespace svod::cost;

namespace {

ScheduledKernel kernel_of(const std::string& kernel, const std::string& schedule) {
  TextFault fault;
  const std::optional<Kernel> what = parse_kernel(kernel, fault);
  INFO(fault.line << ": " << fault.why);
  REQUIRE(what);
  const std::optional<KernelSchedule> how = parse_schedule(schedule, fault);
  INFO(fault.line << ": " << fault.why);
  REQUIRE(how);
  ScheduledKernel out;
  static_cast<Kernel&>(out) = *what;
  static_cast<KernelSchedule&>(out) = *how;
  out.loops.inner.resize(out.stages.size());
  return out;
}

Level level_of(const std::string& suffix) {
  const std::optional<Target> target = find_target("x86-64");
  for (const Level& level : target->levels)
    if (level.suffix == suffix) return level;
  FAIL("no level " << suffix);
  return {};
}

// rows x 16 columns, the sum over `steps` of a[row, step] * w[step, column].
ScheduledKernel product(int rows, int steps, const std::string& tile,
                        const std::string& more = "") {
  const std::string s = std::to_string(steps);
  return kernel_of("  axes i0:" + std::to_string(rows) + " i1:16 i2:" + s +
                       "\n  terms i0 i1 i2\n  outer i0 i1\n"
                       "  a0 = buffer b0 f32 read\n  a1 = buffer b1 f32 write\n"
                       "  a2 = weight w0 f32 read\n"
                       "  e0 = load f32 a0[" +
                       s +
                       "*i0 + i2]\n  e1 = load f32 a2[i1 + 16*i2]\n"
                       "  e2 = map f32 mul e0, e1\n  e3 = local f32 s0\n"
                       "  s0 = reduce sum f32 over i2: e2\n"
                       "  s1 = store f32 over: e3 -> a1[16*i0 + i1]\n",
                   "  loops\n    outer i0 i1\n    s0 i2\n    lane i1 16\n" + more +
                       "  level v4 lanes 16\n" + tile +
                       "    s0 unroll 128 32 16 by 4\n    s0 sums 1 rounds 8\n");
}

// `rows` vectors of a map.
ScheduledKernel map_of(const std::string& text, int rows) {
  return kernel_of("  axes i0:" + std::to_string(rows) +
                       " i1:16\n  terms i0 i1\n  outer i0 i1\n"
                       "  a0 = buffer b0 f32 read\n  a1 = buffer b1 f32 write\n"
                       "  e0 = load f32 a0[16*i0 + i1]\n" +
                       text + "  s0 = store f32 over: e1 -> a1[16*i0 + i1]\n",
                   "  loops\n    outer i0 i1\n    lane i1 16\n  level v4 lanes 16\n");
}

double total(const ScheduledKernel& k, int threads = 1, double run_bytes = 0) {
  return cost_of(k, k.levels[0], level_of(k.levels[0].level), {run_bytes, threads}).total;
}

} // namespace

TEST_CASE("cost: a product's instructions are those of its tiles") {
  const ScheduledKernel k = product(12, 64, "    tile i0:6\n");
  const Instructions i = instructions_of(k, k.levels[0], level_of("v4"));
  CHECK(i.products == 12 * 64); // a register each
  CHECK(i.loads == 2 * 64);     // of weights, shared by six rows
  CHECK(i.elements == 12 * 64); // of data, one for all lanes
  CHECK(i.stores == 12);
  CHECK(i.stored == 12 * 64);
  CHECK(i.quotients == 0);
  CHECK(i.nests == 2);
}

TEST_CASE("cost: what is left of a tile is a tile of its own") {
  const ScheduledKernel k = product(14, 64, "    tile i0:6\n");
  const Instructions i = instructions_of(k, k.levels[0], level_of("v4"));
  CHECK(i.products == 14 * 64);
  CHECK(i.loads == 3 * 64); // two tiles of six rows and one of two
  CHECK(i.stores == 14);
}

TEST_CASE("cost: narrow registers take several instructions, and two without fma") {
  ScheduledKernel k = product(4, 256, "    tile i0:2\n");
  const Instructions wide = instructions_of(k, k.levels[0], level_of("v4")),
                     half = instructions_of(k, k.levels[0], level_of("v3")),
                     quarter = instructions_of(k, k.levels[0], level_of("v2"));
  CHECK(half.products == 2 * wide.products);
  CHECK(quarter.products == 4 * wide.products);
  CHECK(wide.operations == 0);
  CHECK(quarter.operations == quarter.products);
}

TEST_CASE("cost: sums that do not fit the registers are stored and loaded") {
  const ScheduledKernel fits = product(24, 256, "    tile i0:24\n"),
                        spills = product(48, 256, "    tile i0:48\n");
  const Level v4 = level_of("v4");
  CHECK(instructions_of(fits, fits.levels[0], v4).spills == 0);
  CHECK(instructions_of(spills, spills.levels[0], v4).spills > 256);
}

TEST_CASE("cost: one sum waits for itself, several do not") {
  const ScheduledKernel one = product(12, 256, ""),
                        six = product(12, 256, "    tile i0:6\n");
  const Level v4 = level_of("v4");
  CHECK(instructions_of(one, one.levels[0], v4).waited >
        4 * instructions_of(six, six.levels[0], v4).waited);
  CHECK(total(one) > total(six));
}

// Columns of 16 that are written as rows: only positions that are neighbours there are
// turned in registers.
TEST_CASE("cost: a tile of other positions is written lane by lane") {
  auto turned = [](const std::string& tile) {
    return kernel_of("  axes i0:16 i1:16 i2:4\n  terms i0 i1 i2\n  outer i0 i2 i1\n"
                     "  a0 = buffer b0 f32 read\n  a1 = buffer b1 f32 write\n"
                     "  e0 = load f32 a0[256*i2 + 16*i0 + i1]\n"
                     "  s0 = store f32 over: e0 -> a1[256*i2 + i0 + 16*i1]\n",
                     "  loops\n    outer i0 i2 i1\n    lane i1 16\n"
                     "  level v4 lanes 16\n    tile " +
                         tile + "\n    s0 columns 4\n");
  };
  const ScheduledKernel square = turned("i0:16"), apart = turned("i2:4");
  const Instructions rows = instructions_of(square, square.levels[0], level_of("v4")),
                     lanes = instructions_of(apart, apart.levels[0], level_of("v4"));
  CHECK(rows.stores == 64);
  CHECK(lanes.stores == 16 * 64);
  CHECK(total(square) < total(apart));
}

TEST_CASE("cost: a map's instructions are its row of the table") {
  const ScheduledKernel k = map_of("  e1 = map f32 exp e0\n", 100);
  const Instructions i = instructions_of(k, k.levels[0], level_of("v4"));
  CHECK(i.products == 100 * work_of(Op::Exp).products);
  CHECK(i.operations == 100 * work_of(Op::Exp).operations);
  CHECK(i.loads == 100);
  CHECK(i.stored == 6400);
  const ScheduledKernel root = map_of("  e1 = map f32 sqrt e0\n", 100);
  CHECK(instructions_of(root, root.levels[0], level_of("v4")).quotients == 1600);
}

TEST_CASE("cost: every scalar function has its row") {
  std::set<std::string> rows, maps;
#define WORK(op, products, operations, quotients)                                        \
  rows.insert(#op);                                                                      \
  CHECK(products + operations + quotients > 0);
#include "compiler/optimize/cost/op_work.def"
#define MAP(name, text, arity, result, cell) maps.insert(#name);
#include "compiler/ir/ops.def"
  CHECK(rows == maps);
}

TEST_CASE("cost: bytes come in once where they stay in a cache, and for every row else") {
  const Machine m = find_machine("zen4");
  // 128 steps of 16 columns are 8 KiB of weights: the first cache keeps them.
  const ScheduledKernel small = product(64, 128, "    tile i0:8\n");
  const Traffic near = traffic_of(small, small.levels[0], m, 1e9);
  CHECK(near.first == Approx(128 * 64 + 64 * 128 * 4 / 2 + 64 * 64).epsilon(0.35));
  // 4096 steps are 256 KiB: read again for each of the 8 tiles of rows.
  const ScheduledKernel large = product(64, 4096, "    tile i0:8\n");
  CHECK(traffic_of(large, large.levels[0], m, 1e9).first >= 8 * 4096 * 64);
  // They come from memory once, where a run touches more than the last cache holds.
  CHECK(traffic_of(large, large.levels[0], m, 1e9).last ==
        Approx(4096 * 64).epsilon(0.01));
  CHECK(traffic_of(large, large.levels[0], m, 1e5).last == 0);
}

TEST_CASE("cost: more bytes or more products never cost less") {
  double before = 0;
  for (int steps : {16, 32, 64, 128, 256, 512, 1024, 4096, 16384}) {
    const double now = total(product(48, steps, "    tile i0:12\n"), 1, 1e8);
    CHECK(now >= before);
    before = now;
  }
  before = 0;
  for (int rows : {12, 24, 48, 96, 480, 4800}) {
    const double now = total(product(rows, 256, "    tile i0:12\n"));
    CHECK(now >= before);
    before = now;
  }
  before = 0;
  for (int rows = 64; rows <= 1 << 20; rows *= 4) {
    const double now = total(map_of("  e1 = map f32 neg e0\n", rows));
    CHECK(now > before);
    before = now;
  }
  const ScheduledKernel k = product(48, 256, "    tile i0:12\n");
  CHECK(total(k, 1, 1e9) >= total(k, 1, 1e6)); // weights that are cold
}

TEST_CASE("cost: fewer threads of products never cost less, and a region its fork-join") {
  const ScheduledKernel k =
      product(4800, 1024, "    tile i0:12\n", "    chunk i0 by 600\n");
  CHECK(total(k, 1) > total(k, 2));
  CHECK(total(k, 2) > total(k, 4));
  CHECK(total(k, 4) >= total(k, 5)); // eight chunks: one thread still has two
  const Level v4 = level_of("v4");
  CHECK(cost_of(k, k.levels[0], v4, {0, 1}).fork_join == 0);
  CHECK(cost_of(k, k.levels[0], v4, {0, 2}).fork_join ==
        Approx(v4.machine.fork_join_ns * 1e-9));
  // Without chunks there is no region.
  const ScheduledKernel whole = product(4800, 1024, "    tile i0:12\n");
  CHECK(total(whole, 1) == total(whole, 2));
}

TEST_CASE("cost: every kind of stage costs what its positions do") {
  const std::string loops = "  loops\n    outer i0\n    s0 i1\n  level v4 lanes 1\n";
  const std::string head = "  axes i0:8 i1:64\n  terms i0 i1\n  outer i0\n"
                           "  a0 = buffer b0 f32 read\n  a1 = buffer b1 f32 write\n"
                           "  e0 = load f32 a0[64*i0 + i1]\n";
  for (const std::string stage :
       {"  s0 = scan scan_sum f32 over i1: e0 -> a1[64*i0 + i1]\n",
        "  s0 = store f32 over i1: e0 -> a1[64*i0 + i1]\n"}) {
    CAPTURE(stage);
    const ScheduledKernel k = kernel_of(head + stage, loops);
    const Instructions i = instructions_of(k, k.levels[0], level_of("v4"));
    CHECK(i.stores == 8 * 64);
    CHECK(i.elements == 8 * 64);
    CHECK(total(k) > 0);
  }
}

TEST_CASE("cost: a column of the machine changes what it is about") {
  const ScheduledKernel k = product(480, 512, "    tile i0:12\n");
  Level slow = level_of("v4");
  const double before = cost_of(k, k.levels[0], slow, {}).total;
  slow.machine.fmas_per_clock /= 2;
  slow.machine.flops_per_clock /= 2;
  CHECK(cost_of(k, k.levels[0], slow, {}).total > 1.5 * before);
  Level launched = level_of("v4");
  launched.machine.launch_ns += 1000;
  CHECK(cost_of(k, k.levels[0], launched, {}).total == Approx(before + 1e-6));
}
