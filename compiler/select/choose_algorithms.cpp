// Copies the graph; a convolution for which the count of flops and bytes says so, and
// whose sampled error is within bounds, is replaced on the way.
#include "compiler/ir/build.h"
#include "compiler/ir/graph_copy.h"
#include "compiler/select/accuracy.h"
#include "compiler/select/chain.h"
#include "compiler/select/group.h"
#include "compiler/select/merge_groups.h"
#include "compiler/select/strassen.h"
#include "compiler/select/tree_reductions.h"
#include "compiler/select/weight_budget.h"
#include "compiler/select/winograd.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <tuple>

namespace svod::select {

namespace {

// What a form is chosen for: a core, vectors of so many elements, and how fast weights
// come from where the run before has left them. Those of a small model stay in the second
// cache.
struct Core {
  const Target& target;
  const Machine& machine;
  int64_t lanes;
  double weight_bytes_per_ns;
};

Core core_of(const Target& target, const Graph& graph) {
  const Machine& m = target.machine();
  int64_t bytes = 0;
  for (uint32_t b = 0; b < graph.blob_count(); ++b)
    bytes += static_cast<int64_t>(graph.blob(b).size());
  const bool near = bytes <= m.second.bytes / 2;
  return {target, m, target.levels[0].lanes,
          near ? m.second.bytes_per_clock * m.clock_ghz : m.memory_bytes_per_ns};
}

} // namespace

// Nanoseconds for products (a multiply-add counts two) and for weights, of which most
// hides behind products.
static double contraction_cost(const Core& core, double weights, double positions) {
  const double compute = 2 * weights * positions / core.machine.gflops;
  const double memory = 4 * weights / core.weight_bytes_per_ns;
  return std::max(compute, memory) + core.machine.memory_seen * std::min(compute, memory);
}

// For a transformed value, in and out together, the time of so many operations of
// products, fitted to layers of many shapes: a tile of up to six by six stays in
// registers, in layers that stay in the second cache larger ones as well, and those along
// one axis are cheapest.
static constexpr double kAlongOneAxis = 5.5, kSmallTile = 6.6, kRegisterTile = 12.1,
                        kNearTile = 13.2, kLargeTile = 24.2;
// Where the values of a layer leave the caches, so many bytes to and from memory for each
// are what counts, and again as many where the last tiles of rows are cut: the more of
// their streams are read at once the worse. At most so many operations, though: a core of
// twice the products behind slower memory (Golden Cove) is as well served by the forms
// that this makes on Zen 4, for parts of rows meet in the second cache.
static constexpr double kBytesOfFarValue = 5.8, kMostOfFarValue = 22;
// More for an input of a strided row whose channels are no vectors, in operations.
static constexpr double kGather = 66;

static double far_value_cost(const Machine& m) {
  return std::min(kBytesOfFarValue / m.memory_bytes_per_ns, kMostOfFarValue / m.gflops);
}

// A row of as many tiles fills the register tile of its product.
static constexpr int64_t kRowOfTiles = 12;

static double values_of(const Convolution& c, const WinogradForm& form) {
  const int64_t of_result = c.stride[0] * c.stride[1]; // inputs of each channel
  auto values = double(c.pictures * c.inputs * of_result + c.batch * c.outputs);
  for (int axis = 0; axis < 2; ++axis)
    values *= double(form.tiles(c, axis) * form.inputs(c, axis));
  return values;
}

static double transform_cost(const Machine& m, const Convolution& c,
                             const WinogradForm& form, double values) {
  const int64_t rows = form.inputs(c, 0), n = std::max(rows, form.inputs(c, 1));
  double operations = n < 6 ? kSmallTile : n == 6 ? kRegisterTile : kLargeTile;
  if (4 * values <= double(m.second.bytes) / 2) {
    operations = std::min(operations, kNearTile);
    if (form.outputs[0] == 1 || form.outputs[1] == 1) operations = kAlongOneAxis;
  }
  const bool far = 4 * values > double(m.far_bytes());
  double each = operations / m.gflops;
  if (far) each += rows > 6 ? 2 * far_value_cost(m) : far_value_cost(m);
  for (int axis = 0; axis < 2; ++axis)
    if (far && c.size[axis] % form.outputs[axis] != 0) each += far_value_cost(m);
  return values * each;
}

static int64_t in_vectors(int64_t count, int64_t lanes) {
  return (count + lanes - 1) / lanes * lanes;
}

// The result as vectors see it: of channels, or of columns of a row.
static double direct_cost(const Core& core, const Convolution& c, bool channels) {
  const int64_t lanes = core.lanes;
  const int64_t outputs = channels ? in_vectors(c.outputs, lanes) : c.outputs;
  const int64_t row = c.results.back(), rows = element_count(c.results) / c.outputs / row;
  const int64_t columns = channels ? row : in_vectors(row, lanes);
  const double weights = double(c.groups * c.terms() * outputs * c.taps[0] * c.taps[1]);
  return contraction_cost(core, weights,
                          c.met * double(rows * columns) / double(c.groups));
}

// Transformed ones, as many as products of a tile and a position.
static double weights_of(const Convolution& c, const WinogradForm& form, int64_t lanes) {
  double products = 1;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t of_axis = form.inputs(c, axis) * form.phases(c, axis);
    products *= double(form.windows(c, axis) * of_axis - form.lacking(c, axis));
  }
  const int64_t outputs = form.channels ? in_vectors(c.outputs, lanes) : c.outputs;
  return products * double(c.groups * c.terms() * outputs);
}

