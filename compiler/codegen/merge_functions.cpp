// Kernels of one layer at several sizes are the same text with other extents, strides and
// offsets. The text with its numbers left out is the key of a group; a number that all
// members have stays in the text, and numbers that are equal within each member are one.
// Two numbers are called with; more are a table in flash, which costs its bytes and one
// address. What is equal afterwards is compiled to equal code, of which a linker keeps
// one.
#include "compiler/codegen/merge_functions.h"

#include "compiler/codegen/marked_text.h"
#include "compiler/support/check.h"
#include "compiler/support/join.h"

#include <algorithm>
#include <limits>
#include <map>

namespace svod::codegen {

namespace {

constexpr size_t kMostValues = 2; // that are called with by themselves

std::string without(std::string text, std::string_view what, std::string_view with) {
  if (const size_t at = text.find(what); at != std::string::npos)
    text.replace(at, what.size(), with);
  return text;
}

// What members of a group have in common. A kernel and a part differ in how they begin.
std::string skeleton(const std::vector<MarkedPiece>& pieces) {
  std::string out;
  for (const MarkedPiece& piece : pieces) {
    out += piece.text;
    if (piece.kind != MarkedPiece::Kind::Text) out += '\1';
    if (piece.kind != MarkedPiece::Kind::Number) continue;
    out += static_cast<char>(piece.form);
    for (const MarkedTerm& term : piece.terms) out += std::to_string(term.times) + ",";
  }
  out = without(std::move(out), "inline __attribute__((noinline)) ", "");
  out = without(std::move(out),
                "extern \"C\" inline __attribute__((used, visibility(\"hidden\"))) ", "");
  out = without(std::move(out), "__INT32_TYPE__\nsvod_kernel(", "i32 body(");
  return without(std::move(out), "void\nsvod_kernel(", "void body(");
}

std::vector<int64_t> numbers_of(const std::vector<MarkedPiece>& pieces) {
  std::vector<int64_t> out;
  for (const MarkedPiece& piece : pieces)
    for (const MarkedTerm& term : piece.terms) out.push_back(term.number);
  return out;
}

NumberPassing passing_of(const MergeGroup& group) {
  if (group.members.front().numbers.size() <= kMostValues) return NumberPassing::Values;
  const auto is_short = [](int64_t n) {
    return n >= 0 && n <= std::numeric_limits<uint16_t>::max();
  };
  return std::ranges::all_of(group.members,
                             [&](const MergeMember& m) {
                               return std::ranges::all_of(m.numbers, is_short);
                             })
             ? NumberPassing::Words16
             : NumberPassing::Words32;
}

// Members whose numbers are still those of all marks.
void find_columns(MergeGroup& group) {
  std::map<std::vector<int64_t>, size_t> known;
  std::vector<std::vector<int64_t>> columns;
  for (size_t i = 0; i < group.members.front().numbers.size(); i++) {
    std::vector<int64_t> column;
    for (const MergeMember& member : group.members) column.push_back(member.numbers[i]);
    const bool same =
        std::ranges::all_of(column, [&](int64_t n) { return n == column[0]; });
    if (same) {
      group.columns.push_back(MergeGroup::kNone);
      continue;
    }
    const auto [at, is_new] = known.try_emplace(column, columns.size());
    if (is_new) columns.push_back(std::move(column));
    group.columns.push_back(at->second);
  }
  for (size_t m = 0; m < group.members.size(); m++) {
    group.members[m].numbers.clear();
    for (const std::vector<int64_t>& column : columns)
      group.members[m].numbers.push_back(column[m]);
  }
}

bool fits(const std::vector<int64_t>& numbers) {
  return std::ranges::all_of(numbers, [](int64_t n) {
    return n >= std::numeric_limits<int32_t>::min() &&
           n <= std::numeric_limits<int32_t>::max();
  });
}

std::string parameters_text(const MergeGroup& group) {
  switch (group.passing) {
  case NumberPassing::None:
    return "";
  case NumberPassing::Words16:
    return ", const u16* __restrict numbers";
  case NumberPassing::Words32:
    return ", const i32* __restrict numbers";
  case NumberPassing::Values:
    break;
  }
  std::string out;
  for (size_t i = 0; i < group.members.front().numbers.size(); i++)
    out += ", i32 number" + std::to_string(i);
  return out;
}

// The numbers of a part, behind its function.
std::string table_text(const MergeGroup& group, const MergeMember& member) {
  if (group.passing == NumberPassing::Values) return "";
  return std::string("static const ") +
         (group.passing == NumberPassing::Words16 ? "u16" : "i32") +
         " own_numbers[] = {" + join(member.numbers) + "};\n";
}

MarkedReader reader_of(const MergeGroup& group) {
  MarkedReader out;
  out.parameters = parameters_text(group);
  out.number = [&](size_t place) {
    const size_t column = group.columns[place];
    if (column == MergeGroup::kNone) return std::string();
    return group.passing == NumberPassing::Values
               ? "number" + std::to_string(column)
               : "numbers[" + std::to_string(column) + "]";
  };
  return out;
}

struct Chosen {
  const MergeGroup* group = nullptr;
  const MergeMember* member = nullptr;
};
using ChosenFunctions = std::map<size_t, Chosen>; // by the number of the function

std::string merged_text(const KernelSource& source, const ChosenFunctions& chosen,
                        bool sequence) {
  std::string out;
  size_t function = 0;
  std::map<const MergeGroup*, size_t> written; // parts of a sequence may be one
  MarkedReader calls;
  calls.call = [&](size_t part) {
    const auto found = chosen.find(part);
    if (found == chosen.end()) return std::string();
    const bool values = found->second.group->passing == NumberPassing::Values;
    return ", " + (values ? join(found->second.member->numbers)
                          : "part" + std::to_string(part) + "::own_numbers");
  };
  for (const MarkedSection& section : read_marked(source.marked)) {
    const auto found = section.is_function ? chosen.find(function++) : chosen.end();
    if (found == chosen.end()) {
      out += plain_text_of(section.pieces, calls);
      continue;
    }
    const Chosen& c = found->second;
    const auto [first, is_new] = written.try_emplace(c.group, found->first);
    out += is_new ? plain_text_of(section.pieces, reader_of(*c.group))
                  : "using part" + std::to_string(first->second) + "::body;\n";
    if (sequence) out += table_text(*c.group, *c.member);
  }
  return out;
}

} // namespace

std::vector<MergeGroup> merge_groups(const Kernels& kernels, bool parts) {
  std::map<std::string, size_t> known;
  std::vector<MergeGroup> all;
  for (size_t i = 0; i < kernels.sources.size(); i++) {
    const KernelSource& source = kernels.sources[i];
    const ScheduledKernel& program = kernels.plan.programs[source.program];
    if (source.marked.empty() || (program.sequence() != nullptr && !parts)) continue;
    size_t function = 0;
    for (const MarkedSection& section : read_marked(source.marked)) {
      if (!section.is_function) continue;
      MergeMember member{i, function++, numbers_of(section.pieces)};
      if (!fits(member.numbers)) continue;
      std::string key = std::to_string(source.parts.lanes) + source.level;
      for (const std::string& flag : source.flags) key += " " + flag;
      const auto [at, is_new] =
          known.try_emplace(key + "\n" + skeleton(section.pieces), all.size());
      if (is_new) all.emplace_back();
      all[at->second].members.push_back(std::move(member));
    }
  }
  std::vector<MergeGroup> out;
  for (size_t i = 0; i < all.size(); i++) {
    if (all[i].members.size() < 2) continue;
    find_columns(all[i]);
    if (all[i].members.front().numbers.empty()) continue;
    all[i].passing = passing_of(all[i]);
    out.push_back(std::move(all[i]));
  }
  return out;
}

void merge_functions(Kernels& kernels, const std::vector<MergeGroup>& groups) {
  std::map<size_t, ChosenFunctions> by_source;
  for (const MergeGroup& group : groups)
    for (const MergeMember& member : group.members)
      by_source[member.source][member.function] = {&group, &member};
  for (const auto& [number, chosen] : by_source) {
    KernelSource& source = kernels.sources[number];
    const bool sequence = kernels.plan.programs[source.program].sequence() != nullptr;
    source.text.resize(source.prelude_bytes);
    source.text += merged_text(source, chosen, sequence);
    if (sequence) continue;
    const Chosen& own = chosen.begin()->second;
    source.passing = own.group->passing;
    source.numbers = own.member->numbers;
  }
}

} // namespace svod::codegen
