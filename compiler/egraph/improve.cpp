#include "compiler/egraph/improve.h"

#include "compiler/ir/graph_copy.h"
#include "compiler/rewrite/simplify.h"
#include "compiler/support/check.h"

namespace svod::egraph {

using extract::ClassId;

namespace {

// Where a known class is computed from least bytes. Its known node may be no form of it
// any more: one with a node over inputs that are known by other forms.
NodeId cheapest_known(const EGraph& e, NodeId id, const Machine& machine) {
  NodeId best = e.known_form(id);
  for (NodeId form : e.of(id))
    if (!e.g.depends_on_input(form) &&
        known_cost(e.g, form, machine) < known_cost(e.g, best, machine))
      best = form;
  return best;
}

// Every class in the order in which their forms are made: what they read comes first.
std::vector<ClassId> in_order(const GraphProblem& from, const extract::Choice& choice) {
  std::vector<ClassId> order, stack = from.problem.roots;
  std::vector<bool> made(choice.size());
  while (!stack.empty()) {
    const ClassId at = stack.back();
    const size_t waiting = stack.size();
    if (!made[at])
      for (ClassId input : from.problem.classes[at][choice[at]].inputs)
        if (!made[input]) stack.push_back(input);
    if (stack.size() != waiting) continue;
    stack.pop_back();
    if (!made[at]) order.push_back(at);
    made[at] = true;
  }
  return order;
}

} // namespace

GraphProblem problem_of(const EGraph& e, const Machine& machine, Views views) {
  GraphProblem out;
  std::vector<ClassId> number(e.node_count(), ~0u);
  for (NodeId id : e.live_classes()) {
    number[id] = static_cast<ClassId>(out.classes.size());
    out.classes.push_back(id);
  }
  for (NodeId id : out.classes) {
    auto& forms = out.problem.classes.emplace_back();
    auto& nodes = out.forms.emplace_back();
    if (e.known(id)) {
      nodes.push_back(cheapest_known(e, id, machine));
      forms.push_back({known_cost(e.g, nodes[0], machine), {}});
      continue;
    }
    for (NodeId form : e.of(id)) {
      nodes.push_back(form);
      forms.push_back({node_cost(e.g, form, machine, views), {}});
      for (NodeId input : e.g[form].inputs)
        forms.back().inputs.push_back(number[e.find(input)]);
    }
  }
  for (const GraphOutput& output : e.g.outputs())
    out.problem.roots.push_back(number[e.find(output.node)]);
  return out;
}

Graph graph_of(const EGraph& e, const GraphProblem& from, const extract::Choice& choice) {
  Graph out;
  out.begin_as(e.g);
  std::vector<NodeId> made(e.node_count(), kNoNode); // by class
  GraphCopy copy(out, e.g);
  for (const GraphInput& input : e.g.inputs()) {
    const Node& node = e.g[input.node];
    const NodeId id = out.add_input(input.name, node.dtype, node.shape, input.seen);
    out.credit(id, e.g.sources(input.node));
    copy.set(input.node, id);
    made[e.find(input.node)] = id;
  }
  for (ClassId at : in_order(from, choice)) {
    const NodeId id = from.classes[at], form = from.forms[at][choice[at]];
    if (made[id] != kNoNode) continue;
    const size_t first = out.size();
    if (e.known(id)) {
      made[id] = copy.copy(form);
    } else {
      for (NodeId input : e.g[form].inputs) copy.set(input, made[e.find(input)]);
      made[id] = rebuild(out, copy.over_copies(form));
    }
    // The class is named by the node of the given graph, where that has one.
    for (const NodeId from_node : {form, id}) {
      for (size_t fresh = first; fresh < out.size(); ++fresh)
        out.credit(static_cast<NodeId>(fresh), e.g.sources(from_node));
      out.credit(made[id], e.g.sources(from_node));
    }
  }
  for (const GraphOutput& output : e.g.outputs())
    out.add_output(output.name, made[e.find(output.node)], output.seen);
  return out;
}

Graph improve(const Graph& graph, const Machine& machine, const ImproveOptions& options,
              ImproveReport* report) {
  ImproveReport unread;
  ImproveReport& said = report ? *report : unread;
  EGraph e(graph);
  said.saturation = saturate(e, options.saturate);
  const GraphProblem from = problem_of(e, machine, options.views);
  extract::ExtractOptions how;
  how.candidates = options.candidates;
  // The lowest node of each class is the graph's own.
  how.given.assign(from.classes.size(), 0);
  const extract::Extraction found = extract::extract(from.problem, how);
  said.candidates = found.candidates;
  said.parts = found.parts;
  said.optimal = found.optimal;
  said.cost_before = said.cost_after = graph_cost(graph, machine, options.views);
  if (found.cost == extract::cost_of(from.problem, how.given)) return graph;
  rewrite::SimplifyOptions rules;
  rules.change_rounding = !options.saturate.keep_rounding;
  Graph better = rewrite::simplify(graph_of(e, from, found.choice), rules);
  const int64_t cost = graph_cost(better, machine, options.views);
  if (static_cast<double>(cost) > options.worth * static_cast<double>(said.cost_before))
    return graph;
  said.cost_after = cost;
  said.taken = true;
  return better;
}

} // namespace svod::egraph
