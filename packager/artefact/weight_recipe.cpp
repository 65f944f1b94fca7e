// Known nodes stay in the graph of a plan as they were written: a weight in Winograd's
// form is a sum over a small matrix and the model's own tensor. What has to be stored of
// a node is its value, or what its inputs need where that is less. A walk from the inputs
// then writes the steps: views are strides that the next step reads with, a pad is a copy
// with limits, and a sum of products is a sum.
//
// Groups merged to one are products with a mask of ones and zeros: what lies between the
// groups is zero.
#include "packager/artefact/weight_recipe.h"

#include "compiler/ir/build.h"
#include "compiler/ir/strided.h"
#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>

namespace svod::packager {

namespace {

uint64_t bytes_of(const Node& node) {
  return static_cast<uint64_t>(element_count(node.shape)) *
         static_cast<uint64_t>(byte_size(node.dtype));
}

bool is_sum_of_products(const Graph& g, const Node& node) {
  return node.op == Op::ReduceSum && node.dtype == DType::F32 &&
         g[node.inputs[0]].op == Op::Mul;
}

// A tensor where a condition holds, zeros elsewhere.
bool is_masked(const Graph& g, const Node& node) {
  return node.op == Op::Select && node.dtype == DType::F32 &&
         splat_bits(g, node.inputs[2]) == 0;
}

// A condition before it repeats.
NodeId small_mask(const Graph& g, NodeId mask) {
  return g[mask].op == Op::Expand ? g[mask].inputs[0] : mask;
}

} // namespace

// What the inputs of a node need, where a step or a view can make its value.
std::optional<uint64_t> RecipeBook::made_from(NodeId id) {
  const Node& node = graph_[id];
  if (element_count(node.shape) == 0) return std::nullopt;
  if (is_view(node.op)) return stored_bytes(node.inputs[0]);
  if (is_sum_of_products(graph_, node)) {
    const Node& product = graph_[node.inputs[0]];
    return stored_bytes(product.inputs[0]) + stored_bytes(product.inputs[1]);
  }
  if (!is_masked(graph_, node)) return std::nullopt;
  const auto mask = element_count(graph_[small_mask(graph_, node.inputs[0])].shape);
  return stored_bytes(node.inputs[1]) + static_cast<uint64_t>(mask) * sizeof(float);
}

uint64_t RecipeBook::stored_bytes(NodeId id) {
  const auto known = stored_.find(id);
  if (known != stored_.end()) return known->second;
  const uint64_t own = bytes_of(graph_[id]);
  const uint64_t bytes = std::min(own, made_from(id).value_or(own));
  stored_[id] = bytes;
  return bytes;
}

bool RecipeBook::is_made(NodeId id) { return stored_bytes(id) < bytes_of(graph_[id]); }

namespace {

// Writes the steps of one recipe.
class RecipeWriter {
public:
  explicit RecipeWriter(RecipeBook& book) : book_(book), g_(book.graph()) {}

  std::optional<Recipe> write(const std::vector<const PackedWeight*>& weights) {
    const Recipe::Operand source = laid_out(value(weights.front()->source));
    for (size_t i = 0; i < weights.size(); ++i) pack(*weights[i], source, i);
    for (const Recipe::Step& step : out_.steps)
      if (step.axes > SVOD_EXPANSION_AXES || step.limits > SVOD_EXPANSION_AXES)
        return std::nullopt;
    return std::move(out_);
  }

private:
  // What a node's value is until somebody needs it laid out; the base has no elements.
  struct View {
    Recipe::Operand base;
    Strided strided;
  };

  static View whole_of(Recipe::Operand base, DType dtype, const Shape& shape) {
    return {base, whole(std::make_shared<Tensor>(Tensor{dtype, shape, {}}))};
  }

  View store(Tensor tensor) {
    const View out = whole_of({SVOD_EXPANSION_TENSORS, out_.tensors.size()}, tensor.dtype,
                              tensor.shape);
    out_.tensors.push_back(std::move(tensor));
    return out;
  }

  View room(DType dtype, const Shape& shape) {
    const View out = whole_of({SVOD_EXPANSION_ROOM, out_.rooms.size()}, dtype, shape);
    out_.rooms.push_back(static_cast<uint64_t>(element_count(shape) * byte_size(dtype)));
    return out;
  }

