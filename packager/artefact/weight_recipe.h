// How packed weights are made from tensors of fewer bytes: the steps of
// runtime_stub/expansion_format.h, before anything has a place.
#pragma once

#include "compiler/ir/evaluate.h"
#include "compiler/kernel/fused_graph.h"
#include "runtime_stub/expansion_format.h"

#include <map>
#include <memory>
#include <optional>

namespace svod::packager {

struct Recipe {
  struct Operand {
    SvodExpansionPlace place = SVOD_EXPANSION_ROOM;
    size_t number = 0; // in tensors, rooms, or among the weights
    int64_t start = 0; // elements
  };
  struct Step {
    SvodExpansionKind kind = SVOD_EXPANSION_COPY;
    int element_bytes = 0;
    size_t axes = 0, limits = 0, kept = 0, row = 0;
    std::vector<int64_t> numbers;
    uint64_t fill = 0;
    Operand result, a, b;
  };
  std::vector<Tensor> tensors;
  std::vector<uint64_t> rooms; // bytes
  std::vector<Step> steps;
};

// Of the known nodes of one graph.
class RecipeBook {
public:
  explicit RecipeBook(const Graph& graph) : graph_(graph) {}
  // Bytes that have to be stored so that the value of a node can be made of them.
  uint64_t stored_bytes(NodeId id);
  // Whether that is less than its value, which then is made.
  bool is_made(NodeId id);
  const Graph& graph() const { return graph_; }
  // The weights are packed from one source. nullopt: there are more axes than a step has.
  std::optional<Recipe> recipe(const std::vector<const PackedWeight*>& weights);

private:
  std::optional<uint64_t> made_from(NodeId id);

  const Graph& graph_;
  std::map<NodeId, uint64_t> stored_;
};

// Of one weight as it was packed.
Recipe stored_as_packed(std::vector<std::byte> packed);

} // namespace svod::packager
