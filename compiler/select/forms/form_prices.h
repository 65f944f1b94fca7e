// What fast forms of a contraction take and what they save, by counts of products, values
// and bytes and by the table of machines.
#pragma once

#include "compiler/select/forms/merge_groups.h"
#include "compiler/select/forms/strassen.h"
#include "compiler/select/forms/weight_budget.h"
#include "compiler/select/forms/winograd.h"
#include "compiler/support/target.h"

namespace svod::select {

// What a form is chosen for: a core, vectors of so many elements, and how fast weights
// come from where the run before has left them. Those of a small model stay in the second
// cache.
struct Core {
  Core(const Target& target, const Graph& graph);
  const Target& target;
  const Machine& machine;
  int64_t lanes;
  double weight_bytes_per_ns;
};

// A form with what it saves of the time that the sum takes as it is written.
struct PricedForm {
  double ns = 0;
  WinogradForm form;
  FormPrice price;
};

// Forms that are cheaper than the sum as it is written by more than the counts are wrong,
// the cheapest first. `group`: the convolution of which c has several groups as one.
std::vector<PricedForm> forms_of(const Convolution& c, const Convolution& group,
                                 const Core& core);

// Whether rows of tiles are transformed, multiplied and transformed back one by one.
bool runs_by_rows(const Core& core, const Convolution& c, const WinogradForm& form);

// How many groups are one in a fast form: as many as fill vectors; 0: none do.
int64_t groups_of_form(const Convolution& c, int64_t lanes);

// What groups as one save and add, beside each group by itself.
FormPrice merging_price(const Graph& g, const GroupedConvolution& conv, const Core& core);

// The time that seven products of half the size and the sums around them save of the
// product as it is written, and the weights that they add. nullopt: they take more.
std::optional<FormPrice> halving_price(const MatrixProduct& p, const Core& core);

} // namespace svod::select
