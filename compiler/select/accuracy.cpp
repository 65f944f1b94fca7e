#include "compiler/select/accuracy.h"

#include "compiler/support/byte_form.h"

#include <variant>

namespace svod::select {

// Error of a layer in a fast form that --accuracy fast accepts, relative to its outputs'
// size.
static constexpr double kErrorBound = 1e-5;
// Of a convolution, relative to what the sum as it is written errs. A form that errs more
// than the first has its products summed in short blocks; above the second it is no form
// to take. Networks of many layers then stay within twice what they err without fast
// forms, as layers that are none, residuals and smooth inputs bring the ratio down
// (docs/performance.md).
static constexpr double kMostInLongSums = 2, kMostAmplified = 8.5;
// What is measured is a draw: weights that differ by 1 % move it by up to a fifth. So
// short blocks begin below the bound, and a plan without them stays within it.
static constexpr double kShortBlocksAbove = 1.5;

namespace {

struct FastConvolution {
  Convolution conv;
  WinogradForm form;
};
using FastForm = std::variant<FastConvolution, MatrixProduct>;

} // namespace

// `weight`: the node that the form reads; the fact's value stands for it.
static void note_accurate(const Graph& g, NodeId weight, const FastForm& form) {
  note_fact(g, weight, {.question = ValueQuestion::Accurate, .about = byte_text(form)});
}

static bool needs_short_blocks(const WinogradError& error, double above) {
  return error.plain > above && error.blocked != error.plain;
}

// With the sums that the form is told to make.
static bool is_within(const WinogradError& error, const WinogradForm& form) {
  return error.largest <= kErrorBound &&
         (form.amplified ? error.blocked : error.plain) <= kMostAmplified;
}

bool is_accurate(const Graph& g, const Convolution& c, WinogradForm& form) {
  const WinogradError error = winograd_error(g, c, form);
  form.amplified = needs_short_blocks(error, kShortBlocksAbove);
  if (!is_within(error, form)) return false;
  FastConvolution fast{c, form};
  fast.conv.input.node = fast.conv.result.node = fast.conv.weight.node = kNoNode;
  note_accurate(g, c.weight.node, fast);
  return true;
}

bool is_accurate(const Graph& g, const MatrixProduct& p) {
  if (strassen_error(g, p) > kErrorBound) return false;
  MatrixProduct product = p;
  product.input.node = product.weight.node = kNoNode;
  note_accurate(g, p.weight.node, product);
  return true;
}

bool stays_accurate(const Graph& values, const ValueFact& fact) {
  std::optional<FastForm> form = value_of<FastForm>(fact.about);
  if (!form) return false;
  if (auto* product = std::get_if<MatrixProduct>(&*form)) {
    product->weight.node = fact.value;
    return strassen_error(values, *product) <= kErrorBound;
  }
  auto& [conv, fast] = std::get<FastConvolution>(*form);
  conv.weight.node = fact.value;
  const WinogradError error = winograd_error(values, conv, fast);
  return is_within(error, fast) &&
         (fast.amplified || !needs_short_blocks(error, kMostInLongSums));
}

} // namespace svod::select
