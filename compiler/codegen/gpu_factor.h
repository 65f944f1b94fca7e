// What the files of a tile of products share: its factors.
#pragma once

#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"
#include "compiler/support/divide.h"

namespace svod::codegen {

// One factor: how it is filled, and the names of what holds it.
struct GpuEmitter::Factor {
  ExprId value;
  const FactorTile& how;
  SharedTile tile;
  int64_t steps;
  int64_t positions; // of a block's part
  int64_t extent;    // of all
  std::string element, name, first, next;

  // Runs of neighbours that the block reads, and how many of those each thread does.
  int64_t runs(const ProductTile& t) const { return t.steps * positions / how.near; }
  int64_t turns(const ProductTile& t) const { return ceil_div(runs(t), threads_of(t)); }
  // Its buffer, and where in one step `s` of position `p` lies.
  std::string buffer() const { return name + " + buffer * " + text_of(tile.elements); }
  // The type as the preludes of tensor cores name it.
  std::string tag() const {
    return tile.dtype == DType::F32 ? "tf32" : std::string(info(tile.dtype).text);
  }
  // Names what depends on how groups of warps read it.
  std::string of_groups(const char* function) const {
    return std::string(function) + "<" + (tile.by_steps ? "true" : "false") + ", " +
           text_of(steps) + ", " + element + ">";
  }
  std::string place() const {
    if (tile.swizzled) return of_groups("swizzled_place") + "(p, s)";
    const std::string pitch = text_of(tile.pitch);
    return tile.by_steps ? "p * " + pitch + " + s" : "s * " + pitch + " + p";
  }
};

} // namespace svod::codegen
