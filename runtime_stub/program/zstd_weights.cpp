// Weights of --weights=zstd. Each block of them is a frame of its own. What zstd works
// with is memory of ours, so nothing is allocated within. Everything about the frames
// that zstd does not check is checked before the first one is read.
#include "runtime_stub/platform.h"
#include "runtime_stub/program/make_weights.h"
#include "runtime_stub/zstd_format.h"

// Of zstd.h, which is joined into the decoder's one source. A result above the error
// limit is a code of an error, as it is for a size that was asked for.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" {
size_t ZSTD_estimateDCtxSize(void);
void* ZSTD_initStaticDCtx(void* workspace, size_t bytes);
size_t ZSTD_decompressDCtx(void* context, void* to, size_t room, const void* from,
                           size_t bytes);
}
// NOLINTEND(readability-identifier-naming)

namespace packed {

namespace {

const SvodZstdHeader& header_of(const WeightMaking& all) {
  return *reinterpret_cast<const SvodZstdHeader*>(all.stored);
}

// Of the frames, one more than there are.
const uint64_t* places_of(const WeightMaking& all) {
  return reinterpret_cast<const uint64_t*>(&header_of(all) + 1);
}

uint64_t begin_of(const WeightMaking& all, uint64_t block) {
  const uint64_t begin = block * header_of(all).block_bytes;
  return begin < all.weight_bytes ? begin : all.weight_bytes;
}

} // namespace

// The header fits the image, and the frames lie one behind the other.
bool open_stored(WeightMaking& all) {
  constexpr uint64_t kMostBlocks = 1u << 24;
  const SvodZstdHeader& header = header_of(all);
  if (all.bytes < sizeof(header) ||
      memcmp(header.magic, "SVODZST", sizeof(header.magic)) != 0)
    return false;
  if (header.weight_bytes != all.weight_bytes || header.block_bytes == 0 ||
      header.blocks > kMostBlocks)
    return false;
  const uint64_t* places = places_of(all);
  const uint64_t blocks = (all.weight_bytes - 1) / header.block_bytes + 1;
  const uint64_t frames = sizeof(header) + (header.blocks + 1) * sizeof(uint64_t);
  if (header.blocks != blocks || frames > all.bytes || places[0] != frames) return false;
  for (uint64_t i = 0; i < blocks; i++)
    if (places[i] > places[i + 1]) return false;
  all.parts = static_cast<uint32_t>(blocks);
  all.workspace_bytes = ZSTD_estimateDCtxSize();
  return places[blocks] <= all.bytes;
}

bool make_part(const WeightMaking& all, uint32_t part, uint8_t* workspace) {
  const uint64_t* places = places_of(all);
  const uint64_t begin = begin_of(all, part);
  const uint64_t wanted = begin_of(all, uint64_t{part} + 1) - begin;
  const uint64_t from = places[part], size = places[part + 1] - from;
  void* zstd = ZSTD_initStaticDCtx(workspace, static_cast<size_t>(all.workspace_bytes));
  return zstd != nullptr &&
         ZSTD_decompressDCtx(zstd, all.weights + begin, static_cast<size_t>(wanted),
                             all.stored + from, static_cast<size_t>(size)) == wanted;
}

void print_zstd_licence(Printer& out) {
  out << "decoder of zstd, which expands the weights:\n"
         "  Copyright (c) Meta Platforms, Inc. and affiliates. All rights reserved.\n"
         "  Redistribution and use in source and binary forms, with or without\n"
         "  modification, are permitted provided that the following conditions are met:\n"
         "  * Redistributions of source code must retain the above copyright notice, "
         "this\n    list of conditions and the following disclaimer.\n"
         "  * Redistributions in binary form must reproduce the above copyright notice,\n"
         "    this list of conditions and the following disclaimer in the documentation\n"
         "    and/or other materials provided with the distribution.\n"
         "  * Neither the name Facebook, nor Meta, nor the names of its contributors may "
         "be\n    used to endorse or promote products derived from this software "
         "without\n"
         "    specific prior written permission.\n"
         "  THIS SOFTWARE IS PROVIDED BY THE COPYRIGHT HOLDERS AND CONTRIBUTORS \"AS "
         "IS\" "
         "AND\n  ANY EXPRESS OR IMPLIED WARRANTIES, INCLUDING, BUT NOT LIMITED TO, THE "
         "IMPLIED\n  WARRANTIES OF MERCHANTABILITY AND FITNESS FOR A PARTICULAR PURPOSE "
         "ARE\n  DISCLAIMED. IN NO EVENT SHALL THE COPYRIGHT HOLDER OR CONTRIBUTORS BE "
         "LIABLE FOR\n  ANY DIRECT, INDIRECT, INCIDENTAL, SPECIAL, EXEMPLARY, OR "
         "CONSEQUENTIAL DAMAGES\n  (INCLUDING, BUT NOT LIMITED TO, PROCUREMENT OF "
         "SUBSTITUTE GOODS OR SERVICES; LOSS\n  OF USE, DATA, OR PROFITS; OR BUSINESS "
         "INTERRUPTION) HOWEVER CAUSED AND ON ANY\n  THEORY OF LIABILITY, WHETHER IN "
         "CONTRACT, STRICT LIABILITY, OR TORT (INCLUDING\n  NEGLIGENCE OR OTHERWISE) "
         "ARISING IN ANY WAY OUT OF THE USE OF THIS SOFTWARE,\n  EVEN IF ADVISED OF THE "
         "POSSIBILITY OF SUCH DAMAGE.\n";
}

} // namespace packed
