// Attention as one kernel: what it is made of, and what its schedule on a GPU needs.
//
//   s0 = nested sum over numbers: query * key       the score of a query and a key
//   s1 = maximum over keys: score'                  any function of the score there
//   s2 = sum over keys: exp(score' - s1)
//   s3 = sum over keys: exp(score' - s1) / s2 * value, or 0 * value where a mask leaves
//        nothing of the query
//   ..   stores of s3
//
// Computed stage by stage each score is computed three times. With a maximum that grows
// on the way once is enough (Milakov and Gimelshein, "Online normalizer calculation for
// softmax", 2018; Dao et al., "FlashAttention", 2022): what was summed before is
// multiplied by exp(old maximum - new maximum).
#pragma once

#include "compiler/kernel/schedule.h"

namespace svod {

enum AttentionStage : uint32_t {
  kScoreStage,
  kMaximumStage,
  kSumStage,
  kResultStage,
};
struct Attention {
  ExprId query = 0, key = 0, value = 0; // factors of both sums of products
  ExprId score = 0, weight = 0;         // score', exp(score' - s1)
  std::optional<ExprId> empty;          // whether nothing is left of a query
  // Inner axes: of the stages over keys, and of the score's sum.
  std::vector<AxisId> keys, numbers;
  // Outer axes: of which keys and values know nothing, of which the value alone knows,
  // and others.
  std::vector<AxisId> queries, columns, others;
};
// What the kernel is, if it is one.
std::optional<Attention> attention_of(const Kernel& kernel);

// The type that tensor cores take its factors as: both of queries and keys and both of
// weights and values are widened from it.
std::optional<DType> matrix_type(const Kernel& kernel, const Attention& attention);

// One of its factors in shared memory, with the positions and steps that are there,
// zeros beyond their extent.
enum class AttentionFactor : uint8_t { Queries, Keys, Values };
struct AttentionPlane {
  ExprId value = 0;
  FactorTile how;
  std::vector<AxisId> step_axes;
  int64_t positions = 0, steps = 0;             // in shared memory
  int64_t position_extent = 0, step_extent = 0; // of all
  SharedTile tile;
  bool copied = false; // shared memory copies it as it lies
};
AttentionPlane attention_plane(const Kernel& kernel, const Attention& attention,
                               const AttentionTile& tile, AttentionFactor factor);
// Rows of each warp, whose threads multiply matrices, by itself or with its group.
int queries_of_warp(const AttentionTile& tile);
// Sums of a thread that its scores and its results take.
int score_sums(const AttentionTile& tile);
int result_sums(const Kernel& kernel, const Attention& attention,
                const AttentionTile& tile);
int threads_of(const AttentionTile& tile);
int64_t attention_blocks(const Kernel& kernel, const AttentionTile& tile);
int64_t shared_of_attention(const Kernel& kernel, const AttentionTile& tile);
// Keys and values lie first there, where groups of warps need them aligned, then queries.
// Of threads that multiply by themselves: where the weights of a block lie, in bytes, and
// how.
int64_t weights_in_shared(const Kernel& kernel, const Attention& attention,
                          const AttentionTile& tile);
SharedTile weight_tile(const AttentionTile& tile);

std::string attention_misfit(const ScheduledKernel& kernel, const GpuSchedule& schedule);

} // namespace svod
