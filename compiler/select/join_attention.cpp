// The cut of a graph stores scores: a sum of products that a softmax reduces belongs to
// no kernel but its own. On a processor they then stay in its second cache, part by part
// (chain.h). A GPU has a form of the whole (gpu_attention.h), so what the cut has taken
// apart is joined again: from the product with the values back along all that has as many
// elements as there are scores, to the products that make them. What is between, a scale,
// a mask or a rounding, becomes part of the kernel, whatever its layout.
#include "compiler/select/join_attention.h"

#include "compiler/kernel/buffer_uses.h"
#include "compiler/kernel/gpu_attention.h"
#include "compiler/kernel/join_kernels.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <set>

namespace svod::select {

namespace {

// Of reductions and one store.
bool is_plain(const ScheduledKernel& k) {
  return !k.stages.empty() && k.scratch_bytes == 0 && has_free_order(k) &&
         std::ranges::count(k.stages, StageKind::Store, &Stage::kind) == 1 &&
         !k.has_lane_axis() && !k.has_dot_axis();
}

uint32_t store_of(const ScheduledKernel& k) {
  return static_cast<uint32_t>(
      std::ranges::find(k.stages, StageKind::Store, &Stage::kind) - k.stages.begin());
}

bool sums_products(const ScheduledKernel& k) {
  const Stage& s = k.stages[0];
  return s.kind == StageKind::Reduce && s.op == Op::ReduceSum &&
         k.exprs[s.value].kind == Expr::Kind::Map && k.exprs[s.value].op == Op::Mul;
}

class AttentionJoiner {
public:
  AttentionJoiner(FusedGraph& fused, const JoinPays& pays) : f_(fused), pays_(pays) {}
  void run();

private:
  struct Joined {
    ScheduledKernel kernel;
    std::set<size_t> parts; // kernels that it takes in
  };
  using Producers = std::map<uint32_t, Producer>;

  std::optional<size_t> only_writer(BufferId id, size_t reader) const;
  bool take_scores(size_t reader, BufferId id, int64_t elements, Producers& producers,
                   std::set<size_t>& parts) const;
  void take_factors(Joined& joined, size_t last, Producers& producers) const;
  std::optional<Joined> joined_at(size_t last) const;
  bool pays(const Joined& joined, size_t last) const;
  void complete(Joined& joined, size_t last) const;
  void remove(const std::set<size_t>& parts);

