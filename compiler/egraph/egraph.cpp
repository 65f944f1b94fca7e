#include "compiler/egraph/egraph.h"

#include "compiler/ir/graph_copy.h"
#include "compiler/rewrite/rounding.h"
#include "compiler/support/check.h"

namespace svod::egraph {

EGraph::EGraph(const Graph& graph) {
  GraphCopy copy(g, graph, [&](NodeId id) { return g.intern(copy.over_copies(id)); });
  copy.run();
  absorb();
}

Node EGraph::canonical(NodeId id) const {
  Node node = g[id];
  for (NodeId& input : node.inputs) input = find(input);
  return node;
}

NodeId EGraph::enter(NodeId id) {
  const Node node = canonical(id);
  const uint64_t hash = hash_node(node);
  NodeId first = id;
  bool entered = false;
  auto [at, end] = table_.equal_range(hash);
  for (; at != end; ++at) { // entries from before a join do not equal any more
    if (dropped_[at->second] || canonical(at->second) != node) continue;
    first = std::min(first, at->second);
    entered = entered || at->second == id;
  }
  if (first == id && !entered) table_.emplace(hash, id);
  return first;
}

void EGraph::absorb() {
  for (auto id = static_cast<NodeId>(classes_.size()); id < g.size(); ++id) {
    classes_.add();
    forms_.emplace_back();
    users_.emplace_back();
    known_.push_back(g.depends_on_input(id) ? kNoNode : id);
    dropped_.push_back(false);
    const NodeId form = enter(id);
    if (form != id) {
      dropped_[id] = true;
      const NodeId both = classes_.join(form, id);
      known_[both] = std::min(known_[both], known_[id]);
      continue;
    }
    forms_[id].push_back(id);
    for (NodeId input : g[id].inputs) users_[find(input)].push_back(id);
  }
}

bool EGraph::merge(NodeId a, NodeId b) {
  absorb();
  a = find(a), b = find(b);
  if (a == b) return false;
  SVOD_CHECK(g[a].dtype == g[b].dtype && g[a].shape == g[b].shape)
      << "%" << a << " and %" << b << " have different types";
  const NodeId to = classes_.join(a, b), from = a == to ? b : a;
  std::vector<NodeId> both;
  std::ranges::merge(forms_[to], forms_[from], std::back_inserter(both));
  forms_[to] = std::move(both);
  forms_[from].clear();
  users_[to].insert(users_[to].end(), users_[from].begin(), users_[from].end());
  users_[from].clear();
  known_[to] = std::min(known_[to], known_[from]);
  joined_.push_back(to);
  return true;
}

void EGraph::drop_form(NodeId id) {
  dropped_[id] = true;
  std::erase(forms_[find(id)], id);
}

// The users of a class that was joined are entered anew. Those that are now one form with
// another are dropped, the lowest stays, and their classes are joined.
void EGraph::rebuild() {
  absorb();
  while (!joined_.empty()) {
    const NodeId joined = find(joined_.back());
    joined_.pop_back();
    std::vector<NodeId> users = users_[joined];
    std::ranges::sort(users);
    users.erase(std::unique(users.begin(), users.end()), users.end());
    std::erase_if(users, [&](NodeId user) { return dropped_[user]; });
    users_[joined] = users;
    for (NodeId user : users) {
      const NodeId form = enter(user);
      if (form == user) continue;
      drop_form(user);
      merge(form, user);
    }
  }
}

std::vector<NodeId> EGraph::live_classes() const {
  std::vector<bool> live(classes_.size());
  std::vector<NodeId> stack;
  const auto reach = [&](NodeId id) {
    id = find(id);
    if (live[id]) return;
    live[id] = true;
    stack.push_back(id);
  };
  for (const GraphOutput& output : g.outputs()) reach(output.node);
  while (!stack.empty()) {
    const NodeId at = stack.back();
    stack.pop_back();
    for (NodeId form : forms_[at])
      for (NodeId input : g[form].inputs) reach(input);
  }
  std::vector<NodeId> out;
  for (NodeId id = 0; id < live.size(); ++id)
    if (live[id]) out.push_back(id);
  return out;
}

// Forms lead to classes of higher and lower numbers, so one pass may not be enough.
std::vector<bool> EGraph::rounded_classes(const std::vector<NodeId>& live) const {
  std::vector<bool> rounded(classes_.size());
  for (bool changed = true; changed;) {
    changed = false;
    for (auto at = live.rbegin(); at != live.rend(); ++at)
      for (NodeId form : forms_[*at]) {
        const Node& node = g[form];
        if (!rewrite::rounds_to_integer(node.op, node.dtype) &&
            !(rewrite::passes_rounding(node) && rounded[*at]))
          continue;
        for (NodeId input : node.inputs)
          if (!rounded[find(input)]) rounded[find(input)] = changed = true;
      }
  }
  return rounded;
}

size_t EGraph::blob_bytes() {
  for (; counted_blobs_ < g.blob_count(); ++counted_blobs_)
    blob_bytes_ += g.blob(counted_blobs_).size();
  return blob_bytes_;
}

} // namespace svod::egraph
