// A fusion is judged by two cuts that differ in one value: stored, and computed where it
// is read. What both read and write costs by the memory that it is found in: in the cut
// that was made as the run shows it, in the other one by what the kernels touch between.
#include "compiler/explain/verdict.h"

#include "compiler/explain/cut_work.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <cmath>

namespace svod::explain {

std::string_view text_of(FusionKind kind) {
  constexpr std::string_view kTexts[] = {"on the way", "prologue", "epilogue", "row",
                                         "border",     "chain",    "sequence"};
  return kTexts[static_cast<size_t>(kind)];
}

Judge::Judge(const FusedGraph& fused, const Machine& machine)
    : f_(fused), g(fused.graph), machine_(machine), gate_(optimize::io_gate(machine)) {
  for (BufferId id = 0; id < f_.buffers.size(); ++id)
    buffer_of_.emplace(f_.buffers[id].node, id); // memory of a call lies behind it
  find_roots();
  measure();
}

// A kernel notes its root first. One that fills a border reads nothing, and one that
// copies a part into a join computes nothing.
void Judge::find_roots() {
  readers_.resize(f_.buffers.size());
  roots_.assign(f_.kernels.size(), kNoNode);
  for (size_t k = 0; k < f_.kernels.size(); ++k) {
    const ScheduledKernel& kernel = f_.kernels[k];
    const bool reads = std::ranges::any_of(kernel.arguments, &Argument::read);
    if (!kernel.nodes.empty() && reads && !kernel.call()) roots_[k] = kernel.nodes[0];
    for (const Argument& a : kernel.arguments)
      if (a.kind == Argument::Kind::Buffer && a.read) readers_[a.id].push_back(k);
  }
}

void Judge::measure() {
  ReuseDistances distances(machine_);
  const size_t buffers = f_.buffers.size();
  for (int time = 0; time < 2; ++time) {
    profiles_.assign(f_.kernels.size(), {});
    levels_.assign(f_.kernels.size(), {});
    for (size_t k = 0; k < f_.kernels.size(); ++k) {
      const ScheduledKernel& kernel = f_.kernels[k];
      IoProfile& profile = profiles_[k];
      profile.launches = 1;
      profile.operations = double(kernel.flops);
      for (uint32_t i = 0; i < kernel.arguments.size(); ++i) {
        const Argument& a = kernel.arguments[i];
        const bool weight = a.kind == Argument::Kind::Packed;
        const int64_t whole = weight ? f_.packed[a.id].bytes() : f_.buffers[a.id].bytes();
        const NodeId node = weight ? f_.packed[a.id].source : f_.buffers[a.id].node;
        const int64_t bytes = touched_bytes(kernel, i, whole);
        const MemoryLevel level = distances.touch(weight ? buffers + a.id : a.id, bytes);
        if (a.read) profile.at(level).read += bytes, levels_[k][node] = level;
        if (a.written) profile.at(level_of(machine_, bytes)).written += bytes;
      }
    }
  }
}

// Whether its reductions are those of rows, over axes of the result's own positions, or
// are all written out, so that what several of their sums read is there once.
bool Judge::by_rows(size_t kernel) const {
  const NodeId root = roots_[kernel];
  const ScheduledKernel& k = f_.kernels[kernel];
  if (std::ranges::none_of(k.stages,
                           [](const Stage& s) { return s.kind == StageKind::Reduce; }))
    return true;
  return std::ranges::any_of(f_.kernels[kernel].nodes, [&](NodeId n) {
    return n != root && is_reduce(g[n].op) && g[g[n].inputs[0]].shape == g[root].shape;
  });
}

MemoryLevel Judge::level_of_read(size_t kernel, NodeId n, int64_t bytes) const {
  const auto found = levels_[kernel].find(n);
  return found != levels_[kernel].end() ? found->second : level_of(machine_, bytes);
}

// A kernel that finds what it reads where `kernel` does, or else `other`.
void Judge::add_kernel(IoProfile& to, const CutWork& work, size_t kernel,
                       size_t other) const {
  to.launches += 1;
  to.operations += work.operations;
  for (const auto& [n, bytes] : work.reads) {
    const size_t finder = levels_[kernel].count(n) != 0 ? kernel : other;
    to.at(level_of_read(finder, n, bytes)).read += bytes;
  }
  to.at(level_of(machine_, work.result_bytes)).written += work.result_bytes;
}

void Judge::finish(Verdict& v) const {
  v.gain_ns = gate_.gain_ns(v.apart, v.fused);
  // Where both are equal there is nothing to object to.
  constexpr double kNothing = 1e-3; // ns
  v.gate = std::abs(v.gain_ns) < kNothing ? v.made : gate_.should_fuse(v.apart, v.fused);
}

// The reduction whose sums a kernel makes, not by rows, and maps on.
static NodeId base_of(const Graph& g, const CutWork& work, bool by_rows) {
  NodeId base = kNoNode;
  for (const auto& [n, evaluations] : work.evaluations)
    if (is_reduce(g[n].op) && !by_rows) base = n;
  return base;
}

// Below that reduction; above it; or there is none.
static FusionKind kind_of(const Graph& g, const CutWork& whole, NodeId value,
                          bool by_rows) {
  if (by_rows && is_reduce(g[value].op)) return FusionKind::Row;
  if (by_rows) return FusionKind::Map;
  const NodeId base = base_of(g, whole, by_rows);
  if (base == kNoNode) return FusionKind::Map;
  return value < base ? FusionKind::Prologue : FusionKind::Epilogue;
}

std::vector<Verdict> Judge::taken_in(size_t kernel) const {
  const NodeId root = roots_[kernel];
  std::vector<Verdict> out;
  if (root == kNoNode) return out;
  const bool rows = by_rows(kernel);
  auto stored = [&](NodeId n) { return is_stored(n); };
  const CutWork whole = cut_work(g, root, rows, stored);
  for (NodeId value : f_.kernels[kernel].nodes) {
    const auto evaluated = whole.evaluations.find(value);
    if (value == root || !is_computed(g, value) || evaluated == whole.evaluations.end())
      continue;
    const bool product = std::ranges::any_of(whole.evaluations, [&](const auto& reader) {
      return is_product_of_sum(g, reader.first, value);
    });
    if (product) continue;
    const CutWork first = cut_work(g, value, rows, stored);
    const CutWork rest =
        cut_work(g, root, rows, [&](NodeId n) { return n == value || stored(n); });
    Verdict v;
    v.kind = kind_of(g, whole, value, rows);
    v.value = value;
    v.made = true;
    v.evaluations =
        evaluated->second / double(std::max<int64_t>(element_count(g[value].shape), 1));
    v.apart.launches = 2, v.fused.launches = 1;
    v.apart.operations = first.operations + rest.operations;
    v.fused.operations = whole.operations;
    const MemoryLevel between = level_of(machine_, first.touched_bytes());
    for (const auto& [n, bytes] : first.reads)
      v.apart.at(level_of_read(kernel, n, bytes)).read += bytes;
    v.apart.at(between).written += first.result_bytes;
    for (const auto& [n, bytes] : rest.reads) {
      const bool again = n == value || first.reads.count(n) != 0;
      v.apart.at(again ? between : level_of_read(kernel, n, bytes)).read += bytes;
    }
    for (const auto& [n, bytes] : whole.reads)
      v.fused.at(level_of_read(kernel, n, bytes)).read += bytes;
    const MemoryLevel result = level_of(machine_, whole.result_bytes);
    v.apart.at(result).written += whole.result_bytes;
    v.fused.at(result).written += whole.result_bytes;
    finish(v);
    out.push_back(v);
  }
  return out;
}

std::optional<Verdict> Judge::border(size_t kernel) const {
  const NodeId value = roots_[kernel];
  const auto buffer = buffer_of_.find(value);
  if (buffer == buffer_of_.end() ||
      stored_by(f_.buffers[buffer->second].reason) == StoredBy::Meaning)
    return std::nullopt;
  const std::vector<size_t>& readers = readers_[buffer->second];
  if (readers.empty()) return std::nullopt;
  Verdict v;
  v.kind = FusionKind::Border;
  v.open = stored_by(f_.buffers[buffer->second].reason) == StoredBy::Rule;
  v.value = value;
  const bool own_rows = by_rows(kernel);
  auto stored = [&](NodeId n) { return is_stored(n); };
  const CutWork own = cut_work(g, value, own_rows, stored);
  add_kernel(v.apart, own, kernel, kernel);
  // What maps a sum goes to the readers alone: the sum itself is stored in its place.
  NodeId base = base_of(g, own, own_rows);
  if (base == value) base = kNoNode;
  if (base != kNoNode)
    add_kernel(v.fused, cut_work(g, base, own_rows, stored), kernel, kernel);
  auto opened = [&](NodeId n) { return n == base || (n != value && is_stored(n)); };
  double evaluations = 0;
  for (size_t reader : readers) {
    const NodeId root = roots_[reader];
    if (root == kNoNode || root == value) return std::nullopt; // it takes no code in
    const CutWork now = cut_work(g, root, by_rows(reader), stored);
    const CutWork then = cut_work(g, root, by_rows(reader), opened);
    add_kernel(v.apart, now, reader, reader);
    add_kernel(v.fused, then, reader, kernel);
    if (const auto at = then.evaluations.find(value); at != then.evaluations.end())
      evaluations += at->second;
    // No reader takes another kernel's sums in.
    v.open &= std::ranges::none_of(then.evaluations, [&](const auto& evaluated) {
      return is_reduce(g[evaluated.first].op) &&
             now.evaluations.count(evaluated.first) == 0;
    });
  }
  v.evaluations =
      evaluations / double(std::max<int64_t>(element_count(g[value].shape), 1));
  finish(v);
  return v;
}

// What goes from one kernel to the next is found where it is as large as one part.
// Weights are read for every tile of rows either way.
Verdict Judge::chain(const Chain& chain) const {
  Verdict v;
  v.kind = FusionKind::Chain;
  v.made = true;
  v.apart.launches = v.fused.launches = static_cast<int64_t>(chain.count);
  int64_t part = 0;
  for (const Chain::Passed& passed : chain.buffers) part += passed.bytes;
  for (const Chain::Passed& passed : chain.buffers) {
    v.value = f_.buffers[passed.buffer].node;
    const int64_t bytes = f_.buffers[passed.buffer].bytes();
    for (size_t reader : readers_[passed.buffer]) {
      v.apart.at(level_of_read(reader, v.value, bytes)).read += bytes;
      v.fused.at(level_of(machine_, part)).read += bytes;
    }
    v.apart.at(level_of(machine_, bytes)).written += bytes;
    v.fused.at(level_of(machine_, part)).written += bytes;
  }
  finish(v);
  return v;
}

Verdict Judge::sequence(int64_t launches) const {
  Verdict v;
  v.kind = FusionKind::Sequence;
  v.made = true;
  v.apart.launches = launches;
  v.fused.launches = 1;
  finish(v);
  return v;
}

// Whether an operator by itself would copy. Windows and broadcasts are how a reader
// reads.
static bool copies(const Graph& g, NodeId view) {
  if (!is_view(g[view].op) || !g.depends_on_input(view) || lies_as_viewed(g, view))
    return false;
  for (NodeId at = view; is_view(g[at].op); at = g[at].inputs[0])
    if (g[at].op == Op::Window || g[at].op == Op::Expand || g[at].op == Op::Pad)
      return false;
  return true;
}

IoProfile unfused_profile(const Graph& g, const Machine& machine) {
  IoProfile out;
  ReuseDistances distances(machine);
  const std::vector<NodeId> live = g.live_nodes();
  std::vector<bool> inside(g.size()); // products of sums
  for (NodeId n : live)
    if (is_reduce(g[n].op) && is_product_of_sum(g, n, g[n].inputs[0]))
      inside[g[n].inputs[0]] = true;
  for (int time = 0; time < 2; ++time) {
    out = {};
    for (NodeId n : live) {
      if ((!is_computed(g, n) && !copies(g, n)) || inside[n]) continue;
      const CutWork work = cut_work(g, n, false, [&](NodeId in) {
        return is_view(g[in].op) ? copies(g, in) : !inside[in];
      });
      out.launches += 1;
      out.operations += work.operations;
      for (const auto& [in, bytes] : work.reads)
        out.at(distances.touch(in, bytes)).read += bytes;
      distances.touch(n, work.result_bytes);
      out.at(level_of(machine, work.result_bytes)).written += work.result_bytes;
    }
  }
  return out;
}

} // namespace svod::explain
