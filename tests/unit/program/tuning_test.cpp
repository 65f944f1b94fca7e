// --tune and --tuning: the file, what a profile says, what counts as faster, and which
// schedules share a program.
#include "packager/tune/trials.h"
#include "packager/tune/tuning_file.h"
#include "packager/verify/run_program.h"

#include <catch2/catch.hpp>

using namespace svod;
using namespace svod::packager;

namespace {

Digest digest(const char* name) { return sha256(std::string_view(name)); }

KernelSchedule schedule(const char* level, int positions) {
  KernelSchedule out;
  out.loops.outer = {1, 0};
  out.levels.push_back({});
  out.levels[0].level = level;
  out.levels[0].lanes = 16;
  out.levels[0].tile = {{0, positions}};
  return out;
}

TuningFile file(const char* machine, const char* kernel, int positions) {
  TuningFile out;
  out.machines[machine][digest(kernel)] = {schedule("v4", positions), 1.5, 2.25};
  return out;
}

// "line: why" of a text that is refused.
std::string fault_of(const std::string& text) {
  TextFault fault;
  if (parse_tuning_file(text, fault)) return "";
  return std::to_string(fault.line) + ": " + fault.why;
}

} // namespace

TEST_CASE("a tuning file reads back what it prints", "[tuning]") {
  TuningFile made = file("one v4 core", "a", 3);
  merge(made, file("one v4 core", "b", 4));
  merge(made, file("two v3 core", "a", 5));
  const std::string text = print(made);
  TextFault fault;
  const auto read = parse_tuning_file(text, fault);
  REQUIRE(read);
  CHECK(print(*read) == text);
  const TunedKernel& kernel = read->machines.at("two v3 core").at(digest("a"));
  CHECK(kernel.schedule.levels == schedule("v4", 5).levels);
  CHECK(kernel.took == 1.5);
  CHECK(kernel.before == 2.25);
}

TEST_CASE("merging keeps kernels and machines that it does not know", "[tuning]") {
  TuningFile known = file("one", "a", 3);
  merge(known, file("two", "a", 4));
  merge(known, file("one", "b", 5));
  merge(known, file("one", "a", 6));
  const auto tile = [&](const char* machine, const char* kernel) {
    return known.machines.at(machine).at(digest(kernel)).schedule.levels[0].tile[0].count;
  };
  CHECK(known.machines.size() == 2);
  CHECK(tile("one", "a") == 6);
  CHECK(tile("one", "b") == 5);
  CHECK(tile("two", "a") == 4);
}

TEST_CASE("a damaged tuning file is refused with its line", "[tuning]") {
  const std::string good = print(file("one", "a", 3));
  REQUIRE(fault_of(good).empty());
  CHECK(fault_of("") == "1: the file is cut off: 'end' was expected behind it");
  CHECK(fault_of("svod-pack tuning 9\nend\n") == "1: 'svod-pack tuning 1' was expected");
  CHECK(fault_of(good.substr(0, good.size() - 4)).find("cut off") != std::string::npos);
  CHECK(fault_of(good + "more\n").find("after 'end'") != std::string::npos);
  const auto with = [&](const std::string& from, const std::string& to) {
    std::string text = good;
    return fault_of(text.replace(text.find(from), from.size(), to));
  };
  CHECK(with("machine one", "") == "3: 'machine' was expected");
  CHECK(with("1.500 us", "fast") == "3: 'kernel took A us, B us before' was expected");
  CHECK(with(digest("a").hex(), "5f3c") == "4: the digest of a kernel was expected");
  CHECK(with("tile i0", "tilt i0").find("was expected before 'tilt") !=
        std::string::npos);
  // The line is the one in the whole file.
  const int line = std::stoi(with("tile i0", "tilt i0"));
  size_t at = 0;
  for (int i = 1; i < line; ++i) at = good.find('\n', at) + 1;
  CHECK(good.substr(at, good.find('\n', at) - at).find("tile i0") != std::string::npos);
}

TEST_CASE("a target takes from a tuning file what is for its levels", "[tuning]") {
  const Target target = *find_target("x86-64");
  const Target other = *find_target("aarch64");
  TuningFile made;
  for (const Level& level : target.levels)
    merge(made, file(machine_key(target, level).c_str(), "a", 3));
  merge(made, file(machine_key(other, other.levels[0]).c_str(), "b", 3));
  const ScheduleFile found = schedules_for(made, target);
  REQUIRE(found.size() == 1);
  CHECK(found.at(digest("a")).levels.size() == target.levels.size());
  CHECK(schedules_for(made, other).contains(digest("b")));
  CHECK(schedules_for(made, *find_target("cortex-m4")).empty());
}

