// Each block of the weights is a frame of its own. Threads take blocks as they take
// chunks of a kernel, from a pool that ends with the last block: a run may want another
// number of threads. What zstd works with is memory of ours, so nothing is allocated
// within. Everything about the frames that zstd does not check is checked before the
// first one is read.
#include "runtime_stub/program/expand_weights.h"

#include "runtime_stub/platform.h"
#include "runtime_stub/program/tensor.h"
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

struct Expansion {
  const uint8_t* stored;
  const SvodZstdHeader* header;
  const uint64_t* places; // blocks + 1
  uint8_t* weights;
  uint8_t* workspaces; // one for each thread
  uint64_t workspace_bytes;
  uint32_t damaged; // 1 + the number of such a block; 0: none
};

uint64_t begin_of(const Expansion& all, uint64_t block) {
  const uint64_t begin = block * all.header->block_bytes;
  return begin < all.header->weight_bytes ? begin : all.header->weight_bytes;
}

void expand_block(void* context, uint32_t block, uint32_t thread) {
  Expansion& all = *static_cast<Expansion*>(context);
  const uint64_t begin = begin_of(all, block);
  const uint64_t wanted = begin_of(all, uint64_t{block} + 1) - begin;
  const uint64_t from = all.places[block], size = all.places[block + 1] - from;
  void* zstd = ZSTD_initStaticDCtx(all.workspaces + thread * all.workspace_bytes,
                                   static_cast<size_t>(all.workspace_bytes));
  const size_t got =
      zstd == nullptr
          ? 0
          : ZSTD_decompressDCtx(zstd, all.weights + begin, static_cast<size_t>(wanted),
                                all.stored + from, static_cast<size_t>(size));
  if (got != wanted) __atomic_store_n(&all.damaged, block + 1, __ATOMIC_SEQ_CST);
}

// Of what is stored: the header fits the image, and the frames lie one behind the other.
bool holds(const Expansion& all, uint64_t bytes, uint64_t weight_bytes) {
  constexpr uint64_t kMostBlocks = 1u << 24;
  const SvodZstdHeader& header = *all.header;
  if (bytes < sizeof(header) ||
      memcmp(header.magic, "SVODZST", sizeof(header.magic)) != 0)
    return false;
  if (header.weight_bytes != weight_bytes || header.block_bytes == 0 ||
      header.blocks > kMostBlocks)
    return false;
  const uint64_t blocks = (weight_bytes - 1) / header.block_bytes + 1;
  const uint64_t frames = sizeof(header) + (header.blocks + 1) * sizeof(uint64_t);
  if (header.blocks != blocks || frames > bytes || all.places[0] != frames) return false;
  for (uint64_t i = 0; i < blocks; i++)
    if (all.places[i] > all.places[i + 1]) return false;
  return all.places[blocks] <= bytes;
}

uint32_t threads_for(const Session& session, uint64_t asked, uint64_t blocks) {
  constexpr uint64_t kMost = 256;
  const uint32_t bound = svod_header(session.model.image)->threads;
  uint64_t threads = asked != 0 ? asked : svod_cpu_count();
  if (bound != 0 && threads > bound) threads = bound;
  if (threads > blocks) threads = blocks;
  return static_cast<uint32_t>(threads < kMost ? threads : kMost);
}

// False: there is no memory.
bool expand_on(uint32_t threads, Expansion& all) {
  all.workspace_bytes =
      (ZSTD_estimateDCtxSize() + SVOD_ALIGN - 1) / SVOD_ALIGN * SVOD_ALIGN;
  const uint64_t room = threads * all.workspace_bytes;
  const uint64_t pool_room = threads > 1 ? svod_pool_bytes(threads) : 0;
  auto memory = static_cast<uint8_t*>(svod_allocate(room + pool_room));
  if (memory == nullptr) return false;
  all.workspaces = memory;
  const auto blocks = static_cast<uint32_t>(all.header->blocks);
  if (threads > 1) {
    SvodPool* pool = svod_pool_make(memory + room, threads);
    svod_pool_run(pool, blocks, expand_block, &all);
    svod_pool_end(pool);
  } else {
    for (uint32_t block = 0; block < blocks; block++) expand_block(&all, block, 0);
  }
  svod_unmap(memory, room + pool_room);
  return true;
}

} // namespace

Exit expand_weights(Session& session, uint64_t threads, Printer& errors) {
  const uint64_t weight_bytes = svod_header(session.model.image)->weight_bytes;
  if (weight_bytes == 0) return EXIT_DONE;
  Expansion all = {};
  const void* data = nullptr;
  uint64_t bytes = 0;
  svod_get_zstd(&data, &bytes);
  all.stored = static_cast<const uint8_t*>(data);
  all.header = static_cast<const SvodZstdHeader*>(data);
  all.places = reinterpret_cast<const uint64_t*>(all.header + 1);
  if (!holds(all, bytes, weight_bytes)) {
    print_error(errors, "the compressed weights in this program are damaged");
    return EXIT_DAMAGED;
  }
  all.weights = static_cast<uint8_t*>(take_memory(weight_bytes));
  if (all.weights != nullptr) svod_want_large_pages(all.weights, weight_bytes);
  if (all.weights == nullptr ||
      !expand_on(threads_for(session, threads, all.header->blocks), all)) {
    print_error(errors, "there is not enough memory for the expanded weights");
    return EXIT_FILE;
  }
  if (all.damaged != 0) {
    errors << "error: the compressed weights in this program are damaged, in block "
           << all.damaged - 1 << " of " << all.header->blocks << "\n";
    return EXIT_DAMAGED;
  }
  session.model.weights = all.weights;
  session.model.weight_bytes = weight_bytes;
  return EXIT_DONE;
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