  const View& value(NodeId id) {
    const auto known = values_.find(id);
    if (known != values_.end()) return known->second;
    return values_.emplace(id, make(id)).first->second;
  }

  View make(NodeId id) {
    const Node& node = g_[id];
    if (!book_.is_made(id)) return store(evaluate_known(g_, id));
    if (is_sum_of_products(g_, node)) {
      const Node& product = g_[node.inputs[0]];
      return sum(node, value(product.inputs[0]), value(product.inputs[1]));
    }
    if (is_masked(g_, node))
      return sum(node, value(node.inputs[1]), mask(node.inputs[0]));
    View in = value(node.inputs[0]);
    if (node.op == Op::Pad) return padded(node, in);
    std::optional<Strided> seen = seen_through(node, in.strided);
    if (!seen) {
      const DType dtype = in.strided.base->dtype;
      in = whole_of(laid_out(in), dtype, in.strided.shape);
      seen = seen_through(node, in.strided);
    }
    SVOD_CHECK(seen) << "no strides of a view";
    return {in.base, *seen};
  }

  // Ones and zeros.
  View mask(NodeId condition) {
    const NodeId small = small_mask(g_, condition);
    const Tensor truth = evaluate_known(g_, small);
    Tensor ones{DType::F32, truth.shape, {}};
    ones.bytes.resize(truth.bytes.size() * sizeof(float));
    for (size_t i = 0; i < truth.bytes.size(); ++i) {
      const float one = truth.bytes[i] != std::byte(0) ? 1 : 0;
      std::memcpy(&ones.bytes[i * sizeof(float)], &one, sizeof one);
    }
    View out = store(std::move(ones));
    if (small == condition) return out;
    out.strided = *seen_through(g_[condition], out.strided);
    return out;
  }

  // Axes of a copy that are one walk become one.
  static Recipe::Step copy(const Shape& extents, const std::vector<int64_t>& strides,
                           int64_t first, bool joins) {
    struct Axis {
      int64_t extent, stride;
    };
    std::vector<Axis> axes;
    for (size_t i = 0; i < extents.size(); ++i) {
      if (joins && extents[i] == 1) continue;
      if (joins && !axes.empty() && axes.back().stride == strides[i] * extents[i])
        axes.back() = {axes.back().extent * extents[i], strides[i]};
      else
        axes.push_back({extents[i], strides[i]});
    }
    Recipe::Step out;
    out.numbers = {first};
    out.axes = axes.size();
    for (const Axis& axis : axes)
      out.numbers.insert(out.numbers.end(), {axis.extent, axis.stride});
    return out;
  }

  // Whether the elements lie in order, whatever shape the base has.
  static bool is_dense(const Strided& view) {
    const Shape strides = row_major_strides(view.shape);
    for (size_t i = 0; i < strides.size(); ++i)
      if (view.shape[i] != 1 && view.strides[i] != strides[i]) return false;
    return view.start == 0 &&
           element_count(view.shape) == element_count(view.base->shape);
  }

  Recipe::Operand laid_out(const View& view) {
    if (is_dense(view.strided)) return view.base;
    const Strided& strided = view.strided;
    const View to = room(strided.base->dtype, strided.shape);
    Recipe::Step step = copy(strided.shape, strided.strides, strided.start, true);
    step.element_bytes = byte_size(strided.base->dtype);
    step.result = to.base, step.a = view.base;
    out_.steps.push_back(std::move(step));
    return to.base;
  }

  View padded(const Node& node, const View& in) {
    const Strided& strided = in.strided;
    const size_t rank = node.shape.size();
    int64_t first = strided.start;
    for (size_t i = 0; i < rank; ++i) first -= node.payload[i] * strided.strides[i];
    Recipe::Step step = copy(node.shape, strided.strides, first, false);
    for (size_t i = 0; i < rank; ++i) {
      if (node.shape[i] == strided.shape[i]) continue;
      ++step.limits;
      step.numbers.insert(step.numbers.end(), {-node.payload[i], 0, strided.shape[i]});
      for (size_t k = 0; k < rank; ++k) step.numbers.push_back(k == i);
    }
    const View to = room(node.dtype, node.shape);
    step.element_bytes = byte_size(node.dtype);
    step.fill = static_cast<uint64_t>(node.payload[2 * rank]);
    step.result = to.base, step.a = in.base;
    out_.steps.push_back(std::move(step));
    return to;
  }