TEST_CASE("a profile is read whatever else it says", "[tuning]") {
  const auto read = parse_profile(
      R"({"host": {"name": "x", "cores": [1, 2]}, "kernels": [
      {"name": "k0", "us": 1.5, "nodes": "a,\"b\""}, {"us": 2, "name": "k1"},
      {"name": "k0", "us": 0.25}], "total_us": 3.75, "level": "v4", "unit": "cycles"})");
  REQUIRE(read);
  CHECK(read->kernels == std::map<std::string, double>{{"k0", 1.75}, {"k1", 2}});
  CHECK(read->total == 3.75);
  CHECK(read->level == "v4");
  CHECK(read->unit == "cycles");
  CHECK(!parse_profile(""));
  CHECK(!parse_profile("kernel us\nk0 1.5\n"));
  CHECK(!parse_profile(R"({"kernels": [{"name": "k0", "us": 1.5}], "total_us": 1)"));
  CHECK(!parse_profile(R"({"kernels": [], "total_us": 1})"));
  CHECK(!parse_profile(std::string(100000, '[')));
}

TEST_CASE("faster is what beats the runs' differences", "[tuning]") {
  const auto least = [](std::initializer_list<double> runs) {
    Least out;
    for (double run : runs) out.add(run);
    return out;
  };
  const Least rules = least({12, 10, 10.1});
  CHECK(rules.value == 10);
  CHECK(rules.spread() == Approx(0.1));
  CHECK(is_faster(least({9, 9.1}), rules, 0.02));
  CHECK_FALSE(is_faster(least({9.9, 9.9}), rules, 0.02));
  CHECK_FALSE(is_faster(least({9, 11}), rules, 0.02)); // one lucky run
  CHECK_FALSE(is_faster(least({9}), rules, 0.02));
}

TEST_CASE("a round has one new schedule in each kernel of the plan", "[tuning]") {
  const auto trial = [](const char* name, std::vector<size_t> programs) {
    return Trial{digest(name), schedule("v4", 2), std::move(programs)};
  };
  std::vector<Trial> left{trial("a", {0}), trial("b", {1, 2}), trial("c", {2}),
                          trial("d", {3}), trial("a", {0})};
  const auto names = [](const std::vector<Trial>& trials) {
    std::vector<Digest> out;
    for (const Trial& one : trials) out.push_back(one.kernel);
    return out;
  };
  CHECK(names(next_round(left)) ==
        std::vector<Digest>{digest("a"), digest("b"), digest("d")});
  CHECK(names(next_round(left)) == std::vector<Digest>{digest("c"), digest("a")});
  CHECK(left.empty());
}

TEST_CASE("a program that takes too long is ended", "[tuning]") {
  const Ran quick = run_program({"/bin/echo", "done"}, "", 20);
  CHECK(quick.code == 0);
  CHECK(quick.said == "done\n");
  CHECK(run_program({"/bin/sleep", "600"}, "", 0.1).code == -1);
}

TEST_CASE("a tuning file keeps the unit of its times", "[tuning]") {
  TuningFile counted = file("one", "a", 3);
  counted.machines.at("one").at(digest("a")).unit = "cycles";
  TextFault fault;
  const auto read = parse_tuning_file(print(counted), fault);
  REQUIRE(read);
  CHECK(read->machines.at("one").at(digest("a")).unit == "cycles");
  std::string text = print(counted);
  text.replace(text.find("cycles before"), 6, "us");
  CHECK(fault_of(text) == "3: 'kernel took A us, B us before' was expected");
  CHECK(is_unit("us"));
  CHECK(!is_unit("micro seconds"));
  CHECK(!is_unit(""));
  CHECK(!is_unit(std::string(32, 'a')));
}

TEST_CASE("of two findings that are merged the larger gain stays, in any order",
          "[tuning]") {
  TuningFile slow = file("one", "a", 3), fast = file("one", "a", 5);
  fast.machines.at("one").at(digest("a")).took = 1.25;
  const TuningFile other = file("one", "b", 2), foreign = file("two", "a", 4);
  const auto merged = [&](const std::vector<TuningFile>& files) {
    TuningFile out;
    for (const TuningFile& one : files) merge_faster(out, one);
    return print(out);
  };
  const std::string want = merged({slow, fast, other, foreign});
  CHECK(want == merged({foreign, fast, other, slow}));
  CHECK(want == merged({fast, other, foreign}));
  CHECK(want != merged({slow, other, foreign}));
  // Equal gains: one of them, whichever comes first.
  fast.machines.at("one").at(digest("a")).took = 1.5;
  CHECK(merged({slow, fast}) == merged({fast, slow}));
  // A machine of another speed: shares of the rules' time are compared.
  fast.machines.at("one").at(digest("a")).took = 150;
  fast.machines.at("one").at(digest("a")).before = 300;
  CHECK(merged({slow, fast}) == merged({fast}));
}
