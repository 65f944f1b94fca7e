#include "compiler/explain/explain.h"

#include "compiler/explain/cut_work.h"
#include "compiler/support/check.h"
#include "compiler/support/join.h"

#include <algorithm>
#include <set>

namespace svod::explain {

namespace {

class Explainer {
public:
  Explainer(const FusedGraph& fused, const plan::Plan& plan, const Machine& machine)
      : plan_(plan), machine_(machine), gate_(optimize::io_gate(machine)),
        launched_(plan::launched_kernels(fused)) {
    for (const plan::Launched& l : launched_)
      if (judges_.try_emplace(l.fused, *l.fused, machine).second)
        graphs_.push_back(l.fused);
  }
  Account run(const FusedGraph& fused);

private:
  void add_step(const plan::Step& step);
  void add_kernel(const plan::Step& step, uint32_t program);
  void add_result(KernelAccount& k, const plan::Launched& l) const;
  void add_algorithms(KernelAccount& k, const plan::Launched& l) const;
  void add_readers();
  void add_chains();
  void add_search(const FusedGraph& fused);
  std::string name_of(const Graph& g, NodeId n) const;

  const plan::Plan& plan_;
  const Machine& machine_;
  const optimize::IoGate gate_;
  const std::vector<plan::Launched> launched_;
  std::map<const FusedGraph*, Judge> judges_;
  std::vector<const FusedGraph*> graphs_;             // in the order of launches
  std::map<const ScheduledKernel*, uint32_t> number_; // of its account
  std::vector<plan::Launched> of_account_;
  Account out_;
};

std::string text_of(const Graph& g, NodeId n) {
  return std::string(info(g[n].dtype).text) + "[" + join(g[n].shape, ",") + "]";
}

size_t kernel_number(const plan::Launched& l) {
  return static_cast<size_t>(l.kernel - l.fused->kernels.data());
}

std::string Explainer::name_of(const Graph& g, NodeId n) const {
  return join(g.names_of(g.sources(n)));
}

void Explainer::add_result(KernelAccount& k, const plan::Launched& l) const {
  const Graph& g = l.fused->graph;
  const Judge& judge = judges_.at(l.fused);
  const size_t number = kernel_number(l);
  const NodeId root = judge.root_of(number);
  for (const Argument& a : l.kernel->arguments) {
    if (a.kind != Argument::Kind::Buffer || !a.written) continue;
    const Buffer& b = l.fused->buffers[a.id];
    k.result = text_of(g, root != kNoNode ? root : b.node);
    k.layout = svod::print(b.layout);
    k.reason = b.reason;
    break;
  }
  using Does = KernelAccount::Does;
  if (l.kernel->call())
    k.does = Does::Calls;
  else if (root == kNoNode)
    k.does = l.kernel->nodes.empty() ? Does::Copies : Does::FillsBorder;
  k.taken_in = judge.taken_in(number);
  for (const Verdict& v : k.taken_in)
    k.taken.push_back(std::string(info(g[v.value].op).text) + " " + name_of(g, v.value));
  k.border = judge.border(number);
  k.profile = judge.profile_of(number);
  for (const RunEnd& e : l.kernel->ends)
    k.run_ends.push_back(l.kernel->indices.extent(e.axis) * e.step);
}

// Those of contractions that come from one of its ONNX nodes.
void Explainer::add_algorithms(KernelAccount& k, const plan::Launched& l) const {
  const bool reduces = std::ranges::any_of(
      l.kernel->nodes, [&](NodeId n) { return is_reduce(l.fused->graph[n].op); });
  for (const ChosenAlgorithm& c : l.fused->chosen) {
    const std::string text = c.contraction + " -> " + c.algorithm;
    if (reduces && std::ranges::count(k.nodes, c.source) != 0 &&
        std::ranges::count(k.algorithms, text) == 0)
      k.algorithms.push_back(text);
  }
}

void Explainer::add_kernel(const plan::Step& step, uint32_t program) {
  const plan::Launched& l = launched_[step.kernel];
  KernelAccount k;
  k.program = program;
  k.launch = static_cast<uint32_t>(out_.run.launches);
  k.nodes = plan_.graph.names_of(step.sources);
  add_result(k, l);
  add_algorithms(k, l);
  number_[l.kernel] = static_cast<uint32_t>(out_.kernels.size());
  of_account_.push_back(l);
  out_.kernels.push_back(std::move(k));
}

void Explainer::add_step(const plan::Step& step) {
  if (step.kind != plan::StepKind::LaunchProgram) return;
  if (step.joined.empty()) add_kernel(step, step.program);
  int64_t launches = 0;
  for (const plan::Step& part : step.joined) {
    if (part.kind != plan::StepKind::LaunchProgram) continue;
    add_kernel(part, step.program);
    launches += part.repeats / step.repeats;
  }
  if (!step.joined.empty()) {
    const auto launch = static_cast<uint32_t>(out_.run.launches);
    const Judge& judge = judges_.at(of_account_.back().fused);
    out_.sequences.push_back({launch, step.program, judge.sequence(launches)});
  }
  ++out_.run.launches; // counted here for numbers; the plan's profile replaces it
}

void Explainer::add_readers() {
  for (size_t i = 0; i < out_.kernels.size(); ++i) {
    const plan::Launched& l = of_account_[i];
    std::set<uint32_t> readers;
    for (const Argument& a : l.kernel->arguments) {
      if (a.kind != Argument::Kind::Buffer || !a.written) continue;
      for (size_t reader : judges_.at(l.fused).readers_of(a.id)) {
        const auto found = number_.find(&l.fused->kernels[reader]);
        if (found != number_.end() && found->second != i) readers.insert(found->second);
      }
    }
    out_.kernels[i].readers.assign(readers.begin(), readers.end());
  }
}

void Explainer::add_chains() {
  for (const FusedGraph* fused : graphs_)
    for (const Chain& chain : fused->chains) {
      const auto first = number_.find(&fused->kernels[chain.first]);
      if (first == number_.end()) continue;
      ChainAccount c;
      c.first = first->second;
      c.count = static_cast<uint32_t>(chain.count);
      for (const Chain::Passed& passed : chain.buffers) {
        c.part_bytes += passed.bytes;
        c.whole_bytes += fused->buffers[passed.buffer].bytes();
      }
      c.verdict = judges_.at(fused).chain(chain);
      out_.chains.push_back(c);
    }
  std::ranges::sort(out_.chains, {}, &ChainAccount::first);
  for (uint32_t i = 0; i < out_.chains.size(); ++i)
    for (uint32_t k = 0; k < out_.chains[i].count; ++k)
      out_.kernels[out_.chains[i].first + k].chain = i;
}

void Explainer::add_search(const FusedGraph& fused) {
  out_.search = fused.searched;
  const auto texts = [&](const std::vector<NodeId>& nodes) {
    std::vector<std::string> out;
    for (NodeId n : nodes)
      out.push_back(std::string(info(fused.graph[n].op).text) + " " +
                    name_of(fused.graph, n));
    return out;
  };
  for (const CutSearch::Taken& taken : fused.searched.taken)
    out_.cuts.push_back({texts(taken.stored), texts(taken.inlined), taken.before,
                         taken.after, taken.gate});
}

Account Explainer::run(const FusedGraph& fused) {
  for (const plan::Step& step : plan_.steps) add_step(step);
  add_readers();
  add_chains();
  add_search(fused);
  out_.run = plan::io_profile(plan_, machine_);
  for (const FusedGraph* fused : graphs_)
    out_.unfused += unfused_profile(fused->graph, machine_);
  // Operations are as many either way, but for what fusions compute again.
  IoProfile before = out_.unfused, after = out_.run;
  before.operations = after.operations = 0;
  out_.saved_ns = gate_.gain_ns(before, after);
  out_.copies = plan::copies_of(plan_);
  out_.open_sizes = has_open_sizes(fused.graph);
  return std::move(out_);
}

} // namespace

Account explain(const FusedGraph& fused, const plan::Plan& plan, const Machine& machine) {
  return Explainer(fused, plan, machine).run(fused);
}

Agreement agreement_of(const Account& account) {
  Agreement out;
  auto add = [&](const Verdict& v) {
    if (!v.open) {
      if (v.gate) out.missed += 1, out.missed_ns += v.gain_ns;
      return;
    }
    (v.made ? out.fused : out.stored) += 1;
    if (v.agrees()) (v.made ? out.fused_by_gate : out.stored_by_gate) += 1;
  };
  for (const KernelAccount& k : account.kernels) {
    for (const Verdict& v : k.taken_in) add(v);
    if (k.border) add(*k.border);
  }
  for (const ChainAccount& c : account.chains) add(c.verdict);
  for (const SequenceAccount& s : account.sequences) add(s.verdict);
  return out;
}

} // namespace svod::explain
