// One block of lines per kernel, in the order in which they run. Times are the gate's:
// what moving data and computing twice takes on one core, not what the kernel takes.
#include "compiler/support/join.h"
#include "packager/report/explanation.h"
#include "packager/report/summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace svod::packager {

namespace {

using explain::Account;
using explain::KernelAccount;
using explain::Verdict;

constexpr size_t kLabel = 12, kWidth = 100;

// "41.2 us"
std::string time_text(double ns) {
  const double size = std::abs(ns);
  char text[32];
  if (size < 1e3)
    std::snprintf(text, sizeof(text), "%.0f ns", size);
  else if (size < 1e6)
    std::snprintf(text, sizeof(text), "%.1f us", size / 1e3);
  else if (size < 1e9)
    std::snprintf(text, sizeof(text), "%.2f ms", size / 1e6);
  else
    std::snprintf(text, sizeof(text), "%.1f s", size / 1e9);
  return text;
}

std::string count_text(size_t count, const char* one) {
  return std::to_string(count) + " " + one + (count == 1 ? "" : "s");
}

// A line with a label; what follows is broken at spaces and stands below itself.
std::string line(const std::string& label, const std::string& text) {
  std::string out = "  " + label + std::string(kLabel - label.size(), ' ');
  size_t column = out.size();
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    if (column + end - begin > kWidth && begin != 0) {
      out += "\n" + std::string(2 + kLabel, ' ');
      column = 2 + kLabel;
    } else if (begin != 0) {
      out += " ", ++column;
    }
    out += text.substr(begin, end - begin);
    column += end - begin;
    begin = end + 1;
  }
  return out + "\n";
}

// "reads 1.2 MiB (second cache 1.0 MiB, memory 0.2 MiB), writes 3.1 MiB (last cache)"
std::string traffic_text(const IoProfile& profile) {
  std::string out;
  for (const bool reads : {true, false}) {
    int64_t all = 0;
    std::vector<std::string> levels, sizes;
    for (size_t i = 0; i < kMemoryLevels; ++i) {
      const IoProfile::Traffic& t = profile.traffic[i];
      const int64_t bytes = reads ? t.read : t.written;
      all += bytes;
      if (bytes == 0) continue;
      levels.emplace_back(text_of(static_cast<MemoryLevel>(i)));
      sizes.push_back(size_text(static_cast<uint64_t>(bytes)));
    }
    if (levels.size() > 1)
      for (size_t i = 0; i < levels.size(); ++i) levels[i] += " " + sizes[i];
    out += reads ? "reads " : ", writes ";
    out += all == 0 ? "nothing" : size_text(static_cast<uint64_t>(all));
    if (!levels.empty()) out += " (" + join(levels) + ")";
  }
  return out;
}

std::string times_text(double evaluations) {
  if (evaluations < 1.05) return "once";
  char text[48];
  std::snprintf(text, sizeof(text), "%.*f times", evaluations < 10 ? 1 : 0, evaluations);
  return text;
}

// "saves 4.1 us", or what it costs, and that the gate would not have done it.
std::string gain_text(const Verdict& v) {
  std::string out = (v.gain_ns >= 0 ? "saves " : "costs ") + time_text(v.gain_ns);
  if (v.evaluations > 1.01) out += ", computed " + times_text(v.evaluations);
  if (!v.agrees()) out += "; the gate would not";
  return out;
}

// Neighbours that say the same are one line.
std::string taken_text(const KernelAccount& k) {
  std::string out;
  for (size_t i = 0; i < k.taken_in.size(); ++i)
    out += line(i == 0 ? "takes in" : "", k.taken[i] + " (" +
                                              std::string(text_of(k.taken_in[i].kind)) +
                                              "): " + gain_text(k.taken_in[i]));
  return out;
}

std::string readers_text(const KernelAccount& k) {
  if (k.readers.empty()) return "";
  std::string out = k.readers.size() == 1 ? "; kernel" : "; kernels";
  for (size_t i = 0; i < k.readers.size(); ++i)
    out += (i == 0 ? " " : ", ") + std::to_string(k.readers[i]);
  return out + (k.readers.size() == 1 ? " reads it" : " read it");
}

std::string border_text(const Verdict& v) {
  std::string out = "computed where it is read, each element " +
                    times_text(v.evaluations) + ", it would " +
                    (v.gain_ns >= 0 ? "save " : "cost ") + time_text(v.gain_ns);
  if (v.agrees()) return out;
  return out + (v.open ? "; the gate would not store it" : "; no kernel can");
}

const char* does_text(KernelAccount::Does does) {
  switch (does) {
  case KernelAccount::Does::Computes:
    return "computes";
  case KernelAccount::Does::FillsBorder:
    return "border of";
  case KernelAccount::Does::Copies:
    return "copies to";
  case KernelAccount::Does::Calls:
    break;
  }
  return "calls for";
}

