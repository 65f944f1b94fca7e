// Derivatives against differences of the evaluator's own values, and the node Gradient.
#include "compiler/ir/build.h"
#include "importer/formula/gradient.h"
#include "tests/support/import_model.h"

#include <functional>

using namespace svod;
using namespace svod::import_test;

namespace {

using Make = std::function<NodeId(Graph&, NodeId)>;

// The derivative of sum(weights * f(x)), beside (f(x + h) - f(x - h)) / 2h.
void check_gradient(const Make& make, Shape shape, std::vector<float> x) {
  Graph g;
  const NodeId input = g.add_input("x", DType::F64, shape);
  const NodeId value = make(g, input);
  // Different weights, so that places that are mixed up show.
  NodeId weights = iota(g, DType::F64, {element_count(g[value].shape)}, 0);
  weights = map(g, Op::Add, {weights, constant(g, DType::F64, g[weights].shape, 1)});
  const NodeId y = map(g, Op::Mul, {value, reshape(g, weights, g[value].shape)});
  std::string failure;
  const std::vector<NodeId> results = gradients(g, y, {input}, failure);
  INFO(failure);
  REQUIRE(results.size() == 1);
  REQUIRE(g[results[0]].shape == shape);
  g.add_output("y", y);
  g.add_output("dx", results[0]);
  const auto run = [&](const std::vector<double>& at) {
    Tensor tensor{DType::F64, shape, std::vector<std::byte>(at.size() * 8)};
    std::memcpy(tensor.bytes.data(), at.data(), tensor.bytes.size());
    std::vector<std::vector<double>> outputs;
    const Evaluated result = evaluate(g, {tensor});
    for (const Tensor& out : result.outputs) {
      outputs.emplace_back(out.bytes.size() / 8);
      std::memcpy(outputs.back().data(), out.bytes.data(), out.bytes.size());
    }
    return outputs;
  };
  const auto total = [&](const std::vector<double>& at) {
    double sum = 0;
    const std::vector<double> values = run(at)[0];
    for (double each : values) sum += each;
    return sum;
  };
  const std::vector<double> at(x.begin(), x.end());
  const std::vector<double> got = run(at)[1];
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<double> up = at, down = at;
    up[i] += 1e-5;
    down[i] -= 1e-5;
    CHECK(got[i] == Approx((total(up) - total(down)) / 2e-5).epsilon(1e-5).margin(1e-5));
  }
}

const std::vector<float> kSix = {0.3f, 0.7f, 0.2f, 0.9f, 0.5f, 0.6f};

} // namespace

TEST_CASE("the derivative of each smooth function", "[gradient]") {
  for (Op op :
       {Op::Neg,  Op::Abs,  Op::Sqrt,  Op::Reciprocal, Op::Exp,  Op::Log,    Op::Log1p,
        Op::Sin,  Op::Cos,  Op::Tan,   Op::Asin,       Op::Acos, Op::Atan,   Op::Sinh,
        Op::Cosh, Op::Tanh, Op::Asinh, Op::Atanh,      Op::Erf,  Op::Sigmoid}) {
    INFO(info(op).text);
    check_gradient([&](Graph& g, NodeId x) { return map(g, op, {x}); }, {6}, kSix);
  }
  check_gradient(
      [](Graph& g, NodeId x) {
        const NodeId two = constant(g, DType::F64, {6}, 2);
        return map(g, Op::Acosh, {map(g, Op::Add, {x, two})});
      },
      {6}, kSix);
  for (Op op :
       {Op::Add, Op::Sub, Op::Mul, Op::Div, Op::Pow, Op::Min, Op::Max, Op::Atan2}) {
    INFO(info(op).text);
    check_gradient(
        [&](Graph& g, NodeId x) {
          return map(g, op, {slice_axis(g, x, 0, 0, 3), slice_axis(g, x, 0, 3, 3)});
        },
        {6}, kSix);
  }
}

TEST_CASE("derivatives go back through views, sums and indices", "[gradient]") {
  const auto squared = [](Graph& g, NodeId x) { return map(g, Op::Mul, {x, x}); };
  const std::vector<Make> makes = {
      [](Graph& g, NodeId x) { return permute(g, x, {1, 0}); },
      [](Graph& g, NodeId x) { return reshape(g, x, {3, 2}); },
      [](Graph& g, NodeId x) { return slice(g, x, {1, 2}, {1, -1}, {1, 2}); },
      [](Graph& g, NodeId x) { return pad(g, x, {1, 0}, {0, 2}, 4); },
      [](Graph& g, NodeId x) { return window(g, x, 1, 2, 1, 1); },
      [](Graph& g, NodeId x) { return window(g, reshape(g, x, {1, 6}), 1, 2, 3, 2); },
      [](Graph& g, NodeId x) { return concat(g, {x, x}, 1); },
      [](Graph& g, NodeId x) { return broadcast_to(g, x, {2, 2, 3}); },
      [](Graph& g, NodeId x) { return reduce(g, Op::ReduceSum, x, {1}); },
      [](Graph& g, NodeId x) { return reduce(g, Op::ReduceMax, x, {1}); },
      [](Graph& g, NodeId x) { return matmul(g, x, permute(g, x, {1, 0})); },
      [](Graph& g, NodeId x) {
        const int64_t at[] = {1, 1, 0, 0, 1, 1};
        return gather(g, x, tensor_i64(g, {2, 3}, at), 0);
      },
  };
  for (size_t i = 0; i < makes.size(); ++i) {
    INFO("view " << i);
    check_gradient([&](Graph& g, NodeId x) { return squared(g, makes[i](g, x)); }, {2, 3},
                   kSix);
  }
}

TEST_CASE("the node Gradient names values around it", "[gradient]") {
  const auto strings = [](const std::string& name,
                          const std::vector<std::string>& words) {
    return data(1, name) + list(9, words) + number(20, 8);
  };
  const std::string of_y = data(1, "y") + data(4, "p") + number(20, 3);
  const auto with_gradient = [&](const std::vector<std::string>& xs,
                                 const std::vector<std::string>& inputs) {
    return model({{node("Mul", {"x", "x"}, {"s"}), node("Mul", {"s", "x"}, {"p"}),
                   node("Gradient", inputs, {"y"}, {strings("xs", xs), of_y},
                        "ai.onnx.preview.training")},
                  kX,
                  kY,
                  {}},
                 12, opset("ai.onnx.preview.training", 1));
  };
  CHECK(run(with_gradient({"x"}, {"x"})) == std::vector<float>{3, 12, 27, 48});
  CHECK(run(with_gradient({"s"}, {"s"})) == std::vector<float>{1, -2, 3, -4});
  refused(with_gradient({"x"}, {"s"}), Exit::Unsupported, "its inputs are other values");
  refused(with_gradient({"q"}, {"x"}), Exit::InvalidModel, "nothing makes 'q'");
  Graph g;
  const NodeId x = g.add_input("x", DType::F32, {4});
  std::string failure;
  CHECK(gradients(g, scan(g, Op::ScanProd, x, 0), {x}, failure).empty());
  CHECK(failure.find("scan_product") != std::string::npos);
}
