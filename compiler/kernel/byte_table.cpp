#include "compiler/kernel/byte_table.h"

#include "compiler/ir/build.h"
#include "compiler/ir/fold.h"
#include "compiler/kernel/stage_work.h"

#include <map>

namespace svod {

namespace {

// The same computation over all 256 bytes, as a graph.
class ByteFunction {
public:
  ByteFunction(const Kernel& k, ExprId root) : k_(k), root_(root) {}

  std::optional<ByteTable> table() {
    const std::optional<NodeId> result = node(root_);
    if (!result || !source_) return std::nullopt;
    std::optional<Tensor> values = known_tensor(g_, *result);
    if (!values) return std::nullopt;
    return ByteTable{*source_, std::move(*values), costly_};
  }

private:
  static constexpr int64_t kBytes = 256;

  std::optional<NodeId> node(ExprId id) {
    if (auto found = nodes_.find(id); found != nodes_.end()) return found->second;
    return nodes_[id] = make_node(id);
  }

  std::optional<NodeId> make_node(ExprId id) {
    const Expr& e = k_.exprs[id];
    if (e.kind == Expr::Kind::Constant)
      return constant_bits(g_, e.dtype, {kBytes}, e.bits);
    if (is_byte(e.dtype) && id != root_) return bytes(id);
    const bool converts = e.kind == Expr::Kind::Cast || e.kind == Expr::Kind::Bitcast;
    if (e.kind != Expr::Kind::Map && !converts) return std::nullopt;
    std::vector<NodeId> inputs;
    for (ExprId in : e.inputs) {
      const std::optional<NodeId> input = node(in);
      if (!input) return std::nullopt;
      inputs.push_back(*input);
    }
    if (e.kind == Expr::Kind::Cast) return cast(g_, inputs[0], e.dtype);
    if (e.kind == Expr::Kind::Bitcast) return bitcast(g_, inputs[0], e.dtype);
    costly_ = costly_ || is_costly(e.op);
    return map(g_, e.op, std::move(inputs));
  }

  // Every byte there is; the one that the computation starts from.
  std::optional<NodeId> bytes(ExprId id) {
    if (source_ && *source_ != id) return std::nullopt;
    source_ = id;
    Tensor all{k_.exprs[id].dtype, {kBytes}, {}};
    for (int64_t i = 0; i < kBytes; ++i) all.bytes.push_back(static_cast<std::byte>(i));
    return tensor_node(g_, std::move(all));
  }

  const Kernel& k_;
  ExprId root_;
  std::optional<ExprId> source_;
  bool costly_ = false;
  Graph g_;
  std::map<ExprId, std::optional<NodeId>> nodes_;
};

} // namespace

std::optional<ByteTable> byte_table(const Kernel& kernel, ExprId id) {
  if (!is_byte(kernel.exprs[id].dtype)) return std::nullopt;
  return ByteFunction(kernel, id).table();
}

} // namespace svod
