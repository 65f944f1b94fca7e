// Weights as --weights=expand stores them: tensors in a small form, and the steps that
// make of them what kernels read. A job is some steps behind each other; jobs know
// nothing of each other, so that any thread can do any of them.
//
//   header | jobs | steps | numbers | tensors
#ifndef SVOD_EXPANSION_FORMAT_H
#define SVOD_EXPANSION_FORMAT_H

#include "runtime_stub/types.h"

struct SvodExpansionHeader {
  uint8_t magic[8];      // "SVODEXP", 0
  uint64_t checksum;     // svod_checksum of all that follows but the tensors
  uint64_t weight_bytes; // expanded, as in the header of the image
  uint64_t room_bytes;   // memory beside the weights that a job needs: the most of any
  uint64_t tensors;      // where they begin, in bytes from the start of this header
  uint32_t jobs, steps, numbers; // how many there are
  uint32_t reserved;
};

struct SvodExpansionJob {
  uint32_t first_step, step_count;
  uint64_t entries; // of the image that read what it makes, one bit each
};

enum SvodExpansionKind {
  // The result, dense, is operand a read with strides. Numbers: the element of a that
  // position 0 reads, which a limit may leave out; of each axis extent and stride; of
  // each
  // limit constant, low, high, and a coefficient for each axis. Where low <= constant +
  // sum of position * coefficient < high fails, the result is `fill`.
  SVOD_EXPANSION_COPY = 1,
  // f32: the result is a sum of products, which are rounded as f32 and added as f64, as
  // the packer does. Numbers of each axis: extent, strides of both operands and of the
  // result. The first `kept` axes are those of the result, the others are summed over in
  // their order. Axis number `row` is walked innermost.
  SVOD_EXPANSION_SUM = 2,
};

enum SvodExpansionPlace {
  SVOD_EXPANSION_TENSORS = 0, // what is stored; never a result
  SVOD_EXPANSION_ROOM = 1,
  SVOD_EXPANSION_WEIGHTS = 2, // a result only
};

struct SvodExpansionOperand {
  uint64_t place;
  uint64_t offset; // bytes; of a sum, and of a result, where position 0 lies
};

struct SvodExpansionStep {
  uint32_t kind;
  uint32_t element_bytes; // 1, 2, 4, 8
  uint32_t axes, limits;
  uint32_t kept, row;
  uint32_t first_number; // in numbers, int64_t
  uint32_t reserved;
  uint64_t fill; // the bits of an element
  struct SvodExpansionOperand result, a, b;
};

#define SVOD_EXPANSION_AXES 16
#define SVOD_EXPANSION_ALIGN 64u // of tensors, and where they begin

#ifdef __cplusplus
static_assert(sizeof(SvodExpansionHeader) == 56,
              "layout change: programs hold their own");
static_assert(sizeof(SvodExpansionJob) == 16, "layout change: programs hold their own");
static_assert(sizeof(SvodExpansionStep) == 88, "layout change: programs hold their own");
#endif

#endif
