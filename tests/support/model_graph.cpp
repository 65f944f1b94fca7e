// One pool of values, by rank: images [N, C, H, W], signals [N, C, L], rows [N, L, C] and
// [N, C]. Each step takes one, mostly the newest, and adds what an operator makes of it.
#include "tests/support/model_graph.h"

#include "compiler/ir/build.h"
#include "importer/formula/rule.h"
#include "importer/operators/onnx_ops.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace svod::test {

using namespace importer;

namespace {

constexpr double kTolerance = 1e-3;
constexpr int64_t kOpset = 17;
constexpr int64_t kChannels[] = {3, 8, 12, 16, 17, 24, 32, 40};

ModelAttribute ints(const std::string& name, std::vector<int64_t> values) {
  ModelAttribute a;
  a.name = name;
  a.type = AttributeType::Ints;
  a.ints = std::move(values);
  return a;
}

ModelAttribute number(const std::string& name, int64_t value) {
  ModelAttribute a;
  a.name = name;
  a.i = value;
  return a;
}

using Attributes = std::vector<ModelAttribute>;

class Modeller {
public:
  Modeller(uint64_t seed, const ModelGraphOptions& options)
      : random_(seed), options_(options) {}

  RandomGraph run() {
    options_.pictures ? add_picture() : add_input();
    if (!options_.pictures && random_.chance(30)) add_input();
    for (int made = 0, tries = 0; made < options_.steps && tries < 60 * options_.steps;
         ++tries)
      made += step();
    add_outputs();
    out_.tolerance.assign(g().size(), kTolerance);
    return std::move(out_);
  }

private:
  Graph& g() { return out_.graph; }
  Shape shape(NodeId id) { return g()[id].shape; }
  template <size_t n> int64_t one_of(const int64_t (&values)[n]) {
    return values[random_.below(n)];
  }

  std::vector<double> quarters(int64_t count, double scale) {
    std::vector<double> values(static_cast<size_t>(count));
    for (double& v : values) v = static_cast<double>(random_.between(-8, 8)) / 4 * scale;
    return values;
  }

  NodeId keep(NodeId id) {
    if (id != kNoNode && std::find(pool_.begin(), pool_.end(), id) == pool_.end())
      pool_.push_back(id);
    return id;
  }

  void add_input() {
    Shape shape{random_.between(1, 2), one_of(kChannels), random_.between(5, 20)};
    if (random_.chance(80)) shape.push_back(random_.between(5, 20));
    Tensor t = make_tensor(DType::F32, shape, quarters(element_count(shape), 0.5));
    NodeId id =
        g().add_input("x" + std::to_string(out_.inputs.size()), DType::F32, shape);
    out_.inputs.push_back(std::move(t));
    keep(id);
  }

  void add_picture() {
    const Shape shape{1, one_of(kChannels), random_.between(16, 41),
                      random_.between(8, 20)};
    out_.inputs.push_back(
        make_tensor(DType::F32, shape, quarters(element_count(shape), 0.5)));
    keep(g().add_input("x0", DType::F32, shape));
  }

  NodeId known(Shape shape, double scale, double shift = 0) {
    std::vector<double> values = quarters(element_count(shape), scale);
    for (double& v : values) v += shift;
    Tensor t = make_tensor(DType::F32, shape, values);
    return weight(g(), DType::F32, shape, g().add_blob(std::move(t.bytes)));
  }

  NodeId known_ints(std::vector<int64_t> values) {
    return tensor_i64(g(), {static_cast<int64_t>(values.size())}, values);
  }

  // The first result of an operator; kNoNode where its rule refuses the operands.
  NodeId apply(const std::string& op, std::vector<NodeId> inputs,
               Attributes attributes = {}) {
    ModelNode node;
    node.op_type = op;
    node.attributes = std::move(attributes);
    for (size_t i = 0; i < inputs.size(); ++i)
      node.inputs.push_back("x" + std::to_string(i));
    node.outputs = {"y"};
    const OnnxForm* row = find_onnx_form("", op, kOpset);
    SVOD_CHECK(row != nullptr) << "no operator " << op;
    NodeImport import(g(), node, kOpset, inputs, row->attributes);
    try {
      row->rule(import);
    } catch (const RuleFailure&) {
      return kNoNode;
    }
    return import.results().at(0);
  }

  // ---- steps

