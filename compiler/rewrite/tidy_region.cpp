// A body is a closed world: its rules see an input where the graph around it may know the
// value, and they keep a result that nobody reads. So first it is decided what each input
// of a body becomes and which outputs stay, then the body is copied with that.
#include "compiler/rewrite/tidy_region.h"

#include "compiler/ir/build.h"
#include "compiler/ir/graph_copy.h"

#include <algorithm>
#include <map>

namespace svod::rewrite {

namespace {

// What becomes of one input of a body.
struct InputFate {
  enum class Kind { Kept, Gone, Known, Same } kind = Kind::Kept;
  NodeId outer = kNoNode; // Known: a node of the graph around
  size_t as = 0;          // Same: another input of the body
};

// Which inputs the outputs in `needed` are computed from.
std::vector<bool> used_inputs(const Graph& body, const std::vector<bool>& needed) {
  std::vector<bool> live(body.size());
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i]) live[body.outputs()[i].node] = true;
  for (NodeId id = static_cast<NodeId>(body.size()); id-- > 0;)
    if (live[id])
      for (NodeId input : body[id].inputs) live[input] = true;
  std::vector<bool> used;
  for (const GraphInput& input : body.inputs()) used.push_back(live[input.node]);
  return used;
}

// Copies nodes between a region's bodies and the graph around, with the names of the ONNX
// nodes that they come from.
class NamedCopy {
public:
  NamedCopy(Graph& to, const Graph& from)
      : to_(to), from_(from), copy_(to, from, [this](NodeId id) { return make(id); }) {}
  NamedCopy(const NamedCopy&) = delete;
  NamedCopy& operator=(const NamedCopy&) = delete;

  void set(NodeId from, NodeId to) { copy_.set(from, to); }
  NodeId copy(NodeId id) { return copy_.copy(id); }
  void credit(NodeId to, NodeId from) { to_.credit(to, sources_of(from)); }

private:
  NodeId make(NodeId id) {
    const size_t first = to_.size();
    const NodeId made = rebuild(to_, copy_.over_copies(id));
    const std::vector<int32_t> sources = sources_of(id);
    for (size_t n = first; n < to_.size(); ++n)
      to_.credit(static_cast<NodeId>(n), sources);
    to_.credit(made, sources);
    return made;
  }

  std::vector<int32_t> sources_of(NodeId id) {
    std::vector<int32_t> out;
    for (int32_t source : from_.sources(id)) {
      const auto [known, fresh] = numbers_.emplace(source, 0);
      if (fresh) known->second = number_of(from_.source_name(source));
      out.push_back(known->second);
    }
    return out;
  }

  int32_t number_of(const std::string& name) {
    const std::vector<std::string>& names = to_.source_names();
    const auto found = std::ranges::find(names, name);
    const auto number = static_cast<int32_t>(found - names.begin());
    if (found != names.end()) return number;
    to_.open_source(name);
    to_.close_source();
    return number;
  }

  Graph& to_;
  const Graph& from_;
  std::map<int32_t, int32_t> numbers_; // of names in `to`, by those in `from`
  GraphCopy copy_;
};

// The body with its inputs as decided, `order` giving those that are kept, and the
// outputs in `needed`.
Graph rebuild_body(const Graph& body, const Graph& outer,
                   const std::vector<InputFate>& fates, const std::vector<size_t>& order,
                   const std::vector<bool>& needed) {
  Graph out;
  out.begin_as(body);
  NamedCopy copy(out, body), known(out, outer);
  std::vector<NodeId> now(fates.size(), kNoNode);
  for (size_t i : order) {
    const Node& type = body[body.inputs()[i].node];
    now[i] = out.add_input(body.inputs()[i].name, type.dtype, type.shape);
    copy.credit(now[i], body.inputs()[i].node);
  }
  for (size_t i = 0; i < fates.size(); ++i)
    if (fates[i].kind == InputFate::Kind::Known) now[i] = known.copy(fates[i].outer);
  for (size_t i = 0; i < fates.size(); ++i) {
    if (fates[i].kind == InputFate::Kind::Same) now[i] = now[fates[i].as];
    if (now[i] != kNoNode) copy.set(body.inputs()[i].node, now[i]);
  }
  for (size_t i = 0; i < needed.size(); ++i)
    if (needed[i])
      out.add_output(body.outputs()[i].name, copy.copy(body.outputs()[i].node));
  return out;
}

