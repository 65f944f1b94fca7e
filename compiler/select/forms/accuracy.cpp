#include "compiler/select/forms/accuracy.h"

#include "compiler/kernel/sum_blocks.h"
#include "compiler/support/byte_form.h"

#include <algorithm>
#include <cmath>
#include <variant>

namespace svod::select {

// Error of a layer in a fast form that --accuracy fast accepts, relative to its outputs'
// size.
static constexpr double kErrorBound = 1e-5;
// Of a convolution, relative to what the sum as it is written errs: a form that errs more
// has its products summed in short blocks.
static constexpr double kMostInLongSums = 2;
// What is measured is a draw: weights that differ by 1 % move it by up to a fifth. So
// short blocks begin below the bound, and a plan without them stays within it.
static constexpr double kShortBlocksAbove = 1.5;
// Of drawings. mnist's second layer as F(1x4, 5x5) errs 3.0 times as much as it is
// written, and the network 3.3 times as much as with ONNX Runtime; as F(1x2, 5x5) 1.6 and
// 1.6 times.
static constexpr double kMostOfDrawings = 2;
// An only input that is a picture of one channel and at most so many rows and columns is
// one: of a digit, a letter, a shape.
static constexpr int64_t kLargestDrawing = 32;
// Of a network: what is twice the error of other runtimes, as far as this tells it.
static constexpr double kMostOfNetwork = 2.1;

namespace {

struct FastConvolution {
  Convolution conv;
  WinogradForm form;
  ErrorBound bound;
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
static double error_of(const WinogradError& error, const WinogradForm& form) {
  return form.amplified ? error.blocked : error.plain;
}

static bool is_drawing(const Shape& shape) {
  int sides = 0;
  for (size_t d = 1; d < shape.size(); ++d) {
    if (shape[d] > kLargestDrawing) return false;
    sides += shape[d] > 1;
  }
  return sides == 2;
}

ErrorBound error_bound(const Graph& g) {
  const bool drawings = g.inputs().size() == 1 && is_drawing(g[g.inputs()[0].node].shape);
  return drawings ? ErrorBound{kMostOfDrawings, Inputs::Drawings} : ErrorBound{};
}

std::optional<double> accepted_error(const Graph& g, const Convolution& c,
                                     WinogradForm& form, const ErrorBound& bound) {
  const WinogradError error = winograd_error(g, c, form, bound.inputs);
  form.amplified = needs_short_blocks(error, kShortBlocksAbove);
  const double amplified = error_of(error, form);
  if (error.largest > kErrorBound || amplified > bound.most) return std::nullopt;
  FastConvolution fast{c, form, bound};
  fast.conv.input.node = fast.conv.result.node = fast.conv.weight.node = kNoNode;
  note_accurate(g, c.weight.node, fast);
  return amplified;
}

bool is_accurate(const Graph& g, const MatrixProduct& p) {
  if (strassen_error(g, p) > kErrorBound) return false;
  MatrixProduct product = p;
  product.input.node = product.weight.node = kNoNode;
  note_accurate(g, p.weight.node, product);
  return true;
}

// Blocks of a long sum are added one after the other, too.
void NetworkError::add(int64_t terms, double amplified) {
  const double in_blocks =
      double(std::min(terms, kSumBlock)) + double(terms) / double(kSumBlock);
  squares_ += amplified * amplified * std::min(1.0, in_blocks / double(terms));
  ++sums_;
}

double NetworkError::value() const {
  return sums_ == 0 ? 0 : std::sqrt(squares_ / double(sums_));
}

bool NetworkError::is_within() const { return value() <= kMostOfNetwork; }

bool stays_accurate(const Graph& values, const ValueFact& fact) {
  std::optional<FastForm> form = value_of<FastForm>(fact.about);
  if (!form) return false;
  if (auto* product = std::get_if<MatrixProduct>(&*form)) {
    product->weight.node = fact.value;
    return strassen_error(values, *product) <= kErrorBound;
  }
  auto& [conv, fast, bound] = std::get<FastConvolution>(*form);
  conv.weight.node = fact.value;
  const WinogradError error = winograd_error(values, conv, fast, bound.inputs);
  return error.largest <= kErrorBound && error_of(error, fast) <= bound.most &&
         (fast.amplified || !needs_short_blocks(error, kMostInLongSums));
}

} // namespace svod::select