  // The product of two tensors, summed over the axes that `node` lacks, if it is a sum.
  View sum(const Node& node, View a, View b) {
    struct Axis {
      int64_t extent, a, b, out;
      bool kept;
    };
    const Shape strides = row_major_strides(node.shape);
    std::vector<Axis> axes;
    for (size_t i = 0; i < node.shape.size(); ++i) {
      const bool kept = node.op != Op::ReduceSum ||
                        std::ranges::count(node.payload, static_cast<int64_t>(i)) == 0;
      const Axis axis{a.strided.shape[i], a.strided.strides[i], b.strided.strides[i],
                      kept ? strides[i] : 0, kept};
      if (axis.extent == 1) continue;
      Axis* last = axes.empty() ? nullptr : &axes.back();
      if (last && last->kept == kept && last->a == axis.a * axis.extent &&
          last->b == axis.b * axis.extent && last->out == axis.out * axis.extent)
        *last = {last->extent * axis.extent, axis.a, axis.b, axis.out, kept};
      else
        axes.push_back(axis);
    }
    const auto summed = std::ranges::stable_partition(axes, &Axis::kept).begin();
    Recipe::Step step;
    step.kind = SVOD_EXPANSION_SUM;
    step.kept = static_cast<size_t>(summed - axes.begin());
    if (step.kept == 0) axes.insert(axes.begin(), {1, 0, 0, 0, true}), step.kept = 1;
    const auto kept = std::span(axes).first(step.kept);
    const auto row = std::ranges::max_element(kept, {}, &Axis::extent);
    step.row = static_cast<size_t>(row - kept.begin());
    // The stub is fast where b is one number for a row.
    const bool swap = row->a == 0 && row->b != 0;
    step.axes = axes.size();
    for (const Axis& axis : axes)
      step.numbers.insert(step.numbers.end(), {axis.extent, swap ? axis.b : axis.a,
                                               swap ? axis.a : axis.b, axis.out});
    const View to = room(node.dtype, node.shape);
    step.element_bytes = byte_size(node.dtype);
    step.a = a.base, step.b = b.base;
    step.a.start = a.strided.start, step.b.start = b.strided.start;
    if (swap) std::swap(step.a, step.b);
    step.result = to.base;
    out_.steps.push_back(std::move(step));
    return to;
  }

  void pack(const PackedWeight& weight, Recipe::Operand source, size_t number) {
    const bool joins = weight.limits.empty();
    Recipe::Step step = copy(weight.extents, weight.strides, weight.offset, joins);
    step.limits = weight.limits.size();
    for (const PackedWeight::Limit& limit : weight.limits) {
      step.numbers.insert(step.numbers.end(), {limit.constant, limit.low, limit.high});
      step.numbers.insert(step.numbers.end(), limit.coefficients.begin(),
                          limit.coefficients.end());
    }
    step.element_bytes = byte_size(weight.dtype);
    step.fill = weight.fill_bits;
    step.result = {SVOD_EXPANSION_WEIGHTS, number};
    step.a = source;
    out_.steps.push_back(std::move(step));
  }

  RecipeBook& book_;
  const Graph& g_;
  std::map<NodeId, View> values_;
  Recipe out_;
};

} // namespace

std::optional<Recipe>
RecipeBook::recipe(const std::vector<const PackedWeight*>& weights) {
  return RecipeWriter(*this).write(weights);
}

Recipe stored_as_packed(std::vector<std::byte> packed) {
  Recipe out;
  Recipe::Step step;
  step.element_bytes = 8;
  while (packed.size() % static_cast<size_t>(step.element_bytes) != 0)
    step.element_bytes /= 2;
  step.axes = 1;
  step.numbers = {0, static_cast<int64_t>(packed.size()) / step.element_bytes, 1};
  step.result = {SVOD_EXPANSION_WEIGHTS, 0};
  step.a = {SVOD_EXPANSION_TENSORS, 0};
  out.tensors.push_back(
      {DType::U8, {static_cast<int64_t>(packed.size())}, std::move(packed)});
  out.steps.push_back(std::move(step));
  return out;
}

} // namespace svod::packager
