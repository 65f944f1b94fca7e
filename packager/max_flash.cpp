#include "packager/max_flash.h"

#include "compiler/kernel/text.h"
#include "packager/budget.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace svod::packager {

namespace {

// A kernel for speed: what it takes more, and what it is worth.
struct Candidate {
  KernelFacts kernel;
  int64_t more = 0; // bytes
};

std::vector<Candidate> candidates(const FlashAttempt& small, const FlashAttempt& fast) {
  std::map<Digest, uint64_t> bytes;
  for (const KernelFacts& k : small.kernels) bytes[k.digest] = k.bytes;
  std::vector<Candidate> out;
  for (const KernelFacts& k : fast.kernels)
    if (const auto known = bytes.find(k.digest); known != bytes.end())
      out.push_back(
          {k, static_cast<int64_t>(k.bytes) - static_cast<int64_t>(known->second)});
  std::ranges::stable_sort(out, [](const Candidate& a, const Candidate& b) {
    return a.kernel.work * double(std::max<int64_t>(b.more, 1)) >
           b.kernel.work * double(std::max<int64_t>(a.more, 1));
  });
  return out;
}

std::string given_up(uint64_t asked, const FlashAttempt& now,
                     const std::set<Digest>& fast) {
  double all = 0, kept = 0;
  std::string names;
  for (const KernelFacts& k : now.kernels) {
    all += k.work;
    if (!fast.contains(k.digest)) continue;
    kept += k.work;
    names += (names.empty() ? " " : ", ") + k.symbol;
  }
  const size_t small = now.kernels.size() - fast.size();
  return "--max-flash: " + std::to_string(small) + " of " +
         std::to_string(now.kernels.size()) + " kernels are for size, which saves " +
         std::to_string(asked - now.flash) + " bytes of " + std::to_string(asked) +
         (fast.empty() ? ""
                       : "; for speed are" + names + ", which do " +
                             std::to_string(std::lround(100 * kept / all)) +
                             " % of the operations");
}

} // namespace

FlashAttempt flash_attempt(const codegen::Kernels& kernels, const ImageContents& contents,
                           const Objects& objects) {
  FlashAttempt out;
  out.flash = flash_bytes(contents, objects.sizes);
  for (const ScheduledKernel& program : kernels.plan.programs)
    out.kernels.push_back({digest_of(program), "", 0, 0});
  for (size_t i = 0; i < kernels.sources.size(); i++) {
    KernelFacts& kernel = out.kernels[kernels.sources[i].program];
    if (kernel.symbol.empty()) kernel.symbol = kernels.sources[i].symbol;
    kernel.bytes += objects.kernel_bytes[i];
  }
  for (const plan::Step& step : kernels.plan.steps)
    if (step.kind == plan::StepKind::LaunchProgram)
      out.kernels[step.program].work += double(step.flops) * double(step.repeats);
  return out;
}

std::string fit_flash(uint64_t most, uint64_t asked, const TryFlash& attempt) {
  const std::optional<FlashAttempt> small = attempt({});
  if (!small) return "";
  if (small->flash > most)
    return "--max-flash: all kernels are for size, and it is " +
           std::to_string(small->flash) + " bytes all the same";
  std::set<Digest> fast;
  for (const KernelFacts& k : small->kernels) fast.insert(k.digest);
  const std::optional<FlashAttempt> large = attempt(fast);
  if (!large) return "";
  std::vector<Digest> chosen;
  int64_t room = static_cast<int64_t>(most - small->flash);
  for (const Candidate& c : candidates(*small, *large)) {
    if (c.more > room || c.kernel.work == 0) continue;
    room -= c.more;
    chosen.push_back(c.kernel.digest);
  }
  // Functions that kernels share are counted only now.
  for (;; chosen.pop_back()) {
    fast = {chosen.begin(), chosen.end()};
    const std::optional<FlashAttempt> now = attempt(fast);
    if (!now) return "";
    if (now->flash <= most || chosen.empty()) return given_up(asked, *now, fast);
  }
}

} // namespace svod::packager
