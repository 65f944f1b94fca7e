// --tune of whole plans: what is measured, which one is taken, and how a file keeps it.
#include "packager/tune/tune_plan.h"
#include "packager/tune/tuning_file.h"

#include <catch2/catch.hpp>

#include <map>

using namespace svod;
using namespace svod::packager;

namespace {

// A machine on which plans take such times; those without one have kernels that another
// plan has.
struct MeasuredPlans {
  std::map<std::string, double> took;
  std::map<std::string, double> later = {}; // from the second build of runs on
  int allowed = 100;
  int runs_before_interrupt = 1000;
  std::vector<std::string> built = {}, told = {};
  std::map<std::string, std::string> at = {}; // what lies where
  std::map<std::string, int> runs = {};

  std::optional<FoundPlan> tune(const PlanChoice& now) {
    constexpr int kFirstTurns = 4;
    PlanMeans means;
    means.build = [&](const PlanChoice& choice, const std::string& path) {
      if (!took.contains(name_of(choice))) return false;
      built.push_back(name_of(choice));
      at[path] = name_of(choice);
      return true;
    };
    means.run = [&](const std::string& path, double) -> std::optional<Profile> {
      const std::string& name = at.at(path);
      const bool again = ++runs[name] > kFirstTurns && later.contains(name);
      Profile out;
      out.level = "v4";
      out.total = again ? later.at(name) : took.at(name);
      return out;
    };
    means.interrupted = [&] { return runs_before_interrupt-- <= 0; };
    means.goes_on = [&] { return allowed-- > 0; };
    means.tell = [&](const std::string& text) { told.push_back(text); };
    return tune_plan(means, now, "folder");
  }
};

TuningFile file_of(const std::string& machine, const char* subject, PlanChoice choice,
                   double took) {
  TuningFile out;
  out.plans[machine][sha256(std::string_view(subject))] = {choice, took, 10, "us"};
  return out;
}

} // namespace

TEST_CASE("the fastest plan is taken, with the times of runs that did not choose it",
          "[tuning]") {
  MeasuredPlans machine{{{"searched", 100}, {"rules", 90}, {"as-written", 80}}};
  machine.later["as-written"] = 85;
  const auto found = machine.tune({});
  REQUIRE(found);
  CHECK(name_of(found->plan.choice) == "as-written");
  CHECK(found->plan.took == 85);
  CHECK(found->plan.before == 100);
  CHECK(found->level == "v4");
  CHECK(machine.built == std::vector<std::string>{"rules", "searched", "as-written"});
}

TEST_CASE("a plan that was lucky, or is no faster, is not taken", "[tuning]") {
  MeasuredPlans lucky{{{"searched", 100}, {"rules", 80}}, {{"rules", 101}}};
  CHECK(!lucky.tune({}));
  CHECK(!MeasuredPlans{{{"searched", 100}, {"rules", 99}}}.tune({}));
}

TEST_CASE("a model that has one plan is not run, and time ends the search", "[tuning]") {
  MeasuredPlans one{{{"searched", 100}}};
  CHECK(!one.tune({}));
  CHECK(one.built.empty());
  MeasuredPlans late{{{"searched", 100}, {"rules", 90}, {"as-written", 50}}};
  late.allowed = 1;
  const auto found = late.tune({});
  REQUIRE(found);
  CHECK(name_of(found->plan.choice) == "rules");
}

TEST_CASE("an interrupt before a plan is checked leaves the one that is there",
          "[tuning]") {
  MeasuredPlans ended{{{"searched", 100}, {"rules", 50}}};
  ended.runs_before_interrupt = 10; // eight of them choose
  CHECK(!ended.tune({}));
  CHECK(ended.runs.at("rules") == 5);
}

TEST_CASE("what a file has is beaten by the search again where that is faster",
          "[tuning]") {
  MeasuredPlans machine{{{"searched", 50}, {"rules", 90}}};
  const auto found = machine.tune({true, false});
  REQUIRE(found);
  CHECK(found->plan.choice == PlanChoice());
  CHECK(found->plan.before == 90);
}

TEST_CASE("a tuning file keeps plans beside kernels", "[tuning]") {
  const Target target = *find_target("x86-64");
  const std::string key = machine_key(target, target.levels.back());
  TuningFile made = file_of(key, "a", {true, false}, 9);
  merge(made, file_of("other", "a", {false, true}, 8));
  TextFault fault;
  const auto read = parse_tuning_file(print(made), fault);
  REQUIRE(read);
  CHECK(print(*read) == print(made));
  const Digest a = sha256(std::string_view("a")), b = sha256(std::string_view("b"));
  CHECK(plan_for(*read, target, a) == PlanChoice{true, false});
  CHECK(plan_for(*read, target, b) == PlanChoice());
  CHECK(plan_for(*read, *find_target("aarch64"), a) == PlanChoice());
  // Of two findings the larger gain stays, in any order; a later one replaces.
  const TuningFile better = file_of(key, "a", {false, true}, 7);
  TuningFile one = made, two = better;
  merge_faster(one, better);
  merge_faster(two, made);
  CHECK(print(one) == print(two));
  CHECK(plan_for(one, target, a) == PlanChoice{false, true});
  merge(one, made);
  CHECK(plan_for(one, target, a) == PlanChoice{true, false});
}

TEST_CASE("a plan in a tuning file that makes no sense is named by its line",
          "[tuning]") {
  const std::string good = print(file_of("m", "a", {true, true}, 9));
  TextFault fault;
  REQUIRE(parse_tuning_file(good, fault));
  for (const auto& [from, to] :
       {std::pair("rules-as-written", "ruled"), std::pair(" of ", " for "),
        std::pair("took", "take"), std::pair("us, ", "ns, ")}) {
    std::string text = good;
    text.replace(text.find(from), std::string_view(from).size(), to);
    CHECK(!parse_tuning_file(text, fault));
    CHECK(fault.line == 3);
    CHECK(fault.why == "'plan NAME of DIGEST took A us, B us before' was expected");
  }
}
