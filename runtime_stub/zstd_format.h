// Weights as a program packed with --weights=zstd stores them: this header, the places of
// the frames, then the frames, each what zstd made of one block of the section. Blocks
// know nothing of each other, so that any thread can expand any of them.
#ifndef SVOD_ZSTD_FORMAT_H
#define SVOD_ZSTD_FORMAT_H

#include "runtime_stub/types.h"

struct SvodZstdHeader {
  uint8_t magic[8];      // "SVODZST", 0
  uint64_t weight_bytes; // expanded, as in the header of the image
  uint64_t block_bytes;  // expanded; the last block may be shorter
  uint64_t blocks;
  // blocks + 1 offsets from the start of this header follow, uint64_t: of each frame, and
  // of the end.
};

#ifdef __cplusplus
static_assert(sizeof(SvodZstdHeader) == 32, "layout change: programs hold their own");
#endif

#endif
