// What a cut of a graph costs: its kernels by the real lowering, scheduled by the rules,
// priced on the strongest level of the target for one thread.
#pragma once

#include "compiler/optimize/cost/cost.h"
#include "compiler/select/requests.h"
#include "compiler/select/search_cut.h"

namespace svod {

// Of one graph; `requests` are those of the rules' cut. Groups that lower to the same
// kernel for certain, since all that lowering sees of them is equal, are lowered once,
// and kernels with equal digests are priced once.
class LoweredCutPricer : public select::CutPricer {
public:
  LoweredCutPricer(const Graph& graph, const FormSums& sums,
                   const select::Requests& requests, const Target& target,
                   const cost::Surroundings& around)
      : g(graph), sums_(sums), requests_(requests), target_(target), around_(around) {}

  std::optional<std::vector<uint32_t>>
  price(const select::CutDecisions& decisions) override;
  const select::CutKernelPrice& kernel(uint32_t number) const override {
    return kernels_[number];
  }

private:
  struct Cut; // with its buffers
  uint32_t price_group(const Group& group, Cut& cut);
  uint32_t price_border(NodeId target, Cut& cut);
  struct Program {
    double seconds = 0;
    uint32_t number = 0;
  };
  Program program_of(const ScheduledKernel& kernel);

  const Graph& g;
  const FormSums& sums_;
  const select::Requests& requests_;
  const Target& target_;
  const cost::Surroundings around_;
  std::vector<select::CutKernelPrice> kernels_;
  std::map<std::string, uint32_t> number_; // by all that lowering sees of a group
  std::map<Digest, Program> programs_;
};

// What the kernels of a fused graph run among, before it has a plan: its weights, and the
// values that are needed at one time.
cost::Surroundings surroundings_of(const FusedGraph& fused);

// Values that kernels compute, read or write which would run part by part. The cost of a
// kernel knows nothing of that, so these are cut by the rules.
std::set<NodeId> touched_by_chains(FusedGraph fused, const Machine& machine);

} // namespace svod
