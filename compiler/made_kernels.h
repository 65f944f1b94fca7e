// Kernels that earlier rounds of fuse() have made: most groups stay what they are from
// one round to the next, and lowering is most of what a round takes.
#pragma once

#include "compiler/group_key.h"
#include "compiler/optimize/make_kernel.h"

namespace svod {

// Of one graph, one target. Buffers and weights are numbered anew in each round, so
// kernels are kept with what their arguments are.
class MadeKernels {
public:
  void keep(const std::string& key, const optimize::CutKernel& cut,
            const optimize::MadeKernel& made, const Stored& stored);
  bool has(const std::string& key) const { return known_.count(key) != 0; }
  // Of a key that is known; adds to the weights what the kernel reads.
  optimize::CutKernel cut(const std::string& key, Stored& stored) const;
  optimize::MadeKernel made(const std::string& key, Stored& stored) const;

private:
  // By argument; a node where it is a buffer.
  struct Names {
    std::vector<NodeId> nodes;
    std::vector<PackedWeight> weights;
  };
  struct Known {
    optimize::CutKernel cut;
    optimize::MadeKernel made;
    Names cut_names, made_names;
  };
  static Names names_of(const ScheduledKernel& kernel, const Stored& stored);
  static void number(ScheduledKernel& kernel, const Names& names, Stored& stored);

  std::map<std::string, Known> known_;
};

} // namespace svod