// Which loops a run's sizes end; their bounds.
std::string run_ends_text(const KernelAccount& k) {
  if (k.run_ends.empty()) return "every run computes all of it";
  return "loops of " + join(k.run_ends, ", ") + " end where a run needs no more";
}

std::string kernel_text(const Account& account, size_t number) {
  const KernelAccount& k = account.kernels[number];
  std::string out = "\nkernel " + std::to_string(number) + "  k" +
                    std::to_string(k.program) + "  " + join(k.nodes) + "\n";
  out += line(does_text(k.does), k.result + ", layout " + k.layout);
  for (const std::string& algorithm : k.algorithms) out += line("algorithm", algorithm);
  out += taken_text(k);
  if (k.does == KernelAccount::Does::Computes) {
    out += line("ends", "its result " + std::string(text_of(k.reason)) + readers_text(k));
    if (k.border) out += line("otherwise", border_text(*k.border));
  }
  if (account.open_sizes && k.does == KernelAccount::Does::Computes)
    out += line("sizes", run_ends_text(k));
  if (k.chain) {
    const explain::ChainAccount& c = account.chains[*k.chain];
    if (c.first == number)
      out += line("chain", "kernels " + std::to_string(c.first) + " to " +
                               std::to_string(c.first + c.count - 1) +
                               " run part by part and pass on " +
                               size_text(uint64_t(c.part_bytes)) + " of " +
                               size_text(uint64_t(c.whole_bytes)) + ": " +
                               gain_text(c.verdict));
  }
  return out + line("moves", traffic_text(k.profile));
}

std::string sequence_text(const explain::SequenceAccount& s) {
  return "\nlaunch " + std::to_string(s.launch) + "  k" + std::to_string(s.program) +
         "\n" +
         line("joins", std::to_string(s.verdict.apart.launches) +
                           " launches of the kernels below, too short to be launched one "
                           "by one: " +
                           gain_text(s.verdict));
}

std::string search_text(const Account& account) {
  const CutSearch& s = account.search;
  if (s.end == CutSearch::End::Off) return "";
  std::string out = line(
      "search",
      count_text(s.candidates, "cut") + " priced of " + count_text(s.choices, "choice") +
          " in " + count_text(s.regions, "region") +
          (s.end == CutSearch::End::Budget ? ", all that the budget allows" : "") +
          (s.refused ? ", " + count_text(s.refused, "fusion") + " refused by the gate"
                     : "") +
          ": the rules' kernels are predicted to take " + time_text(s.before * 1e9) +
          ", these " + time_text(s.after * 1e9));
  for (const explain::CutAccount& cut : account.cuts) {
    std::string text;
    if (!cut.stored.empty()) text += "stores " + join(cut.stored) + "; ";
    if (!cut.inlined.empty())
      text += "computes " + join(cut.inlined) + " where it is read; ";
    text +=
        "predicted " + time_text(cut.before * 1e9) + " -> " + time_text(cut.after * 1e9);
    if (cut.gate)
      text += std::string("; the gate ") + (cut.gate->agrees ? "agrees" : "objects") +
              ": it " + (cut.gate->gain_ns >= 0 ? "saves " : "costs ") +
              time_text(cut.gate->gain_ns);
    out += line("", text);
  }
  return out;
}

} // namespace

std::string explanation_text(const Account& account) {
  const IoProfile& run = account.run;
  std::string out = "a run\n";
  out += line("launches", std::to_string(run.launches) + " of " +
                              count_text(account.kernels.size(), "kernel") +
                              "; one per operator would be " +
                              std::to_string(account.unfused.launches));
  out += line("host", count_text(uint64_t(run.syncs), "sync") + ", " +
                          size_text(uint64_t(run.host_bytes)) + " copied to or from it");
  out += line("copies", account.copies.count == 0
                            ? "none"
                            : std::to_string(account.copies.count) + ", of " +
                                  size_text(uint64_t(account.copies.bytes)));
  out += line("moves", traffic_text(run));
  out += line("unfused", traffic_text(account.unfused));
  out += line("fusion", (account.saved_ns >= 0 ? "saves " : "costs ") +
                            time_text(account.saved_ns) + " of launches and traffic");
  const explain::Agreement a = explain::agreement_of(account);
  out += line("gate", "agrees with " + std::to_string(a.fused_by_gate) + " of " +
                          count_text(a.fused, "fusion") + " and with " +
                          std::to_string(a.stored_by_gate) + " of " +
                          count_text(a.stored, "value") + " stored by rule; " +
                          std::to_string(a.missed) +
                          " more would not be stored if a kernel could take them in, " +
                          time_text(a.missed_ns) + " in all");
  out += search_text(account);
  size_t next = 0;
  for (size_t i = 0; i < account.kernels.size(); ++i) {
    const bool begins =
        i == 0 || account.kernels[i - 1].launch != account.kernels[i].launch;
    if (begins && next < account.sequences.size() &&
        account.sequences[next].launch == account.kernels[i].launch)
      out += sequence_text(account.sequences[next++]);
    out += kernel_text(account, i);
  }
  return out;
}

} // namespace svod::packager