static uint64_t bytes_of(double weights) { return static_cast<uint64_t>(4 * weights); }

// What a form stores more than the convolution `group` as it is written.
static uint64_t more_bytes(const Convolution& c, const Convolution& group,
                           const WinogradForm& form, int64_t lanes) {
  const auto written = double(group.groups * group.terms() * group.outputs *
                              group.taps[0] * group.taps[1]);
  return bytes_of(std::max(0.0, weights_of(c, form, lanes) - written));
}

static double cost(const Core& core, const Convolution& c, const WinogradForm& form) {
  const Machine& m = core.machine;
  const int64_t lanes = core.lanes;
  const bool channels = form.channels;
  const int64_t inputs =
      blocks_inputs(c, form, lanes) ? in_vectors(c.inputs, lanes) : c.inputs;
  const int64_t outputs = channels ? in_vectors(c.outputs, lanes) : c.outputs;
  double positions = 1;
  for (int axis = 0; axis < 2; ++axis) positions *= double(form.inputs(c, axis));
  const int64_t columns = form.tiles(c, 1);
  const auto tiles =
      double(form.tiles(c, 0) * (channels ? columns : in_vectors(columns, lanes)));
  const double values_in =
      positions * tiles * double(c.pictures * inputs * c.stride[0] * c.stride[1]);
  const double values = values_in + positions * tiles * double(c.batch * outputs);
  // Between pixels and vectors of tiles elements are shuffled.
  const double shuffles = channels ? 1 : 2;
  const bool apart = form.phases(c, 1) != 1 || c.dilation[1] != 1;
  const bool gathers = apart && !blocks_inputs(c, form, lanes);
  const int64_t pictures = c.batch / c.groups; // that share weights
  return contraction_cost(core, weights_of(c, form, lanes), double(pictures) * tiles) +
         shuffles * transform_cost(m, c, form, values) +
         (gathers ? kGather / m.gflops * values_in : 0);
}

// Along one axis: as it is written, or tiles with all taps at once or cut into parts.
static std::vector<std::pair<int64_t, int64_t>> axis_forms(int64_t taps, int64_t stride) {
  std::vector<std::pair<int64_t, int64_t>> out = {{1, 1}};
  for (int64_t outputs : {2, 3, 4, 6}) {
    const int64_t each = (taps + stride - 1) / stride; // of a phase
    if (each > 1 && outputs + each - 1 <= kMostWinogradInputs)
      out.push_back({outputs, 1});
    if (each > outputs && 2 * outputs - 1 <= kMostWinogradInputs)
      out.push_back({outputs, (each + outputs - 1) / outputs});
  }
  return out;
}

