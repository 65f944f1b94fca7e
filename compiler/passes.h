// The passes of the compiler: each has a name, and one place runs, times, verifies and
// prints all of them.
#pragma once

#include "compiler/codegen/kernels.h"
#include "compiler/select/forms/algorithms.h"
#include "compiler/support/pass_end.h"

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace svod {

// A pass, and the phase of the summary's times that it is a part of. The result of a
// phase is that of its last pass.
struct PassName {
  std::string_view name, phase;
};
// In the order in which they run first; those from group to requests run in rounds.
std::span<const PassName> pass_names();
// Whether a word of --print-after means this pass: its name, the name of the phase that
// it ends, or all.
bool means_pass(std::string_view word, std::string_view pass);
// All words that mean one.
std::vector<std::string_view> pass_words();

// A plan whose programs have a schedule for each level. Its text is theirs.
struct ScheduledPlan {
  plan::Plan plan;
};

std::string text_of(const Graph& graph);
std::string text_of(const select::Algorithms& algorithms);
std::string text_of(const Grouping& grouping, const Graph& graph);
std::string text_of(const std::map<NodeId, Layout>& layouts, const Graph& graph);
std::string text_of(const std::vector<ChosenAlgorithm>& chosen);
std::string text_of(const CutSearch& search);
std::string text_of(const FusedGraph& fused);
std::string text_of(const plan::Plan& plan);
std::string text_of(const ScheduledPlan& scheduled);
std::string text_of(const codegen::Kernels& kernels);

// A fault of a pass's result is a bug of ours and ends the run.
void check(std::string_view pass, const Graph& graph);
void check(std::string_view pass, const select::Algorithms& algorithms);
void check(std::string_view pass, const Grouping& grouping, const Graph& graph);
void check(std::string_view pass, const std::map<NodeId, Layout>& layouts,
           const Graph& graph);
// Text for people.
void check(std::string_view pass, const std::vector<ChosenAlgorithm>& chosen);
void check(std::string_view pass, const CutSearch& search);
void check(std::string_view pass, const FusedGraph& fused);
void check(std::string_view pass, const plan::Plan& plan);
void check(std::string_view pass, const ScheduledPlan& scheduled);
// Their text is read by check_cpp when it is compiled.
void check(std::string_view pass, const codegen::Kernels& kernels);

struct PassRun {
  double ms = 0;              // of all runs
  int runs = 0;               // one per round, and per body of a region
  std::optional<PassEnd> end; // of passes that repeat themselves
};

class Passes {
public:
  // A pass, where it ran (a round, a body; empty for most), and the text of its result.
  using Print = std::function<void(std::string_view pass, const std::string& place,
                                   const std::string& text)>;
  Passes() = default;
  // `words` as of means_pass().
  Passes(std::vector<std::string> words, Print print)
      : words_(std::move(words)), print_(std::move(print)) {}

  // Runs a pass and returns its result. text_of() and check() of the result, with the
  // context they need, print and verify it.
  template <class F, class... Context>
  auto run(std::string_view name, F&& work, const Context&... context) {
    const auto start = std::chrono::steady_clock::now();
    auto result = work();
    const std::chrono::duration<double, std::milli> spent =
        std::chrono::steady_clock::now() - start;
    note_run(name, spent.count());
    check(name, result, context...);
    if (wants(name)) print_(name, place_, text_of(result, context...));
    return result;
  }
  // How a pass that repeats itself came to its end; several ends (of bodies) are one.
  void note_end(std::string_view name, const PassEnd& end);
  // Where the passes that follow run.
  void set_place(std::string place) { place_ = std::move(place); }

  const std::map<std::string_view, PassRun>& runs() const { return runs_; }
  double phase_ms(std::string_view phase) const;

private:
  bool wants(std::string_view name) const;
  void note_run(std::string_view name, double ms);

  std::vector<std::string> words_; // whose passes are printed
  std::string place_;
  Print print_;
  std::map<std::string_view, PassRun> runs_;
};

} // namespace svod
