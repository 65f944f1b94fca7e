#include "packager/verify/judge.h"

#include "packager/report/json.h"
#include "packager/verify/compare.h"

#include "compiler/ir/text.h"
#include "compiler/rewrite/in_double.h"

#include <cmath>
#include <cstdio>

namespace svod::packager {

// |found - wanted| / |wanted| by Euclidean norms, over the elements that are finite in
// both; 0 where both are zero, nothing where that divides by zero.
static std::optional<double> relative_error(const Tensor& found, const Tensor& wanted) {
  double size = 0, distance = 0;
  for (int64_t i = 0; i < element_count(wanted.shape); ++i) {
    const double a = value_at(found, i), b = value_at(wanted, i);
    if (!std::isfinite(a) || !std::isfinite(b)) continue;
    size += b * b;
    distance += (a - b) * (a - b);
  }
  if (distance == 0) return 0;
  if (size == 0) return std::nullopt;
  return std::sqrt(distance / size);
}

std::optional<Judge> Judge::of(const FusedGraph& fused,
                               const std::vector<Tensor>& inputs) {
  // Every stored value is an output, so that the nodes need not be found again in the
  // graph of doubles.
  Graph all = fused.graph;
  const size_t outputs = all.outputs().size();
  std::vector<NodeId> stored;
  for (const Buffer& b : fused.buffers) {
    const Op op = all[b.node].op;
    if (!is_float(b.dtype) || op == Op::Input || op == Op::Weight) continue;
    all.add_output("", b.node);
    stored.push_back(b.node);
  }
  const std::optional<Graph> wide = rewrite::in_double(all);
  if (!wide) return std::nullopt;
  std::vector<Tensor> given;
  for (const Tensor& input : inputs) given.push_back(rewrite::in_double(input));
  Evaluated run = evaluate(*wide, given);
  if (run.failed != kNoNode) return std::nullopt;
  Judge out;
  for (size_t i = 0; i < stored.size(); ++i)
    out.wanted_.insert_or_assign(stored[i], std::move(run.outputs[outputs + i]));
  return out;
}

void Judge::look_at(const StoredValue& stored) {
  const auto wanted = wanted_.find(stored.buffer.node);
  if (wanted == wanted_.end()) return;
  const std::optional<double> error = relative_error(stored.found, wanted->second);
  const std::optional<double> alone = relative_error(stored.found, stored.expected);
  if (!error || !alone) return;
  rows_.push_back({stored.buffer.node,
                   type_text(stored.buffer.dtype, stored.buffer.shape), stored.kernel,
                   stored.nodes, *error, *alone});
}

// Four digits of a share: what is compared is known to no more.
static std::string share_text(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3e", share);
  return text;
}

std::string Judge::json() const {
  JsonWriter json;
  json.begin_object();
  json.pair("reference", "the evaluator in double precision");
  json.key("tensors").begin_list();
  for (const Row& row : rows_) {
    json.begin_object();
    json.pair("node", int64_t{row.node}).pair("type", row.type);
    json.pair("kernel", row.kernel).key("nodes").begin_list();
    for (const std::string& name : row.nodes) json.value(name);
    json.end_list();
    json.key("error").raw(share_text(row.error));
    json.key("alone").raw(share_text(row.alone));
    json.end_object();
  }
  json.end_list().end_object();
  return json.text();
}

} // namespace svod::packager