  bool step() {
    // The newest most often: depth is where layouts meet.
    size_t from =
        random_.chance(60)
            ? pool_.size() - 1
            : static_cast<size_t>(random_.below(static_cast<int64_t>(pool_.size())));
    NodeId x = pool_[from];
    bool image = shape(x).size() == 4 || (shape(x).size() == 3 && !rows_.count(x));
    NodeId y = image ? image_step(x) : row_step(x);
    if (y == kNoNode || element_count(shape(y)) > 60000) return false;
    keep(y);
    return true;
  }

  NodeId image_step(NodeId x) {
    if (options_.pictures) return picture_step(x);
    switch (random_.below(13)) {
    case 0:
    case 1:
    case 2:
    case 3:
      return convolution(x);
    case 4:
      return pooling(x);
    case 5:
      return transposed(x);
    case 6:
      return concat(x);
    case 7:
      return gate(x);
    case 8:
      return rearrange(x);
    case 9:
      return to_rows(x);
    case 10:
      return part(x);
    case 11:
      return activate(x);
    default:
      return residual(x);
    }
  }

  NodeId picture_step(NodeId x) {
    switch (random_.below(8)) {
    case 0:
      return pooling(x);
    case 1:
      return activate(x);
    case 2:
      return residual(x);
    default:
      return convolution(x);
    }
  }

  NodeId activate(NodeId x) {
    switch (random_.below(6)) {
    case 0:
      return apply("Relu", {x});
    case 1:
      return apply("Mul", {x, apply("Sigmoid", {x})});
    case 2:
      return apply("LeakyRelu", {x});
    case 3:
      return apply("HardSwish", {x});
    case 4:
      return apply("Clip", {x, constant(g(), DType::F32, {}, -0.5),
                            constant(g(), DType::F32, {}, 1.5)});
    default:
      return apply("Tanh", {x});
    }
  }

  NodeId normalise(NodeId x) {
    int64_t c = shape(x)[1];
    return apply("BatchNormalization", {x, known({c}, 0.125, 1), known({c}, 0.25),
                                        known({c}, 0.25), known({c}, 0.125, 1)});
  }

  NodeId convolution(NodeId x) {
    Shape in = shape(x);
    int64_t c = in[1], outputs = one_of(kChannels), groups = 1;
    if (random_.chance(20)) groups = outputs = c;
    if (random_.chance(10)) groups = c % 4 == 0 ? 4 : 1, outputs = groups * 6;
    size_t spatial = in.size() - 2;
    std::vector<int64_t> kernel, stride, dilation, pads(2 * spatial);
    Shape weights{outputs, c / groups};
    int64_t products = in[0] * outputs * c / groups;
    for (size_t i = 0; i < spatial; ++i) {
      static constexpr int64_t kKernels[] = {1, 1, 2, 3, 3, 3, 5};
      static constexpr int64_t kStrides[] = {1, 1, 1, 2, 3};
      kernel.push_back(i > 0 && random_.chance(70) ? kernel[0] : one_of(kKernels));
      stride.push_back(i > 0 && random_.chance(70) ? stride[0] : one_of(kStrides));
      dilation.push_back(random_.chance(15) ? 2 : 1);
      int64_t reach = (kernel[i] - 1) * dilation[i];
      bool same = random_.chance(70);
      pads[i] = same ? reach / 2 : random_.between(0, reach);
      pads[spatial + i] = same ? reach / 2 : random_.between(0, reach);
      weights.push_back(kernel[i]);
      products *= kernel[i] * (in[2 + i] / stride[i] + 1);
    }
    if (products > options_.max_products) return kNoNode;
    double fan_in = static_cast<double>(element_count(weights) / outputs);
    std::vector<NodeId> operands{x, known(weights, 1 / std::sqrt(fan_in))};
    if (random_.chance(60)) operands.push_back(known({outputs}, 0.25));
    NodeId y = apply("Conv", operands,
                     {ints("strides", stride), ints("dilations", dilation),
                      ints("pads", pads), number("group", groups)});
    if (y == kNoNode) return y;
    if (random_.chance(30)) y = normalise(y);
    if (random_.chance(25) && shape(y) == in) y = apply("Add", {y, x});
    if (random_.chance(60)) y = activate(y);
    return y;
  }

