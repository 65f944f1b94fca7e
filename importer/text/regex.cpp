// Subset construction. A state is the set of instructions that wait for the next byte,
// and what the byte before was; assertions are answered when the next byte is known, so a
// word's edge needs no look ahead at run time. Bytes that no instruction tells apart are
// one class.
#include "importer/text/regex_parse.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>

namespace svod::importer {

namespace {

using Kind = Instruction::Kind;

// What stands on one side of a place between bytes.
enum class Side : uint8_t { End, Word, Newline, Other };

Side side_of(uint32_t byte) {
  const uint32_t folded = byte | 32;
  if ((folded >= 'a' && folded <= 'z') || (byte >= '0' && byte <= '9') || byte == '_')
    return Side::Word;
  return byte == '\n' ? Side::Newline : Side::Other;
}

bool holds(Assertion assertion, Side before, Side after) {
  const bool edge = (before == Side::Word) != (after == Side::Word);
  switch (assertion) {
  case Assertion::TextBegin:
    return before == Side::End;
  case Assertion::TextEnd:
    return after == Side::End;
  case Assertion::LineBegin:
    return before == Side::End || before == Side::Newline;
  case Assertion::LineEnd:
    return after == Side::End || after == Side::Newline;
  case Assertion::WordEdge:
    return edge;
  case Assertion::NoWordEdge:
    return !edge;
  }
  return false;
}

class Construction {
public:
  Construction(const std::vector<Instruction>& code, const RegexLimits& limits)
      : code_(code), limits_(limits), mark_(code.size()) {
    for (const Instruction& i : code) asserts_ |= i.kind == Kind::Assert;
  }
  Automaton run();

private:
  struct State {
    Side before;
    std::vector<uint32_t> waiting;
    auto operator<=>(const State&) const = default;
  };
  void find_classes();
  uint32_t number(State state);
  // The instructions reached without a byte; true: a text may end here.
  bool close(const State& state, Side after, std::vector<uint32_t>& reached);

  const std::vector<Instruction>& code_;
  const RegexLimits& limits_;
  bool asserts_ = false;
  Automaton result_;
  std::vector<uint32_t> example_; // a byte of each class
  std::map<State, uint32_t> numbers_;
  std::vector<State> states_;
  std::vector<uint64_t> mark_;
  uint64_t round_ = 0, work_ = 0;
};

void Construction::find_classes() {
  std::array<bool, 257> begins{};
  begins[0] = true;
  for (const Instruction& i : code_)
    if (i.kind == Kind::Bytes) begins[i.low] = begins[i.high + 1u] = true;
  for (uint32_t b = 1; asserts_ && b < 256; ++b)
    begins[b] = begins[b] || side_of(b) != side_of(b - 1);
  result_.classes.resize(256);
  for (uint32_t b = 0; b < 256; ++b) {
    if (begins[b]) example_.push_back(b);
    result_.classes[b] = static_cast<uint8_t>(example_.size() - 1);
  }
  result_.class_count = static_cast<int>(example_.size());
}

uint32_t Construction::number(State state) {
  const auto [at, added] = numbers_.emplace(state, states_.size());
  if (added) {
    if (states_.size() == limits_.states)
      throw RegexFailure{"its automaton has more than " + std::to_string(limits_.states) +
                             " states",
                         false};
    states_.push_back(std::move(state));
  }
  return at->second;
}

bool Construction::close(const State& state, Side after, std::vector<uint32_t>& reached) {
  ++round_;
  bool match = false;
  std::vector<uint32_t> open = state.waiting;
  reached.clear();
  while (!open.empty()) {
    const uint32_t at = open.back();
    open.pop_back();
    if (mark_[at] == round_) continue;
    mark_[at] = round_;
    if (++work_ > limits_.work)
      throw RegexFailure{"its automaton takes too long to build", false};
    const Instruction& i = code_[at];
    match |= i.kind == Kind::Match;
    if (i.kind == Kind::Bytes) reached.push_back(at);
    if (i.kind == Kind::Split) open.insert(open.end(), {i.next, i.other});
    if (i.kind == Kind::Assert && holds(i.assertion, state.before, after))
      open.push_back(i.next);
  }
  return match;
}

Automaton Construction::run() {
  result_.looks_around = asserts_;
  find_classes();
  number({Side::End, {0}});
  for (size_t s = 0; s < states_.size(); ++s) {
    std::vector<uint32_t> reached;
    const State state = states_[s];
    result_.accepts.push_back(close(state, Side::End, reached));
    std::optional<Side> closed; // for which `reached` is
    for (uint32_t byte : example_) {
      const Side after = side_of(byte);
      if (!closed || (asserts_ && *closed != after)) close(state, after, reached);
      closed = after;
      State next{asserts_ ? after : Side::Other, {}};
      for (uint32_t at : reached)
        if (code_[at].low <= byte && byte <= code_[at].high)
          next.waiting.push_back(code_[at].next);
      work_ += reached.size() + next.waiting.size();
      std::ranges::sort(next.waiting);
      const auto repeated = std::ranges::unique(next.waiting);
      next.waiting.erase(repeated.begin(), repeated.end());
      if (next.waiting.empty()) next.before = Side::Other; // one dead state
      result_.next.push_back(number(std::move(next)));
    }
  }
  return std::move(result_);
}

} // namespace

CompiledRegex compile_regex(const std::string& pattern, const RegexLimits& limits) {
  CompiledRegex result;
  try {
    const std::vector<Instruction> code = parse_regex(pattern, limits);
    result.automaton = Construction(code, limits).run();
  } catch (const RegexFailure& failure) {
    result.failure = failure.what;
    result.malformed = failure.malformed;
  }
  return result;
}

} // namespace svod::importer
