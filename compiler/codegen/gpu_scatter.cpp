// A scatter by many threads with the bits of one. Each element of the target is one
// thread's, which applies the updates of it in their order, so that the last one wins and
// sums are added up as a loop adds them.
//
// Along axes that are apart (gpu_scatter.h) threads take positions, and each walks what
// is left. Where that leaves most of the GPU idle, all threads of a block, and of several
// blocks, walk the same updates: a tile of places at a time goes to shared memory, and
// each owner applies those whose place has its number as the rest of a division.
#include "compiler/kernel/gpu_scatter.h"

#include "compiler/codegen/element_text.h"
#include "compiler/codegen/gpu_emitter.h"
#include "compiler/codegen/gpu_text.h"

#include <algorithm>

namespace svod::codegen {

// What numbers the updates of a position: it has 32 bits where that is enough.
static std::string step_type(int64_t steps) {
  return steps <= UINT32_MAX ? "u32" : "u64";
}

// Names the axes of the update with this number, and gives the text of its place.
std::string GpuEmitter::place_of_update(const std::string& number) {
  name_axes(axes_in_order(k_, gpu_), number);
  const Index place = scatter_target(k_, axes_taken_apart(gpu_)).place;
  return index_text(place, Point(counts_.size(), 0), false);
}

// Applies the update whose axes are named to the element at `place`.
void GpuEmitter::emit_update(const std::string& place) {
  const Stage& s = *whole_scatter(k_);
  const ScatterTarget target = scatter_target(k_, axes_taken_apart(gpu_));
  const Point p(counts_.size(), 0);
  const std::string at =
      "a" + std::to_string(s.argument) + "[" + index_text(target.base, p, false) + " + " +
      place + (target.stride == 1 ? "" : " * " + std::to_string(target.stride)) + "]";
  std::string value = eval(s.value, p).name;
  if (s.combiner != 0) value = combined(s, at, value);
  line(at + " = " + to_store(s.dtype, value) + ";");
}

// Where a batch of updates goes is read before the first of them is applied.
void GpuEmitter::emit_batch(const std::string& first, int64_t count) {
  const std::string each = "for (u32 i = 0; i < " + text_of(count) + "; ++i)",
                    number = count == 1 ? first : "(" + first + " + i)";
  line("iptr places[" + std::to_string(count) + "];");
  line(kUnrolled);
  open(each);
  line("places[i] = " + place_of_update(number) + ";");
  close();
  line(kUnrolled);
  open(each);
  name_axes(axes_in_order(k_, gpu_), number);
  emit_update("places[i]");
  close();
}

void GpuEmitter::emit_scatter_positions() {
  const int64_t steps = positions_along(k_, axes_in_order(k_, gpu_)),
                whole = steps / kScatterBatch * kScatterBatch;
  line("const u32 number = block_number() * " + text_of(gpu_.threads) +
       " + thread_number();");
  open("if (number < " + text_of(positions_along(k_, gpu_.positions)) + ")");
  name_axes(gpu_.positions, "number");
  if (whole != 0) {
    open("for (" + step_type(steps) + " first = 0; first < " + text_of(whole) +
         "; first += " + text_of(kScatterBatch) + ")");
    emit_batch("first", kScatterBatch);
    close();
  }
  if (whole != steps) {
    open("");
    emit_batch(text_of(whole), steps - whole);
    close();
  }
  close();
}

// The places of a tile of updates, which all threads of the block fill.
void GpuEmitter::emit_tile_of_places(int64_t steps) {
  line(kUnrolled);
  open("for (u32 n = thread; n < " + text_of(kScatterTile) +
       "; n += " + text_of(gpu_.threads) + ")");
  line("places[n] = 0;");
  const bool whole = steps % kScatterTile == 0;
  if (!whole) open("if (first + n < " + text_of(steps) + ")");
  line("places[n] = " + place_of_update("(first + n)") + ";");
  if (!whole) close();
  close();
}

// The updates of a tile that the thread owns, in their order. Those of a warp's threads
// are applied side by side: each has found the next of its own by then.
void GpuEmitter::emit_owned_updates() {
  const ScatterShare& share = gpu_.scatter;
  const int64_t slices = positions_along(k_, share.slices);
  open("for (u32 group = 0; group < count; group += kOwnedAtOnce)");
  line("u32 mine = owned<" + text_of(share.owners * gpu_.threads / share.beside) +
       ">(places + group, count - group, owner);");
  open("while (mine != 0)");
  line("const u32 n = group + take_lowest(mine);");
  line("const iptr place = places[n];");
  name_axes(axes_in_order(k_, gpu_), "(first + n)");
  if (slices > 1) {
    open("for (u32 slice = lane; slice < " + text_of(slices) +
         "; slice += " + text_of(share.beside) + ")");
    name_axes(share.slices, "slice");
  }
  emit_update("place");
  if (slices > 1) close();
  close();
  close();
}

// Names the owner that the thread is. Where there are fewer places than owners, those
// that follow each other are of different warps, which apply updates at the same time.
void GpuEmitter::name_owner() {
  const ScatterShare& share = gpu_.scatter;
  const int64_t owners = int64_t{share.owners} * gpu_.threads / share.beside,
                of_warp = std::clamp<int64_t>(kWarpThreads / share.beside, 1, owners);
  const std::string number = "(block_number() % " + text_of(share.owners) + " * " +
                             text_of(gpu_.threads) + " + thread) / " +
                             text_of(share.beside);
  const bool spread = scatter_target(k_, axes_taken_apart(gpu_)).places < owners;
  if (!spread) return line("const u32 owner = " + number + ";");
  line("const u32 number = " + number + ";");
  line("const u32 owner = number % " + text_of(of_warp) + " * " +
       text_of(owners / of_warp) + " + number / " + text_of(of_warp) + ";");
}

void GpuEmitter::emit_scatter_owners() {
  const ScatterShare& share = gpu_.scatter;
  const int64_t steps = positions_along(k_, axes_in_order(k_, gpu_));
  shared("places", "iptr", text_of(kScatterTile));
  line("const u32 thread = thread_number();");
  if (!share.slices.empty())
    line("const u32 lane = thread % " + text_of(share.beside) + ";");
  line("const u32 position = block_number() / " + text_of(share.owners) + ";");
  name_owner();
  name_axes(gpu_.positions, "position");
  open("for (" + step_type(steps) + " first = 0; first < " + text_of(steps) +
       "; first += " + text_of(kScatterTile) + ")");
  line("const u32 left = u32(" + text_of(steps) + " - first);");
  line("const u32 count = left < " + text_of(kScatterTile) +
       " ? left : " + text_of(kScatterTile) + ";");
  emit_tile_of_places(steps);
  line("wait_for_block();");
  emit_owned_updates();
  line("wait_for_block();");
  close();
}

void GpuEmitter::emit_scatter_kernel() {
  gpu_.scatter.owners == 0 ? emit_scatter_positions() : emit_scatter_owners();
}

} // namespace svod::codegen
