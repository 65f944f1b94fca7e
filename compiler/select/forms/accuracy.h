// Whether fast forms of a contraction are accurate enough for its weights, and whether
// they stay so for other ones.
#pragma once

#include "compiler/ir/value_facts.h"
#include "compiler/select/forms/strassen.h"
#include "compiler/select/forms/winograd.h"

#include <optional>

namespace svod::select {

// How many times what the sum errs as it is written, on such inputs, a form of a
// convolution may err.
struct ErrorBound {
  double most = 8.5;
  Inputs inputs = Inputs::Activations;
};
// What no form in a network may go beyond.
ErrorBound error_bound(const Graph& g);

// The error of a form, relative to that of the sum as it is written, where that and all
// else is within bounds, which is noted; the form is told then how to make its sums.
std::optional<double> accepted_error(const Graph& g, const Convolution& c,
                                     WinogradForm& form, const ErrorBound& bound);
bool is_accurate(const Graph& g, const MatrixProduct& p);

// What the contractions of a network err together, relative to sums that add one product
// after the other, as other runtimes do. Each is taken to have a like share in the error
// of the answer (what the suite's models show: docs/performance.md).
class NetworkError {
public:
  // A sum of so many terms whose error is `amplified` times that of blocks of them.
  void add(int64_t terms, double amplified);
  double value() const;
  bool is_within() const;

private:
  double squares_ = 0;
  int64_t sums_ = 0;
};

// Whether what a fact of accuracy says is true of its value in `values`: by the bounds of
// the choice. A form that was not chosen is not asked for again: other weights may miss
// it.
bool stays_accurate(const Graph& values, const ValueFact& fact);

} // namespace svod::select
