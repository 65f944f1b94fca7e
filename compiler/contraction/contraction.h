// Sums of products, whatever their spelling: convolutions of any kind, products of
// matrices, batched, transposed, with bytes widened on the way.
//
// What goes in is the node of a sum. Read are the loops, one per axis of the product, and
// through which map each operand is read in them (view_map.h). Which axis is which
// follows from the maps alone:
//
//   batch    both operands vary along it (or neither does)
//   rows     only the left operand does
//   columns  only the right operand does
//   reduced  the sum is over it
//   window   a row and a reduced axis that are added up to one coordinate of the operand
//
// An operand that is known when packing is the right one. Of two unknown ones the left
// is the one with windows, else the one whose own axis comes first in the result; one
// that has no axis of its own is the left as well, a matrix of one row. Axes of extent 1
// are none of them.
//
// This is the one place that recognises a sum of products. Algorithms, groups, layouts,
// borders and integer products ask it, so that another spelling of a model's graph
// changes what all of them see, or nothing.
#pragma once

#include "compiler/contraction/view_map.h"

#include <array>
#include <string>

namespace svod {

// A node between the product and the source of an operand, and where the product reads
// it. No map: a view above cannot be composed, or one that cannot be is above it.
struct OperandView {
  NodeId node;
  std::optional<ViewMap> map;
};

struct Operand {
  size_t input = 0; // of the product: 0 or 1
  bool known = false;
  // From the product's input down to the first node that is no view, which is the source.
  // Casts that widen bytes to 32 bits count as views. The first always has a map.
  std::vector<OperandView> views;
  // Some element of the source is read at several positions; at several that differ along
  // axes that the operand varies along, as overlapping windows do.
  bool repeats = false, own_repeats = false;

  NodeId source() const { return views.back().node; }
  const OperandView& deepest() const; // with a map
  // Whether elements differ along an axis of Contraction::axes.
  bool varies(size_t axis) const { return varies_along(*deepest().map, axis); }
};

// The taps of one axis of an operand.
struct AxisWindow {
  size_t operand;       // 0: left, 1: right
  size_t position, tap; // of Contraction::axes
  int64_t stride, dilation;
  int64_t extent;    // of the axis below its pads
  int64_t low, high; // pads that are read
};

// The node of an operand whose axes are still those of the product, in their order: below
// what repeats it, widens it and adds axes of extent 1.
struct OwnAxes {
  NodeId node = kNoNode;
  std::vector<int64_t> axes; // of the product, per axis of the node; -1: extent 1
  bool varies_along(int64_t axis) const;
};

struct Contraction {
  NodeId sum = kNoNode, product = kNoNode;
  DType dtype = DType::F32; // of the products and of the sum
  // The loops: the product's axes, or parts of them where a view splits one.
  Domain axes;
  std::vector<size_t> batch, rows, columns, reduced;
  std::array<Operand, 2> operands; // left, right
  std::vector<AxisWindow> windows;

  const Operand& left() const { return operands[0]; }
  const Operand& right() const { return operands[1]; }
  const Operand& of_input(size_t input) const {
    return operands[operands[0].input == input ? 0 : 1];
  }
  // Whether an element of an operand is a factor of more than one product.
  bool reuses() const { return operands[0].repeats || operands[1].repeats; }
  int64_t terms() const { return count(reduced); } // of one sum
  int64_t count(const std::vector<size_t>& some) const;
};

// The sum of products that `sum` is. nullopt, and why in `refusal`: another node, a sum
// of something else, no elements.
std::optional<Contraction> read_sum_of_products(const Graph& g, NodeId sum,
                                                std::string* refusal = nullptr);
// The same; refused as well where each element of both operands is in one product only,
// so that reading them takes longer than multiplying.
std::optional<Contraction> read_contraction(const Graph& g, NodeId sum,
                                            std::string* refusal = nullptr);
bool is_contraction(const Graph& g, NodeId sum);

// A cast of bytes to 32 bits, or of half precision that is kept: whoever reads them
// widens them as it loads.
bool widens_where_read(const Graph& g, NodeId n);

OwnAxes own_axes(const Graph& g, const Contraction& c, const Operand& operand);
// The product's axis that each axis of a view is, in any order; -1: extent 1. nullopt
// where the view has no map, a border, or an axis that is none of the product's.
std::optional<std::vector<int64_t>> whole_axes(const Graph& g, const Contraction& c,
                                               const OperandView& view);

// One line: element types, extents of each kind of axis, windows. Neighbouring axes that
// both operands walk through as one are printed as one.
std::string print(const Graph& g, const Contraction& c);

} // namespace svod
