// Where eight products of bytes become sums of 16 bits in one instruction, and a second
// one widens them to 32, the products of several steps share the second one if what they
// add up to fits. That depends on the weights alone: signed bytes of any value times two
// weights of which one is not -128 always do; most networks' weights are far from that,
// and three or four steps fit, too. Steps are taken along the innermost loops first,
// whose bytes are neighbours.
#include "compiler/optimize/short_sums.h"

#include "compiler/ir/fold.h"
#include "compiler/kernel/byte_products.h"
#include "compiler/kernel/pack_weight.h"
#include "compiler/support/byte_form.h"

#include <algorithm>

namespace svod::optimize {

namespace {

// Steps beyond these save little (four: five instructions for 32 products of six), and
// each keeps its weights in a register.
constexpr int kMostSteps = 4;
// Weights that are looked at.
constexpr int64_t kMostElements = 1 << 20;

// Steps of a loop whose products are added: so many neighbours of `extent` weights that
// lie so far apart.
struct Added {
  int64_t step = 1, extent = 1, count = 1;
};

// What is asked of weights, for others to be asked the same.
struct Question {
  PackedWeight weight;
  std::vector<Added> together;
};

bool fits(const std::vector<std::byte>& values, const std::vector<Added>& together);

class ShortSums {
public:
  ShortSums(const ScheduledKernel& k, const Stage& s, const Expr& weights,
            std::vector<std::byte> values)
      : k_(k), s_(s), weights_(weights), values_(std::move(values)) {}
  std::vector<Added> added(const std::vector<TileAxis>& together) const;
  std::vector<TileAxis> longest() const;

private:
  std::vector<AxisId> candidates() const;

  const ScheduledKernel& k_;
  const Stage& s_;
  const Expr& weights_;
  std::vector<std::byte> values_; // as they are packed
};

// Loops of the reduction that walk along the weights, innermost first.
std::vector<AxisId> ShortSums::candidates() const {
  std::vector<AxisId> out;
  for (AxisId a : k_.inner(s_)) {
    int64_t step = 0;
    if (k_.is_loop(a) && k_.indices.affine_in(weights_.index, a, step) && step > 0)
      out.insert(out.begin(), a);
  }
  return out;
}

std::vector<Added> ShortSums::added(const std::vector<TileAxis>& together) const {
  std::vector<Added> out;
  for (const TileAxis& t : together)
    out.push_back({k_.indices.coefficient(weights_.index, t.axis),
                   k_.indices.extent(t.axis), t.count});
  return out;
}

// Whether any signed bytes times the weights of each group, added lane by lane, stay
// within 16 bits: the most is where each is -128 or 127, whichever has the weight's sign.
bool fits(const std::vector<std::byte>& values, const std::vector<Added>& together) {
  constexpr int32_t kMost = INT16_MAX;
  struct Ends {
    int32_t low = 0, high = 0;
  };
  std::vector<Ends> groups(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    auto first = static_cast<int64_t>(i);
    for (const Added& a : together)
      first -= static_cast<int64_t>(i) / a.step % a.extent % a.count * a.step;
    const auto weight = static_cast<int8_t>(values[i]);
    Ends& ends = groups[static_cast<size_t>(first)];
    ends.low += std::min(weight * INT8_MIN, weight * INT8_MAX);
    ends.high += std::max(weight * INT8_MIN, weight * INT8_MAX);
    if (ends.high > kMost || ends.low < -kMost) return false;
  }
  return true;
}

// A step of a loop that is not the innermost is a row, whose bytes lie apart: two of them
// and two of the innermost loop come before four of it.
std::vector<TileAxis> ShortSums::longest() const {
  const std::vector<AxisId> axes = candidates();
  std::vector<std::vector<TileAxis>> choices;
  const auto along = [&](int steps) {
    for (AxisId a : axes) choices.push_back({{a, steps}});
  };
  if (!axes.empty()) choices.push_back({{axes[0], kMostSteps}});
  for (size_t i = 1; i < axes.size(); ++i)
    choices.push_back({{axes[i], 2}, {axes[0], 2}});
  for (int steps = kMostSteps; steps > 1; --steps) along(steps);
  for (const std::vector<TileAxis>& choice : choices)
    if (std::ranges::all_of(choice,
                            [&](const TileAxis& t) {
                              return k_.indices.extent(t.axis) % t.count == 0;
                            }) &&
        fits(values_, added(choice)))
      return choice;
  return {};
}

} // namespace

void find_short_sums(ScheduledKernel& k, const Graph& graph,
                     const std::vector<PackedWeight>& packed) {
  Stage& s = k.stages[0];
  const ByteOperands operands = byte_operands(k, s);
  if (!k.has_dot_axis() || !operands.both_signed || operands.decoded ||
      !operands.x->bounds.empty() || !s.domain.empty() || s.nested)
    return;
  const PackedWeight& weight = packed[k.arguments[operands.w->argument].id];
  const auto source = unnoted_tensor(graph, weight.source, kMostElements);
  if (!source || source->dtype != weight.dtype || weight.bytes() > kMostElements) return;
  const ShortSums sums(k, s, *operands.w, pack_weight(weight, *source));
  s.short_sums = sums.longest();
  if (s.short_sums.empty()) return;
  // Longer ones that do not fit are not asked for again: other weights may miss them.
  note_fact(graph, weight.source,
            {.question = ValueQuestion::ShortSums,
             .about = byte_text(Question{weight, sums.added(s.short_sums)})});
}

bool fits_short_sums(const Tensor& value, const ValueFact& fact) {
  const std::optional<Question> question = value_of<Question>(fact.about);
  return question && fits(pack_weight(question->weight, value), question->together);
}

} // namespace svod::optimize
