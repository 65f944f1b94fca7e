// Support vector machines: a kernel of every row with every support vector, then products
// with known coefficients. Two classes are parted by the sign of one product per pair of
// classes; who wins most pairs is the answer.
#include "importer/rules/ml/features.h"
#include "importer/rules/ml/post_transform.h"
#include "importer/text/strings.h"

#include <algorithm>

namespace svod::importer {
namespace {

// Pairwise probabilities settle within four rounds at the tolerance of the original
// (0.005 per class); further ones change nothing.
constexpr int kRounds = 6;
constexpr int64_t kMostClasses = 64;

Expr known_numbers(Expr x, const std::vector<float>& values, Shape shape) {
  return convert({x.g, tensor_f32(*x.g, std::move(shape), values)}, x.dtype());
}

// [rows, vectors]: the kernel function of each row with each support vector.
Expr kernels(NodeImport& node, Expr x, int64_t vectors) {
  std::vector<float> support = node.get_floats("support_vectors"),
                     given = node.get_floats("kernel_params");
  int64_t rows = extent(x, 0), width = extent(x, 1);
  require(node, static_cast<int64_t>(support.size()) == vectors * width,
          "the support vectors do not fit the features");
  require(node, given.empty() || given.size() == 3,
          "kernel_params are gamma, coef0 and degree");
  double gamma = given.empty() ? 0 : given[0], offset = given.empty() ? 0 : given[1],
         degree = given.empty() ? 3 : given[2];
  std::string type = node.get_string("kernel_type");
  Expr v = known_numbers(x, support, {vectors, width});
  if (type == "RBF") {
    Shape all{rows, vectors, width};
    Expr apart = broadcast(unsqueeze(x, 1), all) - broadcast(unsqueeze(v, 0), all);
    return exp(squeeze(sum(apart * apart, {2}), 2) * -gamma);
  }
  Expr product = matmul(x, permute(v, {1, 0}));
  if (type == "LINEAR") return product;
  if (type == "POLY") return power(product * gamma + offset, degree);
  if (type == "SIGMOID") return tanh(product * gamma + offset);
  node.invalid("kernel_type '" + type + "' is not in the specification");
}

struct Machine {
  int64_t classes = 0, vectors = 0;
  std::vector<int64_t> count, start; // of each class' support vectors
  std::vector<float> coefficients, rho;
};

// One score per pair of classes, (0,1) (0,2) .. (1,2) ..: above 0 the first one wins.
Expr pair_scores(NodeImport& node, const Machine& m, Expr x) {
  std::vector<float> factors;
  int64_t pairs = m.classes * (m.classes - 1) / 2;
  require(node,
          static_cast<int64_t>(m.coefficients.size()) == (m.classes - 1) * m.vectors &&
              static_cast<int64_t>(m.rho.size()) >= pairs,
          "coefficients or rho do not fit the support vectors");
  for (int64_t i = 0; i < m.classes; ++i)
    for (int64_t j = i + 1; j < m.classes; ++j) {
      std::vector<float> row(static_cast<size_t>(m.vectors));
      auto copy = [&](int64_t of, int64_t list) {
        auto from = m.coefficients.begin() + list * m.vectors + m.start[of];
        std::copy(from, from + m.count[of], row.begin() + m.start[of]);
      };
      copy(i, j - 1);
      copy(j, i);
      factors.insert(factors.end(), row.begin(), row.end());
    }
  Expr weights = known_numbers(x, factors, {pairs, m.vectors});
  std::vector<float> rho(m.rho.begin(), m.rho.begin() + pairs);
  return matmul(kernels(node, x, m.vectors), permute(weights, {1, 0})) +
         known_numbers(x, rho, {pairs});
}

// How many pairs each class wins, [rows, classes].
Expr votes(const Machine& m, Expr scores) {
  std::vector<Expr> wins(static_cast<size_t>(m.classes), like(cut(scores, 1, 0, 1), 0));
  int64_t pair = 0;
  for (int64_t i = 0; i < m.classes; ++i)
    for (int64_t j = i + 1; j < m.classes; ++j) {
      Expr first = convert(less(0, cut(scores, 1, pair++, 1)), scores.dtype());
      wins[i] = wins[i] + first;
      wins[j] = wins[j] + (1.0 - first);
    }
  return join(wins, 1);
}

// [rows, classes, classes]: how likely i is against j; 0 on the diagonal.
Expr pairwise(NodeImport& node, const Machine& m, Expr scores) {
  std::vector<float> a = node.get_floats("prob_a"), b = node.get_floats("prob_b");
  auto pairs = static_cast<size_t>(extent(scores, 1));
  require(node, a.size() >= pairs && b.size() >= pairs,
          "prob_a and prob_b need an entry for each pair of classes");
  Expr none = like(cut(scores, 1, 0, 1), 0);
  auto n = static_cast<size_t>(m.classes);
  std::vector<Expr> cells(n * n, none);
  size_t pair = 0;
  for (size_t i = 0; i < n; ++i)
    for (size_t j = i + 1; j < n; ++j, ++pair) {
      Expr s = cut(scores, 1, static_cast<int64_t>(pair), 1);
      Expr p =
          clamp(1.0 - sigmoid(s * double(a[pair]) + double(b[pair])), 1e-7, 1 - 1e-7);
      cells[i * n + j] = p;
      cells[j * n + i] = 1.0 - p;
    }
  return reshape(join(cells, 1), {extent(scores, 0), m.classes, m.classes});
}

// Probabilities of classes from those of pairs: Wu, Lin and Weng, "Probability Estimates
// for Multi-class Classification by Pairwise Coupling" (2004), their second method. It
// stops where every entry of Q p is near p Q p; a row that is there stays as it is.
Expr coupled(Expr r, int64_t classes) {
  int64_t rows = extent(r, 0);
  Shape square{rows, classes, classes}, row{rows, classes};
  Graph& g = *r.g;
  Expr eye = equal(counter(g, DType::I64, square, 1), counter(g, DType::I64, square, 2));
  Expr diagonal = broadcast(sum(r * r, {1}), square);
  Expr q = select(eye, diagonal, -(r * permute(r, {0, 2, 1})));
  Expr p{&g, constant(g, r.dtype(), row, 1.0 / double(classes))};
  for (int round = 0; round < kRounds; ++round) {
    Expr qp = squeeze(sum(q * broadcast(unsqueeze(p, 1), square), {2}), 2);
    Expr pqp = sum(p * qp, {1}), next = p;
    Expr far = reduce(Op::ReduceMax, absolute(qp - pqp), {1});
    for (int64_t t = 0; t < classes; ++t) {
      Expr line = squeeze(cut(q, 1, t, 1), 1), own = cut(line, 1, t, 1),
           mine = cut(qp, 1, t, 1), d = (pqp - mine) / own, scale = 1.0 + d;
      Expr here = convert(equal(counter(g, DType::I64, row, 1), double(t)), r.dtype());
      next = (next + d * here) / scale;
      pqp = (pqp + d * (d * own + mine * 2.0)) / (scale * scale);
      qp = (qp + d * line) / scale;
    }
    p = select(less(far, 0.005 / double(classes)), p, next);
  }
  return p;
}

Machine read_machine(NodeImport& node, int64_t classes) {
  Machine m;
  m.classes = classes;
  m.coefficients = node.get_floats("coefficients");
  m.rho = node.get_floats("rho");
  m.count = node.get_ints("vectors_per_class");
  for (int64_t count : m.count) {
    m.start.push_back(m.vectors);
    m.vectors += within_reach(node, count, "support vectors");
  }
  require(node, !m.rho.empty(), "rho is missing");
  return m;
}

// One score per class and no support vectors.
Expr linear_scores(NodeImport& node, const Machine& m, Expr x) {
  require(node, static_cast<int64_t>(m.coefficients.size()) == m.classes * extent(x, 1),
          "the coefficients do not fit the features");
  Expr w = known_numbers(x, m.coefficients, {m.classes, extent(x, 1)});
  return matmul(x, permute(w, {1, 0})) + double(m.rho[0]);
}

void give_winner(NodeImport& node, Expr scores, const std::vector<int64_t>& labels) {
  Expr best{&node.g, arg_reduce(node.g, Op::ArgMax, scores.id, 1, false)};
  Expr names{&node.g, tensor_i64(node.g, {static_cast<int64_t>(labels.size())}, labels)};
  give_label(node, take(names, 0, squeeze(best, 1)));
}

} // namespace

void import_svm_classifier(NodeImport& node) {
  std::vector<int64_t> labels = class_labels(node, "classlabels_ints");
  auto classes = static_cast<int64_t>(labels.size());
  if (classes < 2) node.unsupported("a classifier of one class");
  if (classes > kMostClasses) node.unsupported("more than 64 classes");
  Machine m = read_machine(node, classes);
  Expr x = feature_matrix(node);
  std::string transform = node.get_string("post_transform");
  Expr scores = m.vectors == 0 ? linear_scores(node, m, x) : Expr{nullptr, kNoNode};
  if (m.vectors == 0) {
    give_winner(node, scores, labels);
  } else {
    require(node, m.count.size() == labels.size(),
            "vectors_per_class needs one entry per class");
    scores = pair_scores(node, m, x);
    give_winner(node, votes(m, scores), labels);
    if (node.has("prob_a")) {
      scores = coupled(pairwise(node, m, scores), classes);
    } else if (classes == 2) {
      // One score becomes two, as ONNX Runtime does it: the specification is silent.
      if (transform == "PROBIT") node.unsupported("PROBIT of one score for two classes");
      bool negates = transform == "NONE" || transform == "LOGISTIC";
      scores = join({negates ? -scores : 1.0 - scores, scores}, 1);
      if (transform != "LOGISTIC") transform = "NONE";
    }
  }
  if (node.wants_output(1))
    give(node, 1, convert(post_transform(node, scores, transform), DType::F32));
}

void import_svm_regressor(NodeImport& node) {
  Expr x = feature_matrix(node);
  std::vector<float> coefficients = node.get_floats("coefficients"),
                     rho = node.get_floats("rho");
  int64_t vectors = within_reach(node, node.get_int("n_supports"), "support vectors");
  auto count = static_cast<int64_t>(coefficients.size());
  require(node, !rho.empty(), "rho is missing");
  require(node, count == (vectors > 0 ? vectors : extent(x, 1)),
          "the coefficients do not fit the support vectors");
  Expr terms = vectors > 0 ? kernels(node, x, vectors) : x;
  Expr y = matmul(terms, known_numbers(x, coefficients, {count, 1})) + double(rho[0]);
  if (node.get_int("one_class") != 0)
    y = select(less(0, y), like(y, 1), like(y, -1));
  else
    y = post_transform(node, y, node.get_string("post_transform"));
  give(node, 0, convert(y, DType::F32));
}

} // namespace svod::importer
