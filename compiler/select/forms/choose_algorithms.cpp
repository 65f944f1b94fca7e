// Copies the graph; a convolution for which the count of flops and bytes says so, and
// whose sampled error is within bounds, is replaced on the way.
#include "compiler/ir/build.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/select/forms/accuracy.h"
#include "compiler/select/forms/form_prices.h"
#include "compiler/select/forms/tree_reductions.h"
#include "compiler/select/group.h"

#include <algorithm>
#include <limits>
#include <map>

namespace svod::select {

namespace {

// What a form of a contraction may cost.
struct FormBounds {
  uint64_t more_bytes = std::numeric_limits<uint64_t>::max(); // of weights
  ErrorBound error;
};

struct AcceptedForm {
  WinogradForm form;
  uint64_t more_bytes = 0;
  double error = 0; // relative to that of the sum as it is written
};

struct Halving {
  MatrixProduct product;
  FormPrice price;
};

} // namespace

// The cheapest form within bounds.
static std::optional<AcceptedForm> choose_form(const Graph& g, const Convolution& c,
                                               const Convolution& group, const Core& core,
                                               const FormBounds& bounds) {
  for (auto& [ns, form, price] : forms_of(c, group, core)) {
    if (price.more_bytes > bounds.more_bytes) continue;
    const std::optional<double> error = accepted_error(g, group, form, bounds.error);
    if (!error) continue;
    form.by_rows = runs_by_rows(core, c, form);
    return AcceptedForm{form, price.more_bytes, *error};
  }
  return std::nullopt;
}

// Whether no one who reads n cuts its axis into pieces that are no whole vectors, as a
// transposed convolution of few channels does, whose phases and channels are one axis.
static bool is_read_in_vectors(const Graph& g, const Users& users, NodeId n, size_t axis,
                               int64_t lanes) {
  int64_t inside = 1;
  for (size_t d = axis + 1; d < g[n].shape.size(); ++d) inside *= g[n].shape[d];
  return std::ranges::all_of(users[n], [&](NodeId r) {
    if (g[r].op != Op::Reshape) return true;
    const Shape& shape = g[r].shape;
    size_t d = shape.size();
    for (int64_t left = inside; d > 0 && (left > 1 || shape[d - 1] == 1); --d) {
      if (left % shape[d - 1] != 0) return true; // joined with others
      left /= shape[d - 1];
    }
    return d > 0 && shape[d - 1] % lanes == 0 &&
           is_read_in_vectors(g, users, r, d - 1, lanes);
  });
}

// The contraction as Strassen's seven products, where that pays and is accurate.
static std::optional<Halving> find_halving(const Graph& g, const Contraction& c,
                                           const Users& users, const Core& core) {
  const std::optional<MatrixProduct> product = match_product(g, c, core.lanes);
  if (!product || !is_read_in_vectors(g, users, c.sum, product->column, core.lanes))
    return std::nullopt;
  const std::optional<FormPrice> price = halving_price(*product, core);
  if (!price || !is_accurate(g, *product)) return std::nullopt;
  return Halving{*product, *price};
}

static std::string by(const Convolution::Pair& pair) {
  return std::to_string(pair[0]) + "x" + std::to_string(pair[1]);
}

static std::string name_of(const Convolution& c, const WinogradForm& form) {
  std::string name = "winograd F(" + by(form.outputs) + ", " + by(c.taps) + ")";
  if (form.parts != Convolution::Pair{1, 1}) name += " in " + by(form.parts) + " parts";
  return name + (form.channels ? "" : " along rows");
}

static std::string as_one(int64_t groups) {
  return ", " + std::to_string(groups) + " groups as one";
}

// What a contraction is called that stays as it is written.
static std::string written_name(const Graph& g, const Contraction& c) {
  const auto narrow = [&](const Operand& operand) {
    return byte_size(g[operand.source()].dtype) == 1;
  };
  const bool integer = c.dtype == DType::I32 && narrow(c.left()) && narrow(c.right());
  return integer ? "direct, of bytes" : "direct";
}

// The contraction in a form that takes less time and is within bounds, where there is
// one; `chosen` gets what it is.
static NodeId fast_form(Algorithms& out, const Graph& graph, const Contraction& c,
                        const GraphCopy& now, const Users& users, const Core& core,
                        const FormBounds& bounds, ChosenAlgorithm& chosen) {
  const int64_t lanes = core.lanes;
  std::string& name = chosen.algorithm;
  const auto place = [&](const Reading& reading) {
    return arranged(out.graph, now[reading.node], reading);
  };
  const std::optional<GroupedConvolution> groups = match_groups(graph, c, lanes);
  if (groups && fill_lanes(graph, *groups, core.target)) {
    name = "direct, groups in lanes";
    return spread_groups(out.graph, *groups, place(groups->input), place(groups->weight));
  }
  if (const auto conv = match_convolution(graph, c)) {
    const int64_t m = groups_of_form(*conv, lanes);
    const Convolution whole = m > 1 ? with_groups_together(*conv, m) : *conv;
    if (const auto form =
            m == 0 ? std::nullopt : choose_form(graph, whole, *conv, core, bounds)) {
      name = name_of(whole, form->form);
      chosen.more_bytes = form->more_bytes;
      chosen.error = form->error;
      NodeId weight = place(conv->weight);
      if (m > 1) {
        name += as_one(m);
        weight = merged_weights(out.graph, weight, conv->groups, conv->outputs, m);
      }
      return winograd(out, whole, form->form, place(whole.input), weight, lanes);
    }
  }
  if (groups) {
    const FormPrice price = merging_price(graph, *groups, core);
    if (price.more_bytes > bounds.more_bytes) return kNoNode;
    name = "direct" + as_one(groups->together);
    chosen.more_bytes = price.more_bytes;
    return merge_groups(out.graph, *groups, place(groups->input), place(groups->weight));
  }
  if (const auto halving = find_halving(graph, c, users, core);
      halving && halving->price.more_bytes <= bounds.more_bytes) {
    const auto& [product, price] = *halving;
    name = "strassen";
    chosen.more_bytes = price.more_bytes;
    return strassen(out, product, place(product.input), place(product.weight), lanes);
  }
  return kNoNode;
}

// What the forms of a contraction save and add that fast_form() may choose. Of forms of a
// convolution those that save less than a smaller one are left out, before their error is
// looked at.
static std::vector<FormPrice> prices_of(const Graph& graph, const Contraction& c,
                                        const Users& users, const Core& core,
                                        const ErrorBound& most) {
  const int64_t lanes = core.lanes;
  std::vector<FormPrice> out;
  const std::optional<GroupedConvolution> groups = match_groups(graph, c, lanes);
  if (groups && fill_lanes(graph, *groups, core.target)) return out;
  if (const auto conv = match_convolution(graph, c)) {
    const int64_t m = groups_of_form(*conv, lanes);
    const Convolution whole = m > 1 ? with_groups_together(*conv, m) : *conv;
    if (m != 0)
      for (auto& [ns, form, price] : forms_of(whole, *conv, core)) {
        const bool smaller = out.empty() || price.more_bytes < out.back().more_bytes;
        if (smaller && accepted_error(graph, *conv, form, most)) out.push_back(price);
      }
  }
  if (groups) {
    out.push_back(merging_price(graph, *groups, core));
  } else if (const auto halving = find_halving(graph, c, users, core)) {
    out.push_back(halving->price);
  }
  return out;
}

// Of each contraction the bytes that its form may add.
static std::map<NodeId, uint64_t> limits_of(const Graph& graph, const Users& users,
                                            const Core& core, uint64_t budget,
                                            const ErrorBound& most) {
  std::vector<NodeId> sums;
  std::vector<std::vector<FormPrice>> prices;
  for (NodeId n : graph.live_nodes())
    if (const auto c = read_contraction(graph, n)) {
      sums.push_back(n);
      prices.push_back(prices_of(graph, *c, users, core, most));
    }
  const std::vector<uint64_t> spent = spend(prices, budget);
  std::map<NodeId, uint64_t> out;
  for (size_t i = 0; i < sums.size(); ++i) out[sums[i]] = spent[i];
  return out;
}

// The first ONNX node that asked for n.
static std::string source_of(const Graph& graph, NodeId n) {
  const std::vector<int32_t>& sources = graph.sources(n);
  return sources.empty() ? "" : graph.source_name(sources[0]);
}

// With forms of convolutions that err at most so many times what the sums err as they are
// written; `error` gets what all contractions do.
static Algorithms choose_within(const Graph& graph, const Target& target,
                                const FormOptions& forms, const ErrorBound& most,
                                NetworkError& error) {
  Algorithms out;
  const Core core(target, graph);
  const bool may = target.levels[0].has_vectors() && target.kind == TargetKind::Linux &&
                   !forms.direct_only;
  const Users users = users_of(graph);
  std::map<NodeId, uint64_t> limits;
  if (may && forms.most_growth)
    limits = limits_of(graph, users, core, *forms.most_growth, most);
  for (uint32_t b = 0; b < graph.blob_count(); ++b) out.graph.add_blob(graph.blob(b));
  for (uint32_t b = 0; b < graph.body_count(); ++b) out.graph.add_body(graph.body(b));
  GraphCopy now(out.graph, graph, [&](NodeId n) {
    const Node& node = graph[n];
    if (const auto c = read_contraction(graph, n)) {
      ChosenAlgorithm chosen{source_of(graph, n), print(graph, *c),
                             written_name(graph, *c)};
      FormBounds bounds{.error = most};
      if (forms.most_growth) bounds.more_bytes = limits[n];
      const NodeId fast =
          may ? fast_form(out, graph, *c, now, users, core, bounds, chosen) : kNoNode;
      if (is_float(c->dtype)) error.add(c->terms(), chosen.error);
      out.chosen.push_back(std::move(chosen));
      if (fast != kNoNode) return fast;
    }
    if (reduces_trees(graph, node))
      return reduce_by_blocks(out, node, now[node.inputs[0]]);
    Node copy = now.over_copies(n);
    // Columns of the keys are found at run time: they lie at one distance.
    if (node.op == Op::Descend) {
      out.stored.insert(copy.inputs[0]);
      out.layouts[copy.inputs[0]] = row_major(2);
    }
    return out.graph.intern(std::move(copy));
  });
  now.run();
  return out;
}

// At half of what a written sum errs hardly a form is left.
Algorithms choose_algorithms(const Graph& graph, const Target& target,
                             const FormOptions& forms) {
  for (ErrorBound bound = error_bound(graph);; bound.most /= 2) {
    NetworkError error;
    Algorithms out = choose_within(graph, target, forms, bound, error);
    if (error.is_within() || bound.most < 1) return out;
  }
}

} // namespace svod::select
