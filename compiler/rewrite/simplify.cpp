// Copies the graph node by node through the builder, inputs first, and looks at each new
// node with the rules of its op until none fires. A copy may make room for rules on nodes
// that came before (their users became fewer), so copies are made until one changes
// nothing.
#include "compiler/rewrite/simplify.h"

#include "compiler/ir/digest.h"
#include "compiler/rewrite/rewriter.h"
#include "compiler/rewrite/rounding.h"
#include "compiler/rewrite/tidy_region.h"
#include "compiler/support/check.h"

#include <map>
#include <utility>

namespace svod::rewrite {

namespace {

struct RuleRow {
  std::string_view name;
  int root; // Op, or -1: any
  RewriteRule apply;
};

constexpr RuleRow kRules[] = {
#define RULE(name, root, pattern, replacement, condition)                                \
  {#name, static_cast<int>(Op::root), rules::name},
#define RULE_ANY(name, pattern, replacement, condition) {#name, -1, rules::name},
#include "compiler/rewrite/rules.def"
};

// What the copy must know of a node's users, gathered from users to inputs.
struct Users {
  int64_t count = 0;
  bool unknown = false; // one depends on an input of the graph, seen through known views
};

std::vector<Users> find_users(const Graph& g, const std::vector<NodeId>& live) {
  std::vector<Users> users(g.size());
  std::vector<bool> known(g.size());
  for (NodeId id : live) {
    known[id] = !is_opaque(g[id].op);
    for (NodeId input : g[id].inputs) known[id] = known[id] && known[input];
  }
  for (const GraphOutput& output : g.outputs()) {
    ++users[output.node].count;
    users[output.node].unknown = true;
  }
  for (auto id = live.rbegin(); id != live.rend(); ++id) {
    const Node& node = g[*id];
    bool unknown = !known[*id] || (is_view(node.op) && users[*id].unknown);
    for (NodeId input : node.inputs) {
      ++users[input].count;
      users[input].unknown = users[input].unknown || unknown;
    }
  }
  return users;
}

// One copy of the graph.
class Copy {
public:
  Copy(const Graph& from, const SimplifyOptions& options, int64_t& fold_bytes,
       SimplifyReport& report)
      : from_(from), options_(options), fold_bytes_(fold_bytes), report_(report) {
    rewriter_.fold_bytes = fold_bytes;
  }

  Graph run() {
    Graph& g = rewriter_.g;
    g.copy_source_names(from_);
    new_id_.assign(from_.size(), kNoNode);
    for (const GraphInput& input : from_.inputs()) {
      const Node& node = from_[input.node];
      new_id_[input.node] = g.add_input(input.name, node.dtype, node.shape, input.seen);
      g.credit(new_id_[input.node], from_.sources(input.node));
    }
    std::vector<NodeId> live = from_.live_nodes();
    std::vector<Users> users = find_users(from_, live);
    std::vector<bool> rounded = rounded_later(from_);
    for (NodeId id : live) {
      rewriter_.keep_rounding = !options_.change_rounding || rounded[id];
      rewriter_.meets_unknown = users[id].unknown;
      if (has_body(from_[id].op))
        new_id_[id] = copy_region(id, live);
      else if (from_[id].op == Op::Result)
        new_id_[id] = results_.at(from_[id].inputs[0]).at(number_of(id));
      else if (new_id_[id] == kNoNode)
        new_id_[id] = copy_node(id);
      if (new_id_[id] == kNoNode) continue; // an if whose branch is known
      rewriter_.add_uses(new_id_[id], users[id].count);
    }
    for (const GraphOutput& output : from_.outputs())
      g.add_output(output.name, new_id_[output.node], output.seen);
    fold_bytes_ = rewriter_.fold_bytes;
    return std::move(g);
  }

private:
  size_t number_of(NodeId result) const {
    return static_cast<size_t>(from_[result].payload[0]);
  }

  NodeId copy_region(NodeId id, const std::vector<NodeId>& live) {
    Graph& g = rewriter_.g;
    Node node = from_[id];
    for (NodeId& input : node.inputs) input = new_id_[input];
    std::vector<std::shared_ptr<const Graph>> bodies;
    for (size_t b = 0; b < body_count(node.op); ++b)
      bodies.push_back(from_.body(static_cast<uint32_t>(node.payload[b])));
    size_t count = bodies[0]->outputs().size();
    if (node.op == Op::Loop && loop_spec(node).again) --count;
    std::vector<bool> wanted(count);
    for (NodeId user : live)
      if (from_[user].op == Op::Result && from_[user].inputs[0] == id)
        wanted[number_of(user)] = true;
    SimplifyOptions options = options_;
    options.fold_bytes = fold_bytes_;
    const size_t first_new = g.size();
    TidyRegion tidy = tidy_region(g, node, bodies, wanted, [&](const Graph& body) {
      return simplify(body, options, &report_);
    });
    for (size_t made = first_new; made < g.size(); ++made)
      g.credit(static_cast<NodeId>(made), from_.sources(id));
    results_[id] = std::move(tidy.results);
    return tidy.region;
  }

  NodeId copy_node(NodeId id) {
    Graph& g = rewriter_.g;
    Node node = from_[id];
    for (NodeId& input : node.inputs) input = new_id_[input];
    if (has_blob(node.op))
      node.payload[0] = g.add_blob(from_.blob(static_cast<uint32_t>(node.payload[0])));
    size_t first_new = g.size();
    std::vector<int32_t> sources = from_.sources(id);
    NodeId result = rebuild(g, node);
    for (int step = 0;; ++step) {
      if (step == options_.most_steps) {
        report_.end.reason = PassEnd::Limit;
        break;
      }
      NodeId better = apply_first(result);
      for (NodeId absorbed : rewriter_.take_absorbed())
        sources.insert(sources.end(), g.sources(absorbed).begin(),
                       g.sources(absorbed).end());
      if (better == kNoNode) break;
      result = better;
    }
    for (size_t made = first_new; made < g.size(); ++made)
      g.credit(static_cast<NodeId>(made), sources);
    g.credit(result, sources);
    return result;
  }

  NodeId apply_first(NodeId id) {
    int op = static_cast<int>(rewriter_.g[id].op);
    for (size_t row = 0; row < std::size(kRules); ++row) {
      if (kRules[row].root != op && kRules[row].root != -1) continue;
      NodeId better = kRules[row].apply(rewriter_, id);
      if (better == kNoNode || better == id) continue;
      ++report_.fired.at(row);
      ++report_.end.steps;
      return better;
    }
    return kNoNode;
  }

  const Graph& from_;
  const SimplifyOptions& options_;
  int64_t& fold_bytes_;
  SimplifyReport& report_;
  Rewriter rewriter_;
  std::vector<NodeId> new_id_;
  std::map<NodeId, std::vector<NodeId>> results_; // of the regions in from_
};

} // namespace

void Rewriter::add_uses(NodeId id, int64_t count) {
  if (id >= uses_.size()) uses_.resize(id + 1);
  uses_[id] += count;
}

bool Rewriter::known(NodeId id) {
  // Ids only grow, so what was decided stays decided.
  for (NodeId next = static_cast<NodeId>(known_.size()); next <= id; ++next) {
    bool all = !is_opaque(g[next].op);
    for (NodeId input : g[next].inputs) all = all && known_[input];
    known_.push_back(all);
  }
  return known_[id];
}

Graph simplify(const Graph& graph, const SimplifyOptions& options,
               SimplifyReport* report) {
  SimplifyReport unread;
  SimplifyReport& said = report ? *report : unread;
  said.fired.resize(std::size(kRules));
  int64_t fold_bytes = options.fold_bytes;
  Graph current = Copy(graph, options, fold_bytes, said).run();
  Digest digest = graph_digest(current);
  int round = 1;
  for (bool changed = true; changed; ++round) {
    if (round == options.most_rounds) {
      said.end.reason = PassEnd::Limit;
      break;
    }
    current = Copy(current, options, fold_bytes, said).run();
    const Digest next = graph_digest(current);
    changed = next != digest;
    digest = next;
  }
  said.end.rounds += round;
  return current;
}

std::vector<std::string_view> rule_names() {
  std::vector<std::string_view> names;
  for (const RuleRow& row : kRules) names.push_back(row.name);
  return names;
}

} // namespace svod::rewrite
