// One kernel of one CPU level as C++ text: the outer loops around its stages, and the
// function that runs it. The layers below it: the stages, what they write, the values of
// expressions, and the place in the loops.
#pragma once

#include "compiler/codegen/stage_emitter.h"

namespace svod::codegen {

// text() is what follows the prelude: scalar functions used, the body, and svod_kernel;
// definitions() all of it but svod_kernel and the functions that are called, which
// add_called() then gives by their names. direct_function() is one for definitions() and
// svod_kernel: a function of this head, which takes the kernel's pointers by themselves.
// One of them is asked for, once.
class KernelEmitter : private StageEmitter {
public:
  // `kernel` with vectors as long as `how` says, which outlive the emitter.
  using StageEmitter::StageEmitter;
  std::string definitions();
  std::string direct_function(const std::string& head);
  void add_called(std::map<std::string, std::string>& to) const {
    to.insert(called_.begin(), called_.end());
  }
  std::string text();
  // Numbers that other kernels may have otherwise are marked (marked_text.h).
  void mark_numbers() { marks_ = true; }

private:
  void emit_body();
  // Blocks of tiles (emit_tiles.cpp).
  void find_tiles();
  int64_t positions_in_block(AxisId axis) const;
  std::vector<int64_t> lengths_in_block(AxisId axis, bool first, bool last) const;
  void emit_blocks_of(size_t depth, const std::string& low, const std::string& high);
  std::vector<int64_t> tile_offsets(const Expr& load, bool panels, bool of_sums) const;
  void emit_tile_step();
  void open_tiles_ahead();
  void emit_tile_products();
  std::string shape_text() const;
  std::string own_functions() const;
  bool is_unrolled(size_t depth) const;
  void emit_outer(size_t depth);
  bool ends_early(AxisId axis) const;
  void emit_run_ends();
  bool has_loop_below(size_t depth) const;
  void unroll_hint_of_outer(size_t depth);
  void emit_range(size_t depth, const std::string& low, const std::string& high,
                  const std::vector<int64_t>& lengths);
  void emit_tiles();

  // The outer loops, and those within a block of tiles.
  std::vector<AxisId> order_;
};

// The same as KernelEmitter::text() of a kernel that is a sequence, by the number of the
// level in its parts' schedules.
std::string sequence_text(const ScheduledKernel& kernel, size_t level);

// The same of kernels that are called by their names (KernelText::direct), with marks
// where the level's code is small.
std::string direct_text(const ScheduledKernel& kernel, const LevelSchedule& how);
std::string direct_sequence_text(const ScheduledKernel& kernel, size_t level);

// The same of kernels for a GPU: svod_kernel takes the kernel's pointers, scratch memory
// and where a fault is told.
std::string gpu_text(const ScheduledKernel& kernel, const LevelSchedule& how);
// Whether 32 bits hold every number that its indices are made of.
bool has_narrow_indices(const ScheduledKernel& kernel);

// "void name" or "i32 name" behind what makes it one function for all that have it.
std::string direct_entry(const ScheduledKernel& kernel);
// Its parameters, without what stands for numbers.
std::string direct_parameters(const ScheduledKernel& kernel);

// Whether the kernel needs what is there for floats that become bytes.
bool makes_bytes(const ScheduledKernel& kernel);

// Whether integers of 32 bits become bytes, or are halves of products.
bool narrows_integers(const ScheduledKernel& kernel);

// Of a parameter of a kernel's body.
std::string pointer_type(const Argument& argument);

} // namespace svod::codegen
