#include "compiler/kernel/byte_table.h"

#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/kernel/stage_work.h"

#include <algorithm>
#include <map>

namespace svod {

namespace {

// The bytes of which each expression is a function, each of them alone, in the order in
// which they are made.
class ByteSources {
public:
  explicit ByteSources(const Kernel& k) : k_(k), of_(k.exprs.size()) {}

  // The first byte that the expression is made of, other than itself.
  std::optional<ExprId> first(ExprId id) {
    const Sources sources = of_inputs(id);
    return sources.known || sources.bytes.empty() ? std::nullopt
                                                  : std::optional(sources.bytes.front());
  }

private:
  struct Sources {
    bool known = false; // it is made of constants
    std::vector<ExprId> bytes;
  };

  // Of a chain of bytes the first ones are kept: each is a better source than the next.
  static constexpr size_t kMost = 8;

  const Sources& of(ExprId id) {
    if (of_[id]) return *of_[id];
    Sources out = of_inputs(id);
    if (is_byte(k_.exprs[id].dtype) && !out.known && out.bytes.size() < kMost)
      out.bytes.push_back(id);
    return of_[id].emplace(std::move(out));
  }

  Sources of_inputs(ExprId id) {
    const Expr& e = k_.exprs[id];
    if (e.kind == Expr::Kind::Constant) return {true, {}};
    const bool computes = e.kind == Expr::Kind::Map || e.kind == Expr::Kind::Cast ||
                          e.kind == Expr::Kind::Bitcast;
    Sources out{computes, {}};
    if (computes)
      for (ExprId in : e.inputs) meet(out, of(in));
    return out;
  }

  static void meet(Sources& out, const Sources& input) {
    if (input.known) return;
    if (out.known) {
      out = input;
      return;
    }
    std::erase_if(out.bytes, [&](ExprId byte) {
      return std::ranges::count(input.bytes, byte) == 0;
    });
  }

  const Kernel& k_;
  std::vector<std::optional<Sources>> of_;
};

// The same computation over all 256 bytes, as a graph.
class ByteFunction {
public:
  ByteFunction(const Kernel& k, ExprId source) : k_(k), source_(source) {}

  std::optional<Tensor> values(ExprId root) { return known_tensor(g_, node(root)); }

private:
  static constexpr int64_t kBytes = 256;

  NodeId node(ExprId id) {
    if (auto found = nodes_.find(id); found != nodes_.end()) return found->second;
    const NodeId made = make_node(id);
    return nodes_[id] = made;
  }

  NodeId make_node(ExprId id) {
    const Expr& e = k_.exprs[id];
    if (id == source_) return bytes();
    if (e.kind == Expr::Kind::Constant)
      return constant_bits(g_, e.dtype, {kBytes}, e.bits);
    std::vector<NodeId> inputs;
    for (ExprId in : e.inputs) inputs.push_back(node(in));
    if (e.kind == Expr::Kind::Cast) return cast(g_, inputs[0], e.dtype);
    if (e.kind == Expr::Kind::Bitcast) return bitcast(g_, inputs[0], e.dtype);
    return map(g_, e.op, std::move(inputs));
  }

  NodeId bytes() {
    Tensor all{k_.exprs[source_].dtype, {kBytes}, {}};
    for (int64_t i = 0; i < kBytes; ++i) all.bytes.push_back(static_cast<std::byte>(i));
    return tensor_node(g_, std::move(all));
  }

  const Kernel& k_;
  ExprId source_;
  Graph g_;
  std::map<ExprId, NodeId> nodes_;
};

// Whether something between the byte and what is made of it takes long.
bool is_costly_from(const Kernel& k, ExprId source, ExprId root) {
  std::vector<ExprId> work = {root};
  std::vector<bool> seen(k.exprs.size());
  while (!work.empty()) {
    const ExprId id = work.back();
    work.pop_back();
    if (id == source || seen[id]) continue;
    seen[id] = true;
    const Expr& e = k.exprs[id];
    if (e.kind == Expr::Kind::Map && is_costly(e.op)) return true;
    work.insert(work.end(), e.inputs.begin(), e.inputs.end());
  }
  return false;
}

} // namespace

std::optional<ByteTable> byte_table(const Kernel& kernel, ExprId id) {
  if (!is_byte(kernel.exprs[id].dtype)) return std::nullopt;
  const std::optional<ExprId> source = ByteSources(kernel).first(id);
  if (!source) return std::nullopt;
  std::optional<Tensor> values = ByteFunction(kernel, *source).values(id);
  return values ? std::optional(ByteTable{*source, std::move(*values)}) : std::nullopt;
}

std::vector<ExprId> costly_byte_tables(const Kernel& kernel) {
  std::vector<ExprId> out;
  const auto is_one = [](const Expr& e) { return is_byte(e.dtype); };
  if (std::ranges::none_of(kernel.exprs, is_one)) return out;
  ByteSources sources(kernel);
  for (ExprId id = 0; id < kernel.exprs.size(); ++id) {
    if (!is_one(kernel.exprs[id])) continue;
    const std::optional<ExprId> source = sources.first(id);
    if (source && is_costly_from(kernel, *source, id) && byte_table(kernel, id))
      out.push_back(id);
  }
  return out;
}

} // namespace svod
