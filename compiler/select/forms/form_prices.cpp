#include "compiler/select/forms/form_prices.h"

#include "compiler/select/chain.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace svod::select {

// Of a small model the weights stay in the second cache.
static double weight_bytes_per_ns(const Machine& m, const Graph& graph) {
  int64_t bytes = 0;
  for (uint32_t b = 0; b < graph.blob_count(); ++b)
    bytes += static_cast<int64_t>(graph.blob(b).size());
  const bool near = bytes <= m.second.bytes / 2;
  return near ? m.second.bytes_per_clock * m.clock_ghz : m.memory_bytes_per_ns;
}

Core::Core(const Target& target, const Graph& graph)
    : target(target), machine(target.machine()), lanes(target.levels[0].lanes),
      weight_bytes_per_ns(select::weight_bytes_per_ns(machine, graph)) {}

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

std::vector<PricedForm> forms_of(const Convolution& c, const Convolution& group,
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

// A row of as many tiles fills the register tile of its product.
static constexpr int64_t kRowOfTiles = 12;

bool runs_by_rows(const Core& core, const Convolution& c, const WinogradForm& form) {
  const Machine& m = core.machine;
  const int64_t rows = form.tiles(c, 0), columns = form.tiles(c, 1);
  if (!form.channels || columns < kRowOfTiles) return false;
  const double bytes = 4 * values_of(c, form), weights = weights_of(c, form, core.lanes);
  return bytes > double(m.far_bytes()) ||
         (c.batch == c.groups &&
          may_chain(m, rows, bytes, 2 * weights * double(rows * columns), 4 * weights));
}

// For a value of a block or a product, in and out together, the time of so many
// operations of products; half of fewer rows do not hide the weights' way from memory.
// What pays less is not worth larger weights.
static constexpr double kBlockValue = 6.6, kWorthWeights = 0.96;
static constexpr int64_t kFewestRows = 96;

std::optional<FormPrice> halving_price(const MatrixProduct& p, const Core& core) {
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
  if (fast >= kWorthWeights * direct) return std::nullopt;
  return FormPrice{direct - fast, bytes_of(3 * inner * columns / 4)};
}

// Groups as one fill vectors with products of which most are by zeros; each group by
// itself leaves lanes empty, as many as it has fewer channels.
FormPrice merging_price(const Graph& g, const GroupedConvolution& conv,
                        const Core& core) {
  const int64_t lanes = core.lanes;
  const auto weights = double(element_count(g[conv.weight.node].shape));
  const double positions = double(element_count(conv.full)) / weights;
  const auto together = double(conv.together),
             by_itself = std::max(together, double(lanes));
  return {contraction_cost(core, weights * (1 + by_itself - together), positions),
          bytes_of((together - 1) * weights)};
}

// Of strided ones the transforms take longer than their few products (six groups of 8
// channels, 112x112, AVX2 of Zen 3: 0.53 ms as written, 1.2 so).
int64_t groups_of_form(const Convolution& c, int64_t lanes) {
  if (c.groups == 1) return 1;
  if (c.stride != Convolution::Pair{1, 1}) return 0;
  const int64_t m = groups_together(c.groups, c.inputs, c.outputs, lanes, true);
  const bool whole = m * c.inputs % lanes == 0 && m * c.outputs % lanes == 0;
  return whole && c.groups % m == 0 ? m : 0;
}

} // namespace svod::select
