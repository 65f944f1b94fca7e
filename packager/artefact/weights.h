// The weight section: every packed weight at its slot's offset, in exactly the layout its
// kernels read, produced one weight at a time.
#pragma once

#include "compiler/kernel/pack_weight.h"
#include "compiler/plan/plan.h"

#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace svod::packager {

using ByteSink = std::function<void(std::span<const std::byte>)>;

// A weight as its kernels read it: in memory of its own, or where its source lies.
class PackedBytes {
public:
  PackedBytes(const PackedWeight& weight, const PackSource& source);
  PackedBytes(PackedBytes&&) = default;
  std::span<const std::byte> bytes() const { return bytes_; }
  bool is_source() const { return own_ == nullptr; }
  std::vector<std::byte> copy() const { return {bytes_.begin(), bytes_.end()}; }

private:
  std::unique_ptr<std::byte[]> own_;
  std::span<const std::byte> bytes_;
};

// Weights of a plan that lie next to each other and are packed from one tensor.
struct PackedGroup {
  NodeId source = kNoNode;
  std::vector<const plan::Slot*> slots;
  Tensor value = {};               // of a source that is no tensor of the model
  std::vector<PackedBytes> packed; // one for each slot
};

// Hands plan.weight_bytes bytes to `sink`, in order.
void produce_weights(const plan::Plan& plan, const ByteSink& sink);
// Also puts each weight at its offset, on the thread that has packed it: several at a
// time, in any order. What lies between weights is not put; it is zero.
using PutBytes = std::function<void(uint64_t offset, std::span<const std::byte> bytes)>;
void produce_weights(const plan::Plan& plan, const PutBytes& put, const ByteSink& sink);

// One weight section of several plans, in which equal bytes lie once. The first plan's
// weights lie as it says, what the next ones add follows.
struct SharedWeights {
  struct Place {
    uint64_t offset = 0;
    bool added = false; // no plan before has these bytes
  };
  uint64_t bytes = 0;
  // By plan, and by the offset of a weight in it.
  std::vector<std::map<uint64_t, Place>> places;
};
using Plans = std::vector<const plan::Plan*>;
SharedWeights share_weights(const Plans& plans);
// Hands shared.bytes bytes to `sink`, in order. `visit` sees each group on the way, with
// the number of its plan and the place of each of its weights in the section.
using VisitGroup = std::function<void(size_t plan, const PackedGroup& group,
                                      const std::vector<uint64_t>& places)>;
void produce_weights(const Plans& plans, const SharedWeights& shared,
                     const ByteSink& sink, const VisitGroup& visit = {});
// The places of the weights of one plan.
SharedWeights weights_of_one(const plan::Plan& plan);

} // namespace svod::packager
