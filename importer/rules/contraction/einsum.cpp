// Einsum. Every term becomes a list of labels, one per axis; the axes of an ellipsis get
// labels of their own. Two operands at a time are brought to the axes [kept.., summed..],
// multiplied and summed over the trailing axes: the form in which the optimiser knows a
// contraction. A label is summed as soon as no later term and not the result asks for it.
#include "importer/bounded/bounded.h"
#include "importer/formula/formula.h"

#include <algorithm>
#include <map>

namespace svod::importer {

namespace {

// Letters are themselves; axis i of the ellipsis, counted from its end, is -1 - i.
using Labels = std::vector<int>;

struct Term {
  Expr value;
  Labels labels;
};

struct Equation {
  std::vector<std::string> terms;
  std::string result;
  bool has_result = false;
};

Equation split_equation(NodeImport& node) {
  std::string text = node.get_string("equation");
  std::erase(text, ' ');
  Equation equation;
  std::string left = text;
  if (const size_t arrow = text.find("->"); arrow != std::string::npos) {
    left = text.substr(0, arrow);
    equation.result = text.substr(arrow + 2);
    equation.has_result = true;
  }
  for (size_t start = 0; start <= left.size();) {
    const size_t comma = std::min(left.find(',', start), left.size());
    equation.terms.push_back(left.substr(start, comma - start));
    start = comma + 1;
  }
  return equation;
}

// `ellipsis`: the number of axes that "..." stands for.
Labels labels_of(NodeImport& node, const std::string& term, int64_t ellipsis) {
  Labels labels;
  bool seen = false;
  for (size_t i = 0; i < term.size(); ++i) {
    if (term.compare(i, 3, "...") == 0 && !seen) {
      for (int64_t k = ellipsis; k > 0; --k) labels.push_back(static_cast<int>(-k));
      seen = true;
      i += 2;
    } else if (std::isalpha(static_cast<unsigned char>(term[i]))) {
      labels.push_back(term[i]);
    } else {
      node.invalid("the equation has an unexpected character");
    }
  }
  return labels;
}

int64_t ellipsis_axes(NodeImport& node, const std::string& term, int64_t rank) {
  const bool has = term.find("...") != std::string::npos;
  const int64_t letters = static_cast<int64_t>(term.size()) - (has ? 3 : 0);
  if (letters > rank || (!has && letters != rank))
    node.invalid("term '" + term + "' does not fit an operand of rank " +
                 std::to_string(rank));
  return rank - letters;
}

bool contains(const Labels& labels, int label) {
  return std::ranges::find(labels, label) != labels.end();
}

// A label that occurs twice in a term means the diagonal: in rows of n + 1 elements
// instead of n, the diagonal is the first column.
Term diagonal(NodeImport& node, Term term) {
  for (size_t i = 0; i < term.labels.size(); ++i)
    for (size_t j = i + 1; j < term.labels.size(); ++j) {
      if (term.labels[i] != term.labels[j]) continue;
      const int64_t rank = term.value.rank(), n = extent(term.value, i);
      require(node, n == extent(term.value, j), "a repeated label has two extents");
      std::vector<int64_t> order;
      for (int64_t k = 0; k < rank; ++k)
        if (k != int64_t(i) && k != int64_t(j)) order.push_back(k);
      order.push_back(i);
      order.push_back(j);
      Expr x = permute(term.value, order);
      Shape shape = x.shape(), low(rank - 1, 0), high = low;
      shape.resize(rank - 2);
      Shape flat = shape, rows = shape;
      flat.push_back(n * n);
      high.back() = n;
      rows.push_back(n);
      rows.push_back(n + 1);
      x = reshape(pad(reshape(x, flat), low, high, 0), rows);
      const int label = term.labels[i];
      term.labels.erase(term.labels.begin() + j);
      term.labels.erase(term.labels.begin() + i);
      term.labels.push_back(label);
      return diagonal(node, {squeeze(cut(x, rank - 1, 0, 1), rank - 1), term.labels});
    }
  return term;
}

// The term's axes in the order of `labels`; those that it lacks get extent 1.
Expr arranged(const Term& term, const Labels& labels) {
  std::vector<int64_t> order;
  Shape shape;
  for (int label : labels) {
    const auto at = std::ranges::find(term.labels, label);
    if (at != term.labels.end()) order.push_back(at - term.labels.begin());
    shape.push_back(at != term.labels.end() ? extent(term.value, order.back()) : 1);
  }
  return reshape(permute(term.value, order), shape);
}

Term summed(const Term& term, const Labels& kept) {
  Labels all = kept;
  for (int label : term.labels)
    if (!contains(kept, label)) all.push_back(label);
  const Expr x = arranged(term, all);
  Shape shape = x.shape();
  shape.resize(kept.size());
  return {reshape(sum(x, axes_from(std::ssize(kept), x.rank())), shape), kept};
}

Term product(const Term& a, const Term& b, const Labels& kept) {
  Labels all = kept;
  for (const Labels& labels : {a.labels, b.labels})
    for (int label : labels)
      if (!contains(all, label)) all.push_back(label);
  return summed({arranged(a, all) * arranged(b, all), all}, kept);
}

// Labels that occur once, in alphabetic order, behind the ellipsis.
Labels implicit_result(const std::vector<Term>& terms, int64_t ellipsis) {
  std::map<int, int> uses;
  for (const Term& term : terms)
    for (int label : term.labels) ++uses[label];
  Labels result;
  for (int64_t k = ellipsis; k > 0; --k) result.push_back(static_cast<int>(-k));
  for (const auto& [label, count] : uses)
    if (label > 0 && count == 1) result.push_back(label);
  return result;
}

// Those of `labels` that the result or a term from `next` on has; in the result's order
// first, so that the last step needs no permutation.
Labels still_needed(const Labels& labels, const Labels& result,
                    const std::vector<Term>& terms, size_t next) {
  Labels kept;
  for (int label : result)
    if (contains(labels, label)) kept.push_back(label);
  for (int label : labels) {
    bool later = false;
    for (size_t i = next; i < terms.size(); ++i)
      later = later || contains(terms[i].labels, label);
    if (later && !contains(kept, label)) kept.push_back(label);
  }
  return kept;
}

void check_extents(NodeImport& node, const std::vector<Term>& terms) {
  std::map<int, int64_t> extents;
  for (const Term& term : terms)
    for (size_t i = 0; i < term.labels.size(); ++i) {
      const int64_t size = extent(term.value, i);
      int64_t& known = extents.try_emplace(term.labels[i], size).first->second;
      if (known == 1) known = size;
      require(node, size == known || size == 1, "a label has two extents");
    }
}

} // namespace

void import_einsum(NodeImport& node) {
  const Equation equation = split_equation(node);
  require(node, equation.terms.size() == node.input_count(),
          "the equation has another number of terms than the node has inputs");
  std::vector<Term> terms;
  int64_t ellipsis = 0;
  for (size_t i = 0; i < equation.terms.size(); ++i) {
    require(node, node.dtype(i) == node.dtype(0), "the operands' element types differ");
    const int64_t axes = ellipsis_axes(node, equation.terms[i], node.rank(i));
    ellipsis = std::max(ellipsis, axes);
    terms.push_back({wide(node, i), labels_of(node, equation.terms[i], axes)});
  }
  const Labels result = equation.has_result ? labels_of(node, equation.result, ellipsis)
                                            : implicit_result(terms, ellipsis);
  Labels everything;
  for (Term& term : terms) {
    term = diagonal(node, term);
    everything.insert(everything.end(), term.labels.begin(), term.labels.end());
  }
  check_extents(node, terms);
  for (size_t i = 0; i < result.size(); ++i)
    require(node,
            contains(everything, result[i]) &&
                !contains(Labels(result.begin(), result.begin() + i), result[i]),
            "the result has a label twice, or one that no operand has");

  // What only one term has is summed before it is multiplied.
  for (size_t i = 0; i < terms.size(); ++i) {
    std::vector<Term> others = terms;
    others.erase(others.begin() + i);
    terms[i] = summed(terms[i], still_needed(terms[i].labels, result, others, 0));
  }
  Term left = terms[0];
  for (size_t i = 1; i < terms.size(); ++i) {
    Labels labels = left.labels;
    labels.insert(labels.end(), terms[i].labels.begin(), terms[i].labels.end());
    left = product(left, terms[i], still_needed(labels, result, terms, i + 1));
  }
  finish(node, arranged(left, result));
}

// Axes of one label have one size; where it is summed, what is not meant is 0.
void bounded_einsum(NodeImport& node, Rule rule) {
  const Equation equation = split_equation(node);
  std::map<int, std::vector<InputAxis>> axes;
  std::vector<Term> terms;
  for (size_t i = 0; i < equation.terms.size() && i < node.input_count(); ++i) {
    if (equation.terms[i].find("...") != std::string::npos)
      refuse_bounded(node, node.counts(0).empty() ? 1 : 0, 0);
    ellipsis_axes(node, equation.terms[i], node.rank(i));
    terms.push_back({operand(node, i), labels_of(node, equation.terms[i], 0)});
    for (size_t axis = 0; axis < terms[i].labels.size(); ++axis)
      axes[terms[i].labels[axis]].push_back({i, static_cast<int64_t>(axis)});
  }
  const Labels result = equation.has_result ? labels_of(node, equation.result, 0)
                                            : implicit_result(terms, 0);
  std::map<int, NodeId> counts;
  for (const auto& [label, places] : axes)
    counts[label] = agreed_count(node, places, true);
  for (const auto& [label, places] : axes)
    for (const auto& [input, axis] : places) {
      const Counts kept = node.counts(input);
      if (contains(result, label) || kept.empty()) continue;
      const Expr zero = number(node.g, node.dtype(input), 0);
      node.replace_input(input, masked(operand(node, input), kept, {axis}, zero).id);
      node.input_counts[input] = kept;
    }
  rule(node);
  Counts of_result;
  for (int label : result)
    of_result.push_back(counts.contains(label) ? counts[label] : kNoNode);
  node.set_counts(0, tidy(of_result));
}

} // namespace svod::importer