namespace {

// A form with what it saves of the time that the sum takes as it is written.
struct PricedForm {
  double ns = 0;
  WinogradForm form;
  FormPrice price;
};

} // namespace

// All forms with vectors over channels, or over tiles of a row, that cost less than
// `most`.
static void add_forms(const Core& core, const Convolution& c, bool channels, double most,
                      std::vector<PricedForm>& forms) {
  for (auto [rows, row_parts] : axis_forms(c.taps[0], c.stride[0]))
    for (auto [columns, column_parts] : axis_forms(c.taps[1], c.stride[1])) {
      const WinogradForm form{{rows, columns}, {row_parts, column_parts}, channels};
      if (rows * columns == 1) continue;
      const double ns = cost(core, c, form);
      if (ns < most) forms.push_back({ns, form, {}});
    }
}

// Forms that are cheaper than the sum as it is written by more than the counts are wrong,
// the cheapest first. `group`: the convolution of which c has several groups as one.
static std::vector<PricedForm> forms_of(const Convolution& c, const Convolution& group,
                                        const Core& core) {
  const int64_t lanes = core.lanes;
  const bool by_channels = 2 * c.outputs >= lanes;
  const bool by_columns =
      c.size[1] >= 4 * lanes && c.stride[1] == 1 && c.dilation[1] == 1;
  double most = direct_cost(core, c, by_channels);
  if (by_columns) most = std::min(most, direct_cost(core, c, false));
  std::vector<PricedForm> forms;
  // A form is several kernels where the sum is one.
  const double worth = std::min(0.92 * most, most - core.machine.launch_ns);
  if (by_channels) add_forms(core, c, true, worth, forms);
  if (by_columns) add_forms(core, c, false, worth, forms);
  std::ranges::sort(forms, {}, [](const PricedForm& f) {
    return std::tuple(f.ns, f.form.outputs, f.form.parts);
  });
  for (PricedForm& f : forms)
    f.price = {most - f.ns, more_bytes(c, group, f.form, lanes)};
  return forms;
}

// Whether rows of tiles are transformed, multiplied and transformed back one by one.
static bool runs_by_rows(const Machine& m, const Convolution& c, const WinogradForm& form,
                         int64_t lanes) {
  const int64_t rows = form.tiles(c, 0), pictures = c.batch / c.groups;
  const double weights = weights_of(c, form, lanes);
  return pictures == 1 &&
         may_chain(m, rows, 4 * values_of(c, form),
                   2 * weights * double(rows * form.tiles(c, 1)), 4 * weights);
}

namespace {

// What a form of a contraction may cost.
struct FormBounds {
  uint64_t more_bytes = std::numeric_limits<uint64_t>::max(); // of weights
  double error = kMostAmplified;
};

struct AcceptedForm {
  WinogradForm form;
  double error = 0; // relative to that of the sum as it is written
};

} // namespace

// The cheapest form within bounds.
static std::optional<AcceptedForm> choose_form(const Graph& g, const Convolution& c,
                                               const Convolution& group, const Core& core,
                                               const FormBounds& bounds) {
  const Machine& m = core.machine;
  for (auto& [ns, form, price] : forms_of(c, group, core)) {
    if (price.more_bytes > bounds.more_bytes) continue;
    const std::optional<double> error = accepted_error(g, group, form, bounds.error);
    if (!error) continue;
    form.by_rows = form.channels && form.tiles(c, 1) >= kRowOfTiles &&
                   (4 * values_of(c, form) > double(m.far_bytes()) ||
                    runs_by_rows(m, c, form, core.lanes));
    return AcceptedForm{form, *error};
  }
  return std::nullopt;
}

// For a value of a block or a product, in and out together, the time of so many
// operations of products; half of fewer rows do not hide the weights' way from memory.
// What pays less is not worth larger weights.
static constexpr double kBlockValue = 6.6, kWorthWeights = 0.96;
static constexpr int64_t kFewestRows = 96;

