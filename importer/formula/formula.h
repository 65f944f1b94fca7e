// Formulas that several operators are made of.
#pragma once

#include "importer/formula/expression.h"
#include "importer/formula/movement.h"

namespace svod::importer {

inline Expr softplus(Expr x) { return maximum(x, 0) + log1p(exp(-absolute(x))); }
Expr gelu(Expr x);      // x/2 (1 + erf(x / sqrt(2)))
Expr gelu_tanh(Expr x); // its approximation by tanh
Expr softmax(Expr x, const std::vector<int64_t>& axes);
// Elementwise function that a fused operator names in an attribute; unsupported()
// otherwise.
Expr activation(NodeImport& node, const std::string& name, Expr x,
                const std::vector<float>& parameters);

// Product of matrices as MatMul defines it, vectors included; invalid() for other shapes.
Expr checked_matmul(NodeImport& node, Expr a, Expr b);

} // namespace svod::importer
