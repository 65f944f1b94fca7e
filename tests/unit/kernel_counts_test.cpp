// How many kernels layers of well known networks become: none rises unseen. Constants and
// views have no kernel of their own.
#include "compiler/fuse.h"
#include "compiler/rewrite/simplify.h"
#include "tests/support/layer_graphs.h"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace svod;
using namespace svod::test;

namespace {

// `written`: contractions as they are written, one kernel each, which is how others
// count; `fast`: with Winograd's and Strassen's forms, which take several.
struct Limit {
  const char* layer;
  Graph (*graph)();
  size_t written, fast;
};

// Of the Conformer's layer there are counts of morok: 5 for a feed-forward part, 9 for
// the convolution, 8 for the attention, 36 in all. The attention has more here: halves
// that change places in a rotation are joined in memory.
constexpr Limit kLimits[] = {
    {"ResNet-50, bottleneck", bottleneck_layer, 4, 6},
    {"MobileNetV2, inverted residual", inverted_residual_layer, 4, 4},
    {"BERT, layer", bert_layer, 11, 11},
    {"Inception v1, module", inception_layer, 9, 13},
    {"Swin, shifted block", swin_layer, 20, 30},
    {"Conformer, feed-forward", conformer_feed_forward, 3, 3},
    {"Conformer, attention", conformer_attention, 14, 14},
    {"Conformer, convolution", conformer_convolution, 6, 6},
    {"Conformer, layer", conformer_layer, 27, 27},
};

FusedGraph fused(const Limit& limit, bool as_written) {
  return fuse(rewrite::simplify(limit.graph()), *find_target("x86-64"), as_written);
}

// A kernel that only moves elements makes what is asked for in another order, is joined
// of parts, or leaves the graph. No other kernel is there for a view, and none for a
// number that is known.
void check_kernels(const FusedGraph& f) {
  for (const Buffer& b : f.buffers)
    CHECK((f.graph.depends_on_input(b.node) || b.reason == StoreReason::Output));
  for (const ScheduledKernel& k : f.kernels) {
    const bool moves = std::ranges::all_of(k.nodes, [&](NodeId n) {
      return is_view(f.graph[n].op) || f.graph[n].op == Op::Concat;
    });
    for (const Argument& a : k.arguments) {
      if (!moves || a.kind != Argument::Kind::Buffer || !a.written) continue;
      const StoreReason reason = f.buffers[a.id].reason;
      INFO("%" << f.buffers[a.id].node << " " << text_of(reason));
      CHECK((reason == StoreReason::Requested || reason == StoreReason::Joined ||
             reason == StoreReason::Output));
    }
  }
}

} // namespace

TEST_CASE("kernels of a layer are at most so many", "[fuse][counts]") {
  for (const Limit& limit : kLimits) {
    INFO(limit.layer);
    const FusedGraph written = fused(limit, true), fast = fused(limit, false);
    CHECK(written.kernels.size() <= limit.written);
    CHECK(fast.kernels.size() <= limit.fast);
    check_kernels(written);
    check_kernels(fast);
  }
}