  NodeId transposed(NodeId x) {
    Shape in = shape(x);
    int64_t outputs = one_of(kChannels), stride = random_.between(1, 2), kernel = 3;
    if (in[0] * in[1] * outputs * 9 * element_count(Shape(in.begin() + 2, in.end())) >
        options_.max_products)
      return kNoNode;
    Shape weights{in[1], outputs};
    weights.resize(in.size(), kernel);
    std::vector<int64_t> strides(in.size() - 2, stride), pads(2 * in.size() - 4, 1);
    double scale = 0.5 / std::sqrt(static_cast<double>(in[1]));
    return apply("ConvTranspose", {x, known(weights, scale)},
                 {ints("strides", strides), ints("pads", pads)});
  }

  NodeId pooling(NodeId x) {
    size_t spatial = shape(x).size() - 2;
    if (random_.chance(25)) return apply("GlobalAveragePool", {x});
    int64_t size = random_.between(2, 3), pad = random_.below(2);
    Attributes attributes{
        ints("kernel_shape", std::vector<int64_t>(spatial, size)),
        ints("strides", std::vector<int64_t>(spatial, random_.between(1, 2))),
        ints("pads", std::vector<int64_t>(2 * spatial, pad)),
        number("ceil_mode", random_.below(2))};
    bool most = random_.chance(60);
    if (!most) attributes.push_back(number("count_include_pad", random_.below(2)));
    return apply(most ? "MaxPool" : "AveragePool", {x}, attributes);
  }

  NodeId concat(NodeId x) {
    std::vector<NodeId> parts{x};
    int64_t axis = random_.chance(75) ? 1 : 2;
    for (NodeId other : pool_) {
      Shape a = shape(x), b = shape(other);
      if (a.size() != b.size() || parts.size() == 3) continue;
      a[axis] = b[axis] = 0;
      if (a == b && rows_.count(x) == rows_.count(other) && random_.chance(70))
        parts.push_back(random_.chance(30) ? activate(other) : other);
    }
    if (parts.size() == 1) parts.push_back(activate(x));
    return apply("Concat", parts, {number("axis", axis)});
  }

  NodeId residual(NodeId x) {
    for (size_t i = pool_.size(); i-- > 0;)
      if (pool_[i] != x && shape(pool_[i]) == shape(x))
        return apply("Add", {x, random_.chance(50) ? pool_[i] : activate(pool_[i])});
    return kNoNode;
  }

  // Squeeze and excitation: channels scaled by what their means say.
  NodeId gate(NodeId x) {
    int64_t c = shape(x)[1];
    Shape weights{c, c};
    weights.resize(shape(x).size(), 1);
    NodeId mean = apply("GlobalAveragePool", {x});
    NodeId scale = apply("Conv", {mean, known(weights, 1 / std::sqrt(double(c)))});
    return scale == kNoNode ? scale : apply("Mul", {x, apply("Sigmoid", {scale})});
  }

  NodeId rearrange(NodeId x) {
    Shape in = shape(x);
    int64_t c = in[1];
    if (random_.chance(40) && c % 4 == 0) { // channel shuffle
      Shape split = in;
      split[1] = c / 4;
      split.insert(split.begin() + 1, 4);
      std::vector<int64_t> order(split.size());
      for (size_t i = 0; i < order.size(); ++i) order[i] = static_cast<int64_t>(i);
      std::swap(order[1], order[2]);
      return reshape(g(), permute(g(), reshape(g(), x, split), order), in);
    }
    if (in.size() != 4) return kNoNode;
    if (random_.chance(40) && c % 4 == 0)
      return apply("DepthToSpace", {x}, {number("blocksize", 2)});
    if (random_.chance(40) && in[2] % 2 == 0 && in[3] % 2 == 0)
      return apply("SpaceToDepth", {x}, {number("blocksize", 2)});
    return nearest(x);
  }

  // Every pixel twice along both axes.
  NodeId nearest(NodeId x) {
    Shape in = shape(x);
    NodeId apart = reshape(g(), x, {in[0], in[1], in[2], 1, in[3], 1});
    NodeId all = expand(g(), apart, {in[0], in[1], in[2], 2, in[3], 2});
    return reshape(g(), all, {in[0], in[1], 2 * in[2], 2 * in[3]});
  }

