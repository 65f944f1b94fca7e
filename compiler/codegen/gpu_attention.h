// A factor of an attention on its way to shared memory.
#pragma once

#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"
#include "compiler/support/divide.h"

namespace svod::codegen {

struct GpuEmitter::Plane : AttentionPlane {
  std::string name, element, next;      // of its buffers, of an element, of registers
  std::string from_position, from_step; // what is added to those in the tile
  int threads = 1;

  int64_t runs() const { return positions * steps / how.near; }
  int64_t turns() const { return ceil_div(runs(), threads); }
  // Its buffer, and where in one step `s` of position `p` lies.
  std::string buffer() const { return name + " + buffer * " + text_of(tile.elements); }
  std::string place() const {
    const std::string pitch = text_of(tile.pitch);
    return tile.by_steps ? "p * " + pitch + " + s" : "s * " + pitch + " + p";
  }
};

} // namespace svod::codegen
