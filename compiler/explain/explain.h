// Why each kernel of a plan is what it is: where it comes from, what it takes in, where
// and why it ends, and what the other cuts would have cost.
#pragma once

#include "compiler/explain/verdict.h"
#include "compiler/plan/io.h"

namespace svod::explain {

// A kernel of the plan, in the order of launches.
struct KernelAccount {
  uint32_t program = 0;           // that computes it, alone or with others
  uint32_t launch = 0;            // that it belongs to; several have the same: a sequence
  std::vector<std::string> nodes; // ONNX nodes
  std::string result;             // "f32[1,64,56,56]"
  std::string layout;             // of the stored tensor
  std::vector<std::string> algorithms; // of its contractions
  StoreReason reason = StoreReason::Output;
  std::vector<uint32_t> readers; // other accounts, by number
  std::vector<Verdict> taken_in;
  std::vector<std::string> taken; // the ONNX node of each of them, or what it is
  std::optional<Verdict> border;
  std::optional<uint32_t> chain; // of Account::chains
  // Positions of its loops that end where a run needs no more (select/run_ends.h).
  std::vector<int64_t> run_ends;
  enum class Does : uint8_t {
    Computes,
    FillsBorder,
    Copies,
    Calls
  } does = Does::Computes;
  IoProfile profile;
};

struct ChainAccount {
  uint32_t first = 0, count = 0; // accounts
  int64_t part_bytes = 0, whole_bytes = 0;
  Verdict verdict;
};

// A region of the graph that is not cut as the rules would.
struct CutAccount {
  std::vector<std::string> stored, inlined; // values: what they are, and their ONNX nodes
  double before = 0, after = 0;             // seconds, of the kernels that this changes
  std::optional<CutSearch::Gate> gate;
};

struct SequenceAccount {
  uint32_t launch = 0, program = 0;
  Verdict verdict;
};

struct Account {
  IoProfile run;     // of the plan
  IoProfile unfused; // one kernel per operator
  double saved_ns = 0;
  plan::Copies copies;
  bool open_sizes = false; // a run decides some
  std::vector<KernelAccount> kernels;
  std::vector<ChainAccount> chains;
  std::vector<SequenceAccount> sequences;
  CutSearch search;             // of the whole graph
  std::vector<CutAccount> cuts; // what it took
};

// `fused`: what the plan was made from.
Account explain(const FusedGraph& fused, const plan::Plan& plan, const Machine& machine);

// How often the gate says what the rules say: of fusions that were made, and of values
// that the cut chose to store. `missed`: values that the gate would not store, though no
// kernel could compute them where they are read.
struct Agreement {
  size_t fused = 0, fused_by_gate = 0;
  size_t stored = 0, stored_by_gate = 0;
  size_t missed = 0;
  double missed_ns = 0;
};
Agreement agreement_of(const Account& account);

} // namespace svod::explain