  NodeId part(NodeId x) {
    Shape in = shape(x);
    int64_t axis = random_.between(1, static_cast<int64_t>(in.size()) - 1);
    if (in[axis] < 4) return kNoNode;
    int64_t start = random_.below(in[axis] / 2);
    Shape from(in.size(), 0), by(in.size(), 1), extent = in;
    from[axis] = start, extent[axis] = (in[axis] - start) / 2;
    if (random_.chance(30)) by[axis] = 2, extent[axis] = (in[axis] - start) / 2;
    return slice(g(), x, from, by, extent);
  }

  NodeId to_rows(NodeId x) {
    Shape in = shape(x);
    if (random_.chance(30)) return apply("Flatten", {x});
    NodeId flat = reshape(g(), x, {in[0], in[1], element_count(in) / in[0] / in[1]});
    NodeId rows = permute(g(), flat, {0, 2, 1});
    rows_.insert(rows);
    return rows;
  }

  NodeId row_step(NodeId x) {
    NodeId y = row_value(x);
    if (y != kNoNode && shape(y).size() == 3) rows_.insert(y);
    return y;
  }

  NodeId row_value(NodeId x) {
    Shape in = shape(x);
    int64_t c = in.back();
    switch (random_.below(8)) {
    case 0:
    case 1:
    case 2:
      return linear(x, random_.chance(40) ? c : one_of(kChannels));
    case 3:
      return apply("Softmax", {x});
    case 4:
      return apply("LayerNormalization", {x, known({c}, 0.125, 1), known({c}, 0.25)});
    case 5:
      return in.size() == 3 ? attention(x) : kNoNode;
    case 6:
      return activate(x);
    default:
      return residual(x);
    }
  }

  NodeId linear(NodeId x, int64_t outputs) {
    int64_t c = shape(x).back();
    if (element_count(shape(x)) * outputs > options_.max_products) return kNoNode;
    NodeId y = apply("MatMul", {x, known({c, outputs}, 1 / std::sqrt(double(c)))});
    if (y != kNoNode && random_.chance(60)) y = apply("Add", {y, known({outputs}, 0.25)});
    if (y != kNoNode && random_.chance(40)) y = activate(y);
    return y;
  }

  NodeId attention(NodeId x) {
    Shape in = shape(x);
    int64_t rows = in[1], heads = random_.between(1, 2), width = 8;
    int64_t c = heads * width;
    if (in[0] * rows * rows * c > options_.max_products) return kNoNode;
    auto head = [&](std::vector<int64_t> order) {
      NodeId y = linear(x, c);
      if (y == kNoNode) return y;
      return permute(g(), reshape(g(), y, {in[0], rows, heads, width}), order);
    };
    NodeId q = head({0, 2, 1, 3}), k = head({0, 2, 3, 1}), v = head({0, 2, 1, 3});
    if (q == kNoNode || k == kNoNode || v == kNoNode) return kNoNode;
    NodeId scale = constant(g(), DType::F32, {}, 0.25);
    NodeId scores = apply("Mul", {apply("MatMul", {q, k}), scale});
    NodeId y = apply("MatMul", {apply("Softmax", {scores}), v});
    return reshape(g(), permute(g(), y, {0, 2, 1, 3}), {in[0], rows, c});
  }

  // Every value that no other uses, and now and then one that others use.
  void add_outputs() {
    std::vector<bool> used(g().size());
    for (NodeId id : pool_)
      for (NodeId input : live_below(id)) used[input] = true;
    for (NodeId id : pool_)
      if (!used[id] || random_.chance(8) || id == pool_.back())
        g().add_output("y" + std::to_string(g().outputs().size()), id);
  }

  // What `id` is computed from, itself left out.
  std::set<NodeId> live_below(NodeId id) {
    std::set<NodeId> seen;
    std::vector<NodeId> work(g()[id].inputs);
    while (!work.empty()) {
      NodeId n = work.back();
      work.pop_back();
      if (seen.insert(n).second)
        work.insert(work.end(), g()[n].inputs.begin(), g()[n].inputs.end());
    }
    return seen;
  }

  Random random_;
  ModelGraphOptions options_;
  RandomGraph out_;
  std::vector<NodeId> pool_; // newest last
  std::set<NodeId> rows_;    // of rank 3, and with channels last
};

} // namespace

RandomGraph model_graph(uint64_t seed, const ModelGraphOptions& options) {
  return Modeller(seed, options).run();
}

} // namespace svod::test
