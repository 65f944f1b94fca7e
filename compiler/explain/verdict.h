// Every fusion that the compiler made, and every one that it did not make though it could
// have, put before the gate. The rules decide; the gate's answer stands beside theirs.
#pragma once

#include "compiler/explain/cut_work.h"
#include "compiler/kernel/fused_graph.h"
#include "compiler/optimize/io_gate.h"
#include "compiler/plan/plan.h"

namespace svod::explain {

enum class FusionKind : uint8_t {
  Map,      // a value that a kernel computes on the way to another
  Prologue, // likewise, below the reduction that reads it
  Epilogue, // likewise, from what is reduced
  Row,      // a reduction of rows, in the kernel that uses it
  Border,   // a stored value, if each reader computed it instead
  Chain,    // kernels that run part by part
  Sequence, // launches that are one
};
std::string_view text_of(FusionKind kind);

struct Verdict {
  FusionKind kind = FusionKind::Map;
  NodeId value = kNoNode; // what is not, or would not be stored
  IoProfile apart, fused; // of the kernels that it is about
  double gain_ns = 0;     // of fusing, by the gate
  bool made = false;      // whether the compiler fused
  bool gate = false;      // whether the gate would
  double evaluations = 1; // of each element of `value`, where it is fused
  bool agrees() const { return made == gate; }
  // Whether another decision would have been possible: no kernel computes some values on
  // the way to others.
  bool open = true;
};

// Of one fused graph; bodies of its regions have their own.
class Judge {
public:
  Judge(const FusedGraph& fused, const Machine& machine);

  // Of each value that the kernel computes on the way to its result.
  std::vector<Verdict> taken_in(size_t kernel) const;
  // Of its result, where the cut could have been another one; nothing where not.
  std::optional<Verdict> border(size_t kernel) const;
  Verdict chain(const Chain& chain) const;
  // Launches, as many as there are and as one.
  Verdict sequence(int64_t launches) const;

  // What the kernel stores, when it computes anything: no copy into a join, no border.
  NodeId root_of(size_t kernel) const { return roots_[kernel]; }
  // Kernels that read the buffer.
  const std::vector<size_t>& readers_of(BufferId id) const { return readers_[id]; }
  // What the kernel moves, in the run of the graph that it is a part of.
  const IoProfile& profile_of(size_t kernel) const { return profiles_[kernel]; }

private:
  void find_roots();
  void measure();
  bool is_stored(NodeId n) const { return buffer_of_.count(n) != 0; }
  bool by_rows(size_t kernel) const;
  MemoryLevel level_of_read(size_t kernel, NodeId n, int64_t bytes) const;
  void add_kernel(IoProfile& to, const CutWork& work, size_t kernel, size_t other) const;
  void finish(Verdict& verdict) const;

  const FusedGraph& f_;
  const Graph& g;
  Machine machine_;
  optimize::IoGate gate_;
  std::map<NodeId, BufferId> buffer_of_;
  std::vector<NodeId> roots_; // by kernel
  std::vector<std::vector<size_t>> readers_;
  std::vector<IoProfile> profiles_;
  // By kernel: where it finds what it reads, by node.
  std::vector<std::map<NodeId, MemoryLevel>> levels_;
};

// One kernel for each operator, for comparison; views that move elements are copies.
IoProfile unfused_profile(const Graph& graph, const Machine& machine);

} // namespace svod::explain
