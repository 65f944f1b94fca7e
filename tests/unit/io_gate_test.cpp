// The gate: the test vectors of the one that it follows, with right signs; each term
// alone; and that saving more is never worth less.
#include "compiler/ir/build.h"
#include "compiler/optimize/io_gate.h"
#include "compiler/pipeline.h"
#include "compiler/plan/io.h"
#include "tests/support/random_graph.h"

#include <catch2/catch.hpp>

#include <cmath>

using namespace svod;
using namespace svod::test;
using optimize::IoBenefit;
using optimize::IoGate;

namespace {

// A gate of one kind of memory, in ns and bytes per ns.
IoGate gate_of(double launch, double sync, double memory, double host, bool shared,
               double added_sync, double least) {
  IoGate gate;
  gate.launch_ns = launch, gate.sync_ns = sync, gate.added_sync_ns = added_sync;
  gate.shared_memory = shared, gate.host_bytes_per_ns = host;
  gate.bytes_per_ns.fill(memory);
  gate.operations_per_ns = 1;
  gate.least_gain_ns = least;
  return gate;
}

// The knobs of RLX.
const IoGate kMetal = gate_of(500, 5000, 200, 200, true, 2e6, 1000);
const IoGate kCuda = gate_of(2000, 20000, 800, 50, false, 15e6, 5000);
const IoGate kWebGpu = gate_of(3000, 30000, 100, 40, false, 25e6, 10000);
const IoGate kCpu = gate_of(50, 0, 50, 50, true, 0, 0);
const IoGate kGates[] = {kMetal, kCuda, kWebGpu, kCpu};

IoProfile profile(int64_t launches, int64_t syncs, int64_t host, int64_t traffic) {
  IoProfile out;
  out.launches = launches, out.syncs = syncs, out.host_bytes = host;
  out.at(MemoryLevel::Memory).read = traffic;
  return out;
}

// One launch more and one sync more read 32 MB less back, through 34 MB more of traffic.
const IoProfile kDense = profile(3, 0, 33554432, 184549376);
const IoProfile kFused = profile(4, 1, 1048576, 219152384);

} // namespace

TEST_CASE("io gate: the vectors of RLX, where shared memory copies for nothing",
          "[gate]") {
  CHECK(std::lround(kMetal.gain_ns(kDense, kFused)) == -2178515);
  CHECK(std::lround(kCuda.gain_ns(kDense, kFused)) == -14415137);
  CHECK(std::lround(kWebGpu.gain_ns(kDense, kFused)) == -24566384);
  // Its own gate counted a byte that is not copied as a nanosecond: +31,813,746.
  CHECK(std::lround(kCpu.gain_ns(kDense, kFused)) == -692110);
  for (const IoGate& gate : kGates) CHECK(!gate.should_fuse(kDense, kFused));
}

TEST_CASE("io gate: benefits are before less after", "[gate]") {
  const IoBenefit saved =
      optimize::io_benefit(profile(2, 1, 8192, 16384), profile(1, 1, 512, 16384));
  CHECK(saved.launches == 1);
  CHECK(saved.syncs == 0);
  CHECK(saved.host_bytes == 7680);
  CHECK(saved.traffic == std::array<int64_t, kMemoryLevels>{});
  CHECK(optimize::io_benefit(kFused, kDense).launches == 1);
  CHECK(optimize::io_benefit(kDense, kFused).launches == -1);
}

TEST_CASE("io gate: each term has its sign", "[gate]") {
  const IoProfile none;
  for (const IoGate& gate : kGates) {
    CHECK(gate.gain_ns(none, none) == 0);
    CHECK(gate.gain_ns(profile(1, 0, 0, 0), none) == gate.launch_ns);
    CHECK(gate.gain_ns(none, profile(1, 0, 0, 0)) == -gate.launch_ns);
    CHECK(gate.gain_ns(profile(0, 1, 0, 0), none) == gate.sync_ns);
    // A sync that is added costs more than one that is saved brings.
    CHECK(gate.gain_ns(none, profile(0, 1, 0, 0)) == -gate.sync_ns - gate.added_sync_ns);
    CHECK(gate.gain_ns(profile(0, 0, 0, 800), none) > 0);
    CHECK(gate.gain_ns(none, profile(0, 0, 0, 800)) < 0);
    const double copied = gate.gain_ns(profile(0, 0, 800, 0), none);
    CHECK(copied == (gate.shared_memory ? 0 : 800 / gate.host_bytes_per_ns));
    IoProfile computed;
    computed.operations = 10;
    CHECK(gate.gain_ns(computed, none) == 10);
    CHECK(gate.gain_ns(none, computed) == -10);
  }
}

TEST_CASE("io gate: what is saved from farther away is worth more", "[gate]") {
  for (const char* name : {"zen4", "cortex-a76", "cortex-a7"}) {
    const IoGate gate = optimize::io_gate(find_machine(name));
    double nearer = 0;
    for (size_t level = 0; level < kMemoryLevels; ++level) {
      IoBenefit saved;
      saved.traffic[level] = 1 << 20;
      CHECK(gate.score_ns(saved) >= nearer);
      nearer = gate.score_ns(saved);
    }
    CHECK(nearer > 0);
  }
}