// The time that seven products of half the size and the sums around them save of the
// product as it is written, and the weights that they add. nullopt: they take more, or
// the error is out of bounds.
static std::optional<FormPrice> halving_price(const Graph& g, const MatrixProduct& p,
                                              const Core& core) {
  const Machine& m = core.machine;
  if (p.rows < kFewestRows) return std::nullopt;
  const auto rows = double(p.rows), columns = double(p.full[p.column]),
             inner = double(p.full[p.inner]);
  const auto extent = double(p.full[p.row]);
  const double half = rows / extent * std::ceil(extent / 2);
  const double values = 7 * half * (columns + inner) / 2;
  double each = kBlockValue / m.gflops;
  // Values that leave the second cache are written to the last one and read from there.
  if (4 * values > double(m.second.bytes))
    each = std::max(each, 2 * 4 / (m.last.bytes_per_clock * m.clock_ghz));
  if (4 * values > double(m.far_bytes())) each += far_value_cost(m);
  const double direct = contraction_cost(core, inner * columns, rows);
  const double fast =
      contraction_cost(core, 7 * inner * columns / 4, half) + each * values;
  if (fast >= kWorthWeights * direct || !is_accurate(g, p)) return std::nullopt;
  return FormPrice{direct - fast, bytes_of(3 * inner * columns / 4)};
}

// Groups as one fill vectors with products of which most are by zeros; each group by
// itself leaves lanes empty, as many as it has fewer channels.
static FormPrice merging_price(const Graph& g, const GroupedConvolution& conv,
                               const Core& core) {
  const int64_t lanes = core.lanes;
  const auto weights = double(element_count(g[conv.weight.node].shape));
  const double positions = double(element_count(conv.full)) / weights;
  const auto together = double(conv.together),
             by_itself = std::max(together, double(lanes));
  return {contraction_cost(core, weights * (1 + by_itself - together), positions),
          bytes_of((together - 1) * weights)};
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

// How many groups are one in a fast form: as many as fill vectors; 0: none do. Of strided
// ones the transforms take longer than their few products (six groups of 8 channels,
// 112x112, AVX2 of Zen 3: 0.53 ms as written, 1.2 so).
static int64_t groups_of_form(const Convolution& c, int64_t lanes) {
  if (c.groups == 1) return 1;
  if (c.stride != Convolution::Pair{1, 1}) return 0;
  const int64_t m = groups_together(c.groups, c.inputs, c.outputs, lanes, true);
  const bool whole = m * c.inputs % lanes == 0 && m * c.outputs % lanes == 0;
  return whole && c.groups % m == 0 ? m : 0;
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
      chosen.more_bytes = more_bytes(whole, *conv, form->form, lanes);
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
  if (auto product = match_product(graph, c, lanes))
    if (is_read_in_vectors(graph, users, c.sum, product->column, lanes))
      if (const auto price = halving_price(graph, *product, core);
          price && price->more_bytes <= bounds.more_bytes) {
        name = "strassen";
        chosen.more_bytes = price->more_bytes;
        return strassen(out, *product, place(product->input), place(product->weight),
                        lanes);
      }
  return kNoNode;
}

// What the forms of a contraction save and add that fast_form() may choose. Of forms of a
// convolution those that save less than a smaller one are left out, before their error is
// looked at.
static std::vector<FormPrice> prices_of(const Graph& graph, const Contraction& c,
                                        const Users& users, const Core& core,
                                        double most) {
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
  } else if (auto product = match_product(graph, c, lanes)) {
    if (is_read_in_vectors(graph, users, c.sum, product->column, lanes))
      if (const auto price = halving_price(graph, *product, core)) out.push_back(*price);
  }
  return out;
}

// Of each contraction the bytes that its form may add.
static std::map<NodeId, uint64_t> limits_of(const Graph& graph, const Users& users,
                                            const Core& core, uint64_t budget,
                                            double most) {
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
                                const FormOptions& forms, double most,
                                NetworkError& error) {
  Algorithms out;
  const Core core = core_of(target, graph);
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
  for (double most = kMostAmplified;; most /= 2) {
    NetworkError error;
    Algorithms out = choose_within(graph, target, forms, most, error);
    if (error.is_within() || most < 1) return out;
  }
}

} // namespace svod::select