// Inputs of the region from `first` on that a body takes from `inner` on: captured ones.
void decide_captured(const Graph& g, const Node& node, size_t first, size_t inner,
                     const std::vector<bool>& used, std::vector<InputFate>& fates) {
  std::map<NodeId, size_t> seen;
  for (size_t k = first; k < node.inputs.size(); ++k) {
    const size_t at = inner + k - first;
    const NodeId outer = node.inputs[k];
    const auto [same, fresh] = seen.emplace(outer, at);
    if (!used[at])
      fates[at].kind = InputFate::Kind::Gone, seen.erase(outer);
    else if (!g.depends_on_input(outer))
      fates[at] = {InputFate::Kind::Known, outer, 0};
    else if (!fresh)
      fates[at] = {InputFate::Kind::Same, kNoNode, same->second};
  }
}

class LoopTidy {
public:
  LoopTidy(Graph& outer, const Node& node, const Graph& body,
           const std::vector<bool>& wanted)
      : g(outer), node_(node), body_(body), spec_(loop_spec(node)), wanted_(wanted),
        carried_(static_cast<size_t>(spec_.carried)),
        sliced_(static_cast<size_t>(spec_.sliced)), first_(spec_.again ? 1 : 0) {}

  TidyRegion run(const std::function<Graph(const Graph&)>& simplify_body);

private:
  NodeId input(size_t i) const { return body_.inputs()[i].node; }
  NodeId output(size_t i) const { return body_.outputs()[i].node; }
  bool unchanged(size_t k) const { return output(first_ + k) == input(1 + k); }
  void decide();

  Graph& g;
  const Node& node_;
  const Graph& body_;
  LoopSpec spec_;
  const std::vector<bool>& wanted_;
  size_t carried_, sliced_, first_;
  bool drops_again_ = false;
  std::vector<bool> needed_; // by output of the body
  std::vector<InputFate> fates_;
};

void LoopTidy::decide() {
  drops_again_ = spec_.again && splat_bits(body_, output(0)) == uint64_t{1};
  needed_.assign(body_.outputs().size(), false);
  if (spec_.again) needed_[0] = !drops_again_;
  for (size_t i = first_; i < needed_.size(); ++i)
    needed_[i] =
        wanted_[i - first_] && (i - first_ >= carried_ || !unchanged(i - first_));
  // What is carried is needed when an iteration's needed results are computed from it.
  std::vector<bool> used;
  for (bool grew = true; grew;) {
    grew = false;
    used = used_inputs(body_, needed_);
    for (size_t k = 0; k < carried_; ++k)
      if (used[1 + k] && !needed_[first_ + k] && !unchanged(k))
        needed_[first_ + k] = grew = true;
  }
  fates_.assign(body_.inputs().size(), {});
  for (size_t k = 0; k < carried_; ++k) {
    if (needed_[first_ + k]) continue;
    const NodeId init = node_.inputs[2 + k];
    fates_[1 + k].kind = InputFate::Kind::Gone;
    if (used[1 + k] && !g.depends_on_input(init))
      fates_[1 + k] = {InputFate::Kind::Known, init, 0};
    else if (used[1 + k])
      fates_[1 + k].kind = InputFate::Kind::Kept; // captured from now on
  }
  for (size_t k = 0; k < sliced_; ++k)
    if (!used[1 + carried_ + k]) fates_[1 + carried_ + k].kind = InputFate::Kind::Gone;
  decide_captured(g, node_, 2 + carried_ + sliced_, 1 + carried_ + sliced_, used, fates_);
}