// Whatever a fusion saves beside, less of anything afterwards is never worth less.
TEST_CASE("io gate: saving more never lowers the score", "[gate][property]") {
  for (uint64_t seed = 1; seed <= 2000; ++seed) {
    Random random(seed);
    auto draw = [&] {
      IoProfile p = profile(random.below(20), random.below(5), random.below(1 << 20), 0);
      for (IoProfile::Traffic& t : p.traffic)
        t = {random.below(1 << 24), random.below(1 << 24)};
      p.operations = double(random.below(1 << 20));
      return p;
    };
    const IoProfile before = draw(), after = draw();
    IoProfile fewer = after;
    switch (random.below(5)) {
    case 0:
      fewer.launches -= random.between(0, fewer.launches);
      break;
    case 1:
      fewer.syncs -= random.between(0, fewer.syncs);
      break;
    case 2:
      fewer.host_bytes -= random.between(0, fewer.host_bytes);
      break;
    case 3:
      fewer.operations /= 2;
      break;
    default:
      IoProfile::Traffic& t = fewer.traffic[static_cast<size_t>(random.below(4))];
      t.read -= random.between(0, t.read);
      t.written -= random.between(0, t.written);
    }
    INFO("seed " << seed);
    const IoGate zen = optimize::io_gate(find_machine("zen4"));
    for (const IoGate& gate : {kMetal, kCuda, kWebGpu, kCpu, zen}) {
      CHECK(gate.gain_ns(before, fewer) >= gate.gain_ns(before, after));
      if (gate.should_fuse(before, after)) CHECK(gate.should_fuse(before, fewer));
    }
  }
}

namespace {

codegen::Kernels compiled(const Graph& g) {
  CompileOptions options;
  options.target = *find_target("x86-64");
  return compile(g, options);
}

} // namespace

TEST_CASE("io profile: counted by hand", "[gate]") {
  const Machine machine = find_machine("zen4");
  SECTION("a map reads and writes once, in the first cache") {
    Graph g;
    const NodeId x = g.add_input("x", DType::F32, {1024});
    g.add_output("y", map(g, Op::Exp, {x}));
    IoProfile p = plan::io_profile(compiled(g).plan, machine);
    CHECK(p.launches == 1);
    CHECK(p.traffic[0].read == 4096);
    CHECK(p.traffic[0].written == 4096);
    CHECK(p.all().read + p.all().written == 8192);
  }
  SECTION("what does not fit a cache is read from the next one") {
    Graph g;
    const NodeId x = g.add_input("x", DType::F32, {1 << 18}); // 1 MiB, and the result
    g.add_output("y", map(g, Op::Exp, {x}));
    IoProfile p = plan::io_profile(compiled(g).plan, machine);
    CHECK(p.at(MemoryLevel::Last).read == 1 << 20);
    CHECK(p.at(MemoryLevel::Second).written == 1 << 20);
  }
  SECTION("a slice reads what it takes, a gather as many rows as it is told") {
    Graph g;
    const NodeId x = g.add_input("x", DType::F32, {1000, 16});
    const NodeId at = g.add_input("at", DType::I64, {4, 16});
    const NodeId picked = gather(g, x, at, 0);
    g.add_output("y", map(g, Op::Add, {picked, slice_axis(g, x, 0, 8, 4)}));
    IoProfile p = plan::io_profile(compiled(g).plan, machine);
    CHECK(p.all().read == 4 * 16 * 8 + 2 * 4 * 16 * 4);
    CHECK(p.all().written == 4 * 16 * 4);
  }
}

// SEEDS row 16.
TEST_CASE("io profile: a processor waits for no host, another device does", "[gate]") {
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {1024});
  g.add_output("y", map(g, Op::Exp, {x}));
  plan::Plan plan = compiled(g).plan;
  Machine machine = find_machine("zen4");
  const IoProfile here = plan::io_profile(plan, machine);
  CHECK(here.syncs == 0);
  CHECK(here.host_bytes == 0);
  machine.shared_memory = false;
  machine.host_bytes_per_ns = 25;
  const IoProfile there = plan::io_profile(plan, machine);
  CHECK(there.syncs == 1); // for the output
  CHECK(there.host_bytes == 8192);
  // Each branch asks for its condition, and a loop before every iteration and at its end.
  plan::Step branch, loop;
  branch.kind = plan::StepKind::If;
  loop.kind = plan::StepKind::Loop;
  loop.region.again = 0, loop.region.known = 5;
  plan.steps.push_back(branch);
  plan.steps.push_back(loop);
  CHECK(plan::io_profile(plan, machine).syncs == 1 + 1 + 6);
  CHECK(plan::io_profile(plan, find_machine("zen4")).syncs == 0);
}

TEST_CASE("io profile: every machine's own row is its own host", "[gate]") {
  for (const std::string& alias : target_aliases()) {
    CAPTURE(alias);
    const std::optional<Target> target = find_target(alias);
    REQUIRE(target);
    for (const Level& level : target->levels) {
      CHECK(level.machine.shared_memory);
      CHECK(optimize::io_gate(level.machine).launch_ns > 0);
    }
  }
}
