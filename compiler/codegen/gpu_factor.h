// Factors on their way to shared memory: of a tile of products, and of an attention.
#pragma once

#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"
#include "compiler/support/divide.h"

namespace svod::codegen {

// What a factor is filled from and how, and the names of what holds it.
struct GpuEmitter::SharedFactor {
  ExprId value = 0;
  FactorTile how;
  SharedTile tile;
  int64_t positions = 0, steps = 0; // of a block's part
  int threads = 1;                  // that fill it
  bool narrow = false;              // it lies as the number that it is widened from
  // Of an element, of the buffers, of what is in registers on its way.
  std::string element, name, next;

  // Runs of neighbours that the block reads, and how many of those each thread does.
  int64_t runs() const { return positions * steps / how.near; }
  int64_t turns() const { return ceil_div(runs(), threads); }
  std::string run_type() const {
    return how.near == 1 ? element
                         : "Vector<" + element + ", " + std::to_string(how.near) + ">";
  }
  // Whether a run's neighbours are neighbours in shared memory, too.
  bool keeps_runs() const { return tile.by_steps == how.by_steps; }
  // Its buffer, and where in one step `s` of position `p` lies.
  std::string buffer() const { return name + " + buffer * " + text_of(tile.elements); }
  std::string place() const {
    if (tile.swizzled) return of_groups("swizzled_place") + "(p, s)";
    const std::string pitch = text_of(tile.pitch);
    return tile.by_steps ? "p * " + pitch + " + s" : "s * " + pitch + " + p";
  }
  // Names what depends on how groups of warps read it.
  std::string of_groups(const char* function) const {
    return std::string(function) + "<" + (tile.by_steps ? "true" : "false") + ", " +
           text_of(tile.runs) + ", " + element + ">";
  }
  // The type as the preludes of tensor cores name it.
  std::string tag() const {
    return tile.dtype == DType::F32 ? "tf32" : std::string(info(tile.dtype).text);
  }
};

// What a group of warps multiplies by one instruction: a function, and the type of what
// it has begun.
struct GpuEmitter::GroupInstruction {
  std::string name, products;
  DType sum = DType::F32;
  int64_t width = 0;                  // columns
  const SharedFactor* rows = nullptr; // none: halves in registers
  const SharedFactor* columns = nullptr;
};

// Of a tile of products.
struct GpuEmitter::Factor : SharedFactor {
  int64_t extent = 0; // of all positions
  std::string first;  // the block's first position
};

// Of an attention.
struct GpuEmitter::Plane : SharedFactor {
  std::vector<AxisId> step_axes;
  int64_t position_extent = 0, step_extent = 0; // of all
  bool copied = false;                          // shared memory copies it as it lies
  std::string from_position, from_step;         // what is added to those in the tile
};

} // namespace svod::codegen