TidyRegion LoopTidy::run(const std::function<Graph(const Graph&)>& simplify_body) {
  decide();
  LoopSpec spec = spec_;
  spec.carried = spec.sliced = 0;
  spec.again = spec_.again && !drops_again_;
  spec.reversed.clear();
  std::vector<NodeId> inputs{node_.inputs[0], node_.inputs[1]};
  std::vector<size_t> order{0}, captured;
  const auto keep = [&](size_t i) {
    order.push_back(i);
    inputs.push_back(node_.inputs[1 + i]);
  };
  for (size_t i = 1; i < fates_.size(); ++i) {
    if (fates_[i].kind != InputFate::Kind::Kept) continue;
    const bool carried = i <= carried_ && needed_[first_ + i - 1];
    const bool slice = i > carried_ && i <= carried_ + sliced_;
    if (!carried && !slice) {
      captured.push_back(i);
      continue;
    }
    keep(i);
    if (carried) ++spec.carried;
    if (slice) ++spec.sliced, spec.reversed.push_back(spec_.reversed[i - 1 - carried_]);
  }
  for (size_t i : captured) keep(i);
  TidyRegion out;
  out.results.assign(wanted_.size(), kNoNode);
  std::vector<int64_t> number(wanted_.size(), -1);
  int64_t next = 0;
  for (size_t r = 0; r < wanted_.size(); ++r) {
    if (needed_[first_ + r]) number[r] = next++;
    if (needed_[first_ + r] && r >= carried_)
      spec.reversed.push_back(spec_.reversed[sliced_ + r - carried_]);
  }
  Graph body = simplify_body(rebuild_body(body_, g, fates_, order, needed_));
  spec.body = g.add_body(std::make_shared<const Graph>(std::move(body)));
  out.region = loop(g, spec, std::move(inputs));
  for (size_t r = 0; r < wanted_.size(); ++r) {
    if (number[r] >= 0)
      out.results[r] = result(g, out.region, number[r]);
    else if (r < carried_ && unchanged(r))
      out.results[r] = node_.inputs[2 + r];
  }
  return out;
}

// The branch that is taken, in place of the if.
TidyRegion take_branch(Graph& g, const Node& node, const Graph& body) {
  TidyRegion out;
  NamedCopy copy(g, body);
  for (size_t i = 0; i < body.inputs().size(); ++i)
    copy.set(body.inputs()[i].node, node.inputs[1 + i]);
  for (const GraphOutput& output : body.outputs())
    out.results.push_back(copy.copy(output.node));
  return out;
}

TidyRegion tidy_if(Graph& g, const Node& node,
                   const std::vector<std::shared_ptr<const Graph>>& bodies,
                   const std::vector<bool>& wanted,
                   const std::function<Graph(const Graph&)>& simplify_body) {
  if (auto known = splat_bits(g, node.inputs[0]))
    return take_branch(g, node, *bodies[*known != 0 ? 0 : 1]);
  std::vector<bool> used = used_inputs(*bodies[0], wanted);
  const std::vector<bool> other = used_inputs(*bodies[1], wanted);
  for (size_t i = 0; i < used.size(); ++i) used[i] = used[i] || other[i];
  std::vector<InputFate> fates(used.size());
  decide_captured(g, node, 1, 0, used, fates);
  std::vector<NodeId> inputs{node.inputs[0]};
  std::vector<size_t> order;
  for (size_t i = 0; i < fates.size(); ++i)
    if (fates[i].kind == InputFate::Kind::Kept)
      order.push_back(i), inputs.push_back(node.inputs[1 + i]);
  uint32_t ids[2];
  for (size_t b = 0; b < 2; ++b) {
    Graph body = simplify_body(rebuild_body(*bodies[b], g, fates, order, wanted));
    ids[b] = g.add_body(std::make_shared<const Graph>(std::move(body)));
  }
  TidyRegion out;
  out.region = branch(g, ids[0], ids[1], std::move(inputs));
  int64_t next = 0;
  for (bool is_wanted : wanted)
    out.results.push_back(is_wanted ? result(g, out.region, next++) : kNoNode);
  return out;
}

} // namespace

TidyRegion tidy_region(Graph& g, Node node,
                       const std::vector<std::shared_ptr<const Graph>>& bodies,
                       const std::vector<bool>& wanted,
                       const std::function<Graph(const Graph&)>& simplify_body) {
  if (node.op == Op::If) return tidy_if(g, node, bodies, wanted, simplify_body);
  return LoopTidy(g, node, *bodies[0], wanted).run(simplify_body);
}

} // namespace svod::rewrite
