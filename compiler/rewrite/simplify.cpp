// Copies the graph node by node through the builder and looks at each new node with the
// rules of its op until none applies. A copy may make room for rules on nodes that came
// before (their users became fewer), so copies are made until one changes nothing.
#include "compiler/rewrite/simplify.h"

#include "compiler/ir/digest.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/rewrite/rounding.h"
#include "compiler/rewrite/rule.h"
#include "compiler/rewrite/tidy_region.h"

#include <map>
#include <utility>

namespace svod::rewrite {

namespace {

// What the copy must know of a node's users, gathered from users to inputs.
struct Users {
  int64_t count = 0;
  bool unknown = false; // one depends on an input of the graph, seen through known views
};

std::vector<Users> find_users(const Graph& g, const std::vector<NodeId>& live) {
  std::vector<Users> users(g.size());
  for (const GraphOutput& output : g.outputs()) {
    ++users[output.node].count;
    users[output.node].unknown = true;
  }
  for (auto id = live.rbegin(); id != live.rend(); ++id) {
    const bool unknown =
        g.depends_on_input(*id) || (is_view(g[*id].op) && users[*id].unknown);
    for (NodeId input : g[*id].inputs) {
      ++users[input].count;
      users[input].unknown = users[input].unknown || unknown;
    }
  }
  return users;
}

// One copy of the graph.
class Round {
public:
  Round(const Graph& from, const SimplifyOptions& options, int64_t& fold_bytes,
        SimplifyReport& report)
      : from_(from), options_(options), fold_bytes_(fold_bytes), report_(report),
        live_(from.live_nodes()), users_(find_users(from, live_)),
        rounded_(rounded_later(from)),
        copy_(rewriter_.g, from, [this](NodeId id) { return make(id); }) {}

  Graph run() {
    rewriter_.fold_bytes = fold_bytes_;
    copy_.run();
    fold_bytes_ = rewriter_.fold_bytes;
    return std::move(rewriter_.g);
  }

private:
  NodeId make(NodeId id) {
    rewriter_.keep_rounding = !options_.change_rounding || rounded_[id];
    rewriter_.meets_unknown = users_[id].unknown;
    NodeId result = kNoNode;
    if (has_body(from_[id].op))
      result = make_region(id);
    else if (from_[id].op == Op::Result)
      result = results_.at(from_[id].inputs[0]).at(number_of(id));
    else
      result = make_simplest(id);
    if (result != kNoNode) rewriter_.add_uses(result, users_[id].count);
    return result; // kNoNode: an if whose branch is known
  }

  size_t number_of(NodeId result) const {
    return static_cast<size_t>(from_[result].payload[0]);
  }

  NodeId make_region(NodeId id) {
    Node node = from_[id];
    for (NodeId& input : node.inputs) input = copy_[input];
    std::vector<std::shared_ptr<const Graph>> bodies;
    for (size_t b = 0; b < body_count(node.op); ++b)
      bodies.push_back(from_.body(static_cast<uint32_t>(node.payload[b])));
    size_t count = bodies[0]->outputs().size();
    if (node.op == Op::Loop && loop_spec(node).again) --count;
    std::vector<bool> wanted(count);
    for (NodeId user : live_)
      if (from_[user].op == Op::Result && from_[user].inputs[0] == id)
        wanted[number_of(user)] = true;
    SimplifyOptions options = options_;
    options.fold_bytes = fold_bytes_;
    TidyRegion tidy =
        tidy_region(rewriter_.g, node, bodies, wanted,
                    [&](const Graph& body) { return simplify(body, options, &report_); });
    results_[id] = std::move(tidy.results);
    return tidy.region;
  }

  NodeId make_simplest(NodeId id) {
    Graph& g = rewriter_.g;
    const size_t first = g.size();
    NodeId result = rebuild(g, copy_.over_copies(id));
    std::vector<NodeId> replaced;
    for (int step = 0;; ++step) {
      if (step == options_.most_steps) {
        report_.end.reason = PassEnd::Limit;
        break;
      }
      const NodeId better = apply_first(result, replaced);
      if (better == kNoNode) break;
      result = better;
    }
    for (NodeId old : replaced) {
      const std::vector<int32_t> sources = g.sources(old);
      for (size_t made = first; made < g.size(); ++made)
        g.credit(static_cast<NodeId>(made), sources);
      g.credit(result, sources);
    }
    return result;
  }

  NodeId apply_first(NodeId id, std::vector<NodeId>& replaced) {
    for (size_t row : rules_of(rewriter_.g[id].op)) {
      const NodeId better = apply(rules()[row], rewriter_, id, replaced);
      if (better == kNoNode) continue;
      ++report_.fired[row];
      ++report_.end.steps;
      return better;
    }
    return kNoNode;
  }

  const Graph& from_;
  const SimplifyOptions& options_;
  int64_t& fold_bytes_;
  SimplifyReport& report_;
  const std::vector<NodeId> live_;
  const std::vector<Users> users_;
  const std::vector<bool> rounded_;
  Rewriter rewriter_;
  GraphCopy copy_;
  std::map<NodeId, std::vector<NodeId>> results_; // of the regions in from_
};

} // namespace

Graph simplify(const Graph& graph, const SimplifyOptions& options,
               SimplifyReport* report) {
  SimplifyReport unread;
  SimplifyReport& said = report ? *report : unread;
  said.fired.resize(rules().size());
  int64_t fold_bytes = options.fold_bytes;
  Graph current = Round(graph, options, fold_bytes, said).run();
  Digest digest = graph_digest(current);
  int round = 1;
  for (bool changed = true; changed; ++round) {
    if (round == options.most_rounds) {
      said.end.reason = PassEnd::Limit;
      break;
    }
    current = Round(current, options, fold_bytes, said).run();
    const Digest next = graph_digest(current);
    changed = next != digest;
    digest = next;
  }
  said.end.rounds += round;
  return current;
}

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names;
  for (const Rule& rule : rules()) names.push_back(rule.name);
  return names;
}

} // namespace svod::rewrite
