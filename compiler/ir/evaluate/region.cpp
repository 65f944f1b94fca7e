// Runs the bodies of regions, iteration by iteration as region.h says.
#include "compiler/ir/region.h"
#include "compiler/ir/evaluate/parts.h"

#include <cstring>

namespace svod {

namespace {

Tensor zeros(const Node& type) {
  Tensor out{type.dtype, type.shape, {}};
  out.bytes.resize(static_cast<size_t>(element_count(type.shape)) *
                   static_cast<size_t>(byte_size(type.dtype)));
  return out;
}

Tensor number_tensor(int64_t value) {
  Tensor out{DType::I64, {}, std::vector<std::byte>(sizeof value)};
  std::memcpy(out.bytes.data(), &value, sizeof value);
  return out;
}

int64_t number_in(const Tensor& tensor) {
  int64_t value;
  std::memcpy(&value, tensor.bytes.data(), sizeof value);
  return value;
}

bool truth_in(const Tensor& tensor) { return tensor.bytes[0] != std::byte(0); }

class LoopRun {
public:
  LoopRun(const Graph& g, const Node& node, const std::vector<const Tensor*>& in)
      : in_(in), spec_(loop_spec(node)), body_(*g.body(spec_.body)),
        scanned_(static_cast<size_t>(scanned_count(spec_, body_))) {}

  bool run(Tensor& own, std::vector<Tensor>& results) {
    const auto carried = static_cast<size_t>(spec_.carried);
    for (size_t k = 0; k < carried; ++k) results.push_back(*in_[2 + k]);
    for (size_t k = 0; k < scanned_; ++k) {
      Node type = body_[body_.outputs()[first() + carried + k].node];
      type.shape.insert(type.shape.begin(), spec_.limit);
      results.push_back(zeros(type));
    }
    const int64_t count = number_in(*in_[0]);
    bool going = truth_in(*in_[1]);
    int64_t i = 0;
    for (; going && i < count; ++i)
      if (i == spec_.limit || !iterate(i, results, going)) return false;
    own = number_tensor(i);
    return true;
  }

private:
  size_t first() const { return spec_.again ? 1 : 0; }

  // Where item `i` of sliced input or scanned result number `flag` starts.
  size_t offset(size_t flag, int64_t i, size_t bytes) const {
    const int64_t at = spec_.reversed[flag] != 0 ? spec_.limit - 1 - i : i;
    return static_cast<size_t>(at) * bytes;
  }

  bool iterate(int64_t i, std::vector<Tensor>& results, bool& going) {
    const auto carried = static_cast<size_t>(spec_.carried);
    const auto sliced = static_cast<size_t>(spec_.sliced);
    std::vector<Tensor> inputs{number_tensor(i)};
    for (size_t k = 0; k < carried; ++k) inputs.push_back(results[k]);
    for (size_t k = 0; k < sliced; ++k) {
      Tensor item = zeros(body_[body_.inputs()[inputs.size()].node]);
      const Tensor& whole = *in_[2 + carried + k];
      if (!item.bytes.empty())
        std::memcpy(item.bytes.data(),
                    whole.bytes.data() + offset(k, i, item.bytes.size()),
                    item.bytes.size());
      inputs.push_back(std::move(item));
    }
    for (size_t k = 2 + carried + sliced; k < in_.size(); ++k) inputs.push_back(*in_[k]);
    Evaluated made = evaluate(body_, inputs);
    if (made.failed != kNoNode) return false;
    if (spec_.again) going = truth_in(made.outputs[0]);
    for (size_t k = 0; k < carried; ++k)
      results[k] = std::move(made.outputs[first() + k]);
    for (size_t k = 0; k < scanned_; ++k) {
      const Tensor& item = made.outputs[first() + carried + k];
      if (!item.bytes.empty())
        std::memcpy(results[carried + k].bytes.data() +
                        offset(sliced + k, i, item.bytes.size()),
                    item.bytes.data(), item.bytes.size());
    }
    return true;
  }

  const std::vector<const Tensor*>& in_;
  LoopSpec spec_;
  const Graph& body_;
  size_t scanned_;
};

} // namespace

bool evaluate_region(const Graph& g, const Node& node,
                     const std::vector<const Tensor*>& in, Tensor& own,
                     std::vector<Tensor>& results) {
  if (node.op == Op::Loop) return LoopRun(g, node, in).run(own, results);
  own = *in[0];
  const size_t chosen = truth_in(own) ? 0 : 1;
  std::vector<Tensor> inputs;
  for (size_t k = 1; k < in.size(); ++k) inputs.push_back(*in[k]);
  Evaluated made = evaluate(*g.body(static_cast<uint32_t>(node.payload[chosen])), inputs);
  results = std::move(made.outputs);
  return made.failed == kNoNode;
}

} // namespace svod