  FusedGraph& f_;
  const JoinPays& pays_;
  std::vector<BufferUse> uses_;
};

// The kernel that writes the buffer, where it does so for this reader alone.
std::optional<size_t> AttentionJoiner::only_writer(BufferId id, size_t reader) const {
  const BufferUse& use = uses_[id];
  auto reads_own = [&](size_t kernel) {
    return kernel == reader || (!use.writers.empty() && kernel == use.writers[0]);
  };
  if (use.outside || use.writers.size() != 1 || use.writers[0] >= reader ||
      !std::ranges::all_of(use.readers, reads_own) ||
      !is_plain(f_.kernels[use.writers[0]]))
    return std::nullopt;
  return use.writers[0];
}

// What makes this buffer, back to products, as long as it has as many elements.
bool AttentionJoiner::take_scores(size_t reader, BufferId id, int64_t elements,
                                  Producers& producers, std::set<size_t>& parts) const {
  if (element_count(f_.buffers[id].shape) != elements) return false;
  const std::optional<size_t> writer = only_writer(id, reader);
  if (!writer) return false;
  const ScheduledKernel& k = f_.kernels[*writer];
  producers[id] = {&k, store_of(k)};
  parts.insert(*writer);
  if (sums_products(k)) return true;
  bool found = false;
  for (const Argument& a : k.arguments)
    if (a.kind == Argument::Kind::Buffer && a.read && !a.written)
      found |= take_scores(*writer, a.id, elements, producers, parts);
  return found;
}

// Factors that are computed from one element each are read before they are.
void AttentionJoiner::take_factors(Joined& joined, size_t last,
                                   Producers& producers) const {
  const std::vector<Argument> arguments = joined.kernel.arguments;
  for (const Argument& a : arguments) {
    if (a.kind != Argument::Kind::Buffer || a.written) continue;
    const BufferUse& use = uses_[a.id];
    auto takes = [&](size_t reader) {
      return reader == last || joined.parts.contains(reader);
    };
    if (use.outside || use.writers.size() != 1 || use.writers[0] >= last ||
        !std::ranges::all_of(use.readers, takes))
      continue;
    const ScheduledKernel& k = f_.kernels[use.writers[0]];
    if (!is_plain(k) || k.stages.size() != 1) continue;
    const std::vector<ExprId> loads = loads_below(k, k.stages[0].value);
    if (loads.size() != 1 || byte_size(k.exprs[loads[0]].dtype) > byte_size(a.dtype))
      continue;
    Producers more = producers;
    more[a.id] = {&k, 0};
    std::optional<ScheduledKernel> next = join_kernels(f_.kernels[last], more);
    if (!next || !attention_of(*next)) continue;
    joined.kernel = std::move(*next);
    joined.parts.insert(use.writers[0]);
    producers = std::move(more);
  }
}

std::optional<AttentionJoiner::Joined> AttentionJoiner::joined_at(size_t last) const {
  const ScheduledKernel& k = f_.kernels[last];
  if (!is_plain(k) || !sums_products(k)) return std::nullopt;
  for (const Argument& a : k.arguments) {
    if (a.kind != Argument::Kind::Buffer || !a.read || a.written) continue;
    Producers producers;
    std::set<size_t> parts;
    const int64_t elements = element_count(f_.buffers[a.id].shape);
    if (!take_scores(last, a.id, elements, producers, parts)) continue;
    std::optional<ScheduledKernel> joined = join_kernels(k, producers);
    if (!joined || !attention_of(*joined)) continue;
    Joined out{std::move(*joined), std::move(parts)};
    take_factors(out, last, producers);
    return out;
  }
  return std::nullopt;
}

// What it computes, and what is left of the traffic.
void AttentionJoiner::complete(Joined& joined, size_t last) const {
  ScheduledKernel& k = joined.kernel;
  std::set<size_t> all = joined.parts;
  all.insert(last);
  k.flops = 0, k.bytes = 0;
  for (size_t i : all) {
    const ScheduledKernel& part = f_.kernels[i];
    k.flops += part.flops;
    for (NodeId n : part.nodes)
      if (std::ranges::find(k.nodes, n) == k.nodes.end()) k.nodes.push_back(n);
  }
  for (const Argument& a : k.arguments)
    k.bytes += a.kind == Argument::Kind::Packed ? f_.packed[a.id].bytes()
                                                : f_.buffers[a.id].bytes();
}

bool AttentionJoiner::pays(const Joined& joined, size_t last) const {
  std::vector<const ScheduledKernel*> apart;
  for (size_t i : joined.parts) apart.push_back(&f_.kernels[i]);
  apart.push_back(&f_.kernels[last]);
  return pays_(joined.kernel, apart);
}

void AttentionJoiner::remove(const std::set<size_t>& parts) {
  for (FusedRegion& region : f_.regions)
    region.kernels_before -= static_cast<size_t>(std::ranges::count_if(
        parts, [&](size_t i) { return i < region.kernels_before; }));
  size_t number = 0;
  std::erase_if(f_.kernels,
                [&](const ScheduledKernel&) { return parts.contains(number++); });
}

void AttentionJoiner::run() {
  uses_ = buffer_uses(f_);
  std::set<size_t> taken;
  std::map<size_t, ScheduledKernel> made;
  for (size_t last = 0; last < f_.kernels.size(); ++last) {
    std::optional<Joined> joined = joined_at(last);
    if (!joined) continue;
    complete(*joined, last);
    if (!pays(*joined, last)) continue;
    made.emplace(last, std::move(joined->kernel));
    taken.insert(joined->parts.begin(), joined->parts.end());
  }
  for (auto& [last, kernel] : made) f_.kernels[last] = std::move(kernel);
  if (!made.empty()) {
    remove(taken);
    drop_unused_buffers(f_);
  }
  for (FusedRegion& region : f_.regions)
    for (FusedGraph& body : region.bodies) join_attention(body, pays_);
}

} // namespace

void join_attention(FusedGraph& fused, const JoinPays& pays) {
  AttentionJoiner(fused, pays).run();
}

} // namespace svod::select
