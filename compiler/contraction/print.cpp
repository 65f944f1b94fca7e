// A contraction in one line:
//
//   f32 rows 56x56 columns 64 reduced 64x3x3 windows 3 pad 1+1, 3 pad 1+1 by known
//   i32 of u8 and i8 batch 12 rows 128 columns 128 reduced 64
#include "compiler/contraction/contraction.h"
#include "compiler/ir/dtype.h"
#include "compiler/support/join.h"

#include <algorithm>

namespace svod {

namespace {

bool in_window(const Contraction& c, size_t axis) {
  return std::ranges::any_of(c.windows, [axis](const AxisWindow& w) {
    return w.position == axis || w.tap == axis;
  });
}

// Whether a step along `outer` is as many along `inner` as there are, for both operands.
bool walks_as_one(const Contraction& c, size_t outer, size_t inner) {
  if (in_window(c, outer) || in_window(c, inner)) return false;
  const auto joined = [&](const Coordinate& at) {
    return at.steps[outer] == at.steps[inner] * c.axes[inner].extent;
  };
  return std::ranges::all_of(c.operands, [&](const Operand& operand) {
    const ViewMap& map = *operand.deepest().map;
    return std::ranges::all_of(map.at, joined) &&
           std::ranges::all_of(map.guards, joined, &Guard::at);
  });
}

std::string extents_of(const Contraction& c, const std::vector<size_t>& some) {
  Shape extents;
  for (size_t i = 0; i < some.size(); ++i) {
    if (i > 0 && walks_as_one(c, some[i - 1], some[i]))
      extents.back() *= c.axes[some[i]].extent;
    else
      extents.push_back(c.axes[some[i]].extent);
  }
  return join(extents, "x");
}

std::string text_of(const Contraction& c, const AxisWindow& w) {
  std::string out = w.operand == 0 ? " " : " right ";
  out += std::to_string(c.axes[w.tap].extent);
  if (w.stride != 1) out += " stride " + std::to_string(w.stride);
  if (w.dilation != 1) out += " dilation " + std::to_string(w.dilation);
  if (w.low + w.high != 0)
    out += " pad " + std::to_string(w.low) + "+" + std::to_string(w.high);
  return out;
}

} // namespace

std::string print(const Graph& g, const Contraction& c) {
  std::string out(info(c.dtype).text);
  const auto type = [&](const Operand& o) { return info(g[o.source()].dtype).text; };
  if (type(c.left()) != out || type(c.right()) != out)
    out += " of " + std::string(type(c.left())) + " and " + std::string(type(c.right()));
  const std::pair<const char*, const std::vector<size_t>*> kinds[] = {
      {" batch ", &c.batch},
      {" rows ", &c.rows},
      {" columns ", &c.columns},
      {" reduced ", &c.reduced}};
  for (const auto& [name, some] : kinds)
    if (!some->empty()) out += name + extents_of(c, *some);
  for (size_t i = 0; i < c.windows.size(); ++i)
    out += (i == 0 ? " windows" : ",") + text_of(c, c.windows[i]);
  if (c.right().known) out += c.left().known ? " known" : " by known";
  return out;
}

} // namespace svod
