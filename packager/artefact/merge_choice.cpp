// Kernels of all groups are compiled twice, one by one and merged; what is taken after
// all comes from the cache. A call's numbers are not compiled for this, but counted.
#include "packager/artefact/merge_choice.h"

#include "compiler/codegen/merge_functions.h"
#include "compiler/support/join.h"
#include "compiler/toolchain/link_once.h"
#include "packager/artefact/kernel_jobs.h"

#include <algorithm>
#include <map>
#include <set>

namespace svod::packager {

namespace {

// Bytes on 32-bit ARM: of a number that is called with, an immediate and a store; of a
// table's address, one that is loaded.
constexpr uint64_t kValueBytes = 5, kAddressBytes = 8;

using Functions = std::map<size_t, toolchain::LinkOnce>; // by their numbers

// Parts of a sequence are in namespaces of their own, "part12"; its entry is in none, and
// no function that is merged.
Functions functions_of(std::span<const std::byte> object, bool sequence) {
  Functions out;
  for (toolchain::LinkOnce& function : toolchain::link_once_functions(object)) {
    if (!toolchain::is_kernel(function.name)) continue;
    constexpr std::string_view kPart = "part";
    const size_t part = function.scope.find(kPart);
    if (sequence != (part != std::string::npos)) continue;
    const size_t number =
        sequence ? std::stoull(function.scope.substr(part + kPart.size())) : 0;
    out[number] = std::move(function);
  }
  return out;
}

// Of the sources that these groups change; nothing when one does not compile.
using Compiled = std::map<size_t, Functions>; // by source
std::optional<Compiled> compiled(const Target& target, const codegen::Kernels& kernels,
                                 const ObjectOptions& options,
                                 const std::set<size_t>& sources) {
  std::vector<toolchain::CompileJob> jobs;
  for (size_t i : sources)
    jobs.push_back(kernel_job(target, kernels.sources[i], options.flags));
  const toolchain::CompileAllResult result =
      toolchain::compile_all(package_compiler(), target, jobs, options.cache);
  if (!result.ok()) return std::nullopt;
  Compiled out;
  size_t job = 0;
  for (size_t i : sources) {
    const ScheduledKernel& kernel = kernels.plan.programs[kernels.sources[i].program];
    out[i] = functions_of(result.results[job++].output, kernel.sequence() != nullptr);
  }
  return out;
}

// Equal code is there once; of equal parts of a sequence one alone is a function.
uint64_t code_bytes(const codegen::MergeGroup& group, const Compiled& functions) {
  std::set<std::string> seen;
  uint64_t out = 0;
  for (const codegen::MergeMember& member : group.members) {
    const Functions& there = functions.at(member.source);
    const auto function = there.find(member.function);
    if (function != there.end() && seen.insert(function->second.name).second)
      out += function->second.bytes;
  }
  return out;
}

uint64_t number_bytes(const codegen::MergeGroup& group) {
  const uint64_t numbers = group.members.front().numbers.size();
  std::set<std::vector<int64_t>> tables;
  for (const codegen::MergeMember& member : group.members) tables.insert(member.numbers);
  if (group.passing == codegen::NumberPassing::Values)
    return group.members.size() * numbers * kValueBytes;
  const uint64_t each = group.passing == codegen::NumberPassing::Words16 ? 2 : 4;
  return tables.size() * numbers * each + group.members.size() * kAddressBytes;
}

} // namespace

std::vector<MergedGroup> merge_kernels(const Target& target, codegen::Kernels& kernels,
                                       const ObjectOptions& options, bool parts) {
  const std::vector<codegen::MergeGroup> groups = codegen::merge_groups(kernels, parts);
  if (groups.empty()) return {};
  std::set<size_t> sources;
  for (const codegen::MergeGroup& group : groups)
    for (const codegen::MergeMember& member : group.members)
      sources.insert(member.source);
  codegen::Kernels merged;
  merged.plan.programs = kernels.plan.programs;
  merged.sources = kernels.sources;
  codegen::merge_functions(merged, groups);
  const std::optional<Compiled> before = compiled(target, kernels, options, sources),
                                after = compiled(target, merged, options, sources);
  if (!before || !after) return {};
  std::vector<codegen::MergeGroup> chosen;
  std::vector<MergedGroup> out;
  for (const codegen::MergeGroup& group : groups) {
    MergedGroup told{{},
                     group.members.front().numbers.size(),
                     code_bytes(group, *before),
                     code_bytes(group, *after) + number_bytes(group)};
    if (told.after >= told.before) continue;
    for (const codegen::MergeMember& member : group.members)
      told.kernels.push_back(kernels.sources[member.source].symbol);
    chosen.push_back(group);
    out.push_back(std::move(told));
  }
  codegen::merge_functions(kernels, chosen);
  return out;
}

std::string merged_line(const MergedGroup& group) {
  return "merged: " + join(group.kernels) + ": " + std::to_string(group.after) +
         " bytes with " + std::to_string(group.numbers) + " numbers of each, " +
         std::to_string(group.before) + " one by one";
}

} // namespace svod::packager
