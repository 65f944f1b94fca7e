// Weights of nine bits as signed bytes. Bytes minus a zero point that is not in the
// middle of their range lie a little outside of what a signed byte holds, and as
// quantisation is made for the largest number, mostly one or two of them do. So each is
// the nearest signed byte, and what is left, which is nearly always 0, is a tensor
// beside.
#pragma once

#include "compiler/ir/evaluate.h"

namespace svod::rewrite {

struct ByteWeights {
  Tensor bytes; // I8, saturated
  Tensor rest;  // I32: what the bytes lack; no shape and no bytes where they lack nothing
};

// nullopt: I32 values that two bytes do not hold.
std::optional<ByteWeights> byte_weights(const Tensor& values);

// Bytes and rest as pairs along a last axis of two.
Tensor pairs_of(const ByteWeights& weights);

// The coordinates along `axes`, each once and in order, at which any I32 value is not 0.
// nullopt: more than `most` of them.
std::optional<std::vector<Shape>> where_not_zero(const Tensor& values,
                                                 const Payload& axes, size_t most);

} // namespace svod::rewrite
