// A packed weight is an affine view of a tensor that is known when packing: element p of
// it is the source at offset + sum p_i * stride_i, or a fill value where a bound fails.
// The walk keeps the offset and the bounds' values up to date axis by axis, so an element
// costs a few additions.
#include "packager/artefact/weights.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "importer/model/mapped_file.h"

#include <algorithm>
#include <cstring>
#include <map>

namespace svod::packager {

namespace {

class Walk {
public:
  Walk(const PackedWeight& weight, const Tensor& source, std::byte* out)
      : weight_(weight), source_(source), out_(out),
        bytes_(static_cast<size_t>(byte_size(weight.dtype))),
        elements_(element_count(source.shape)) {
    for (const PackedWeight::Limit& limit : weight.limits)
      values_.push_back(limit.constant);
  }

  void run(size_t axis, int64_t offset) {
    if (axis == weight_.extents.size()) return element(offset);
    for (int64_t p = 0; p < weight_.extents[axis]; p++) {
      run(axis + 1, offset + p * weight_.strides[axis]);
      advance(axis, 1);
    }
    advance(axis, -weight_.extents[axis]);
  }

private:
  void advance(size_t axis, int64_t by) {
    for (size_t i = 0; i < values_.size(); i++) {
      values_[i] += by * weight_.limits[i].coefficients[axis];
    }
  }

  bool holds() const {
    for (size_t i = 0; i < values_.size(); i++) {
      const PackedWeight::Limit& limit = weight_.limits[i];
      if (values_[i] < limit.low || values_[i] >= limit.high) return false;
    }
    return true;
  }

  void element(int64_t offset) {
    const void* from = &weight_.fill_bits;
    if (holds()) {
      SVOD_CHECK(offset >= 0 && offset < elements_)
          << "packed weight reads element " << offset << " of " << elements_;
      from = source_.bytes.data() + static_cast<size_t>(offset) * bytes_;
    }
    std::memcpy(out_, from, bytes_);
    out_ += bytes_;
  }

  const PackedWeight& weight_;
  const Tensor& source_;
  std::byte* out_;
  size_t bytes_;
  int64_t elements_;
  std::vector<int64_t> values_; // of the limits, at the current position
};

bool is_plain(const PackedWeight& weight, const Tensor& source) {
  return weight.limits.empty() && weight.offset == 0 &&
         weight.strides == row_major_strides(weight.extents) &&
         element_count(weight.extents) == element_count(source.shape);
}

} // namespace

std::vector<std::byte> pack_weight(const PackedWeight& weight, const Tensor& source) {
  SVOD_CHECK(weight.dtype == source.dtype) << "packed weight of another type";
  if (is_plain(weight, source)) return source.bytes;
  std::vector<std::byte> out(static_cast<size_t>(weight.bytes()));
  Walk(weight, source, out.data()).run(0, weight.offset);
  return out;
}

// The model's file was mapped to read weights; packed, they are not needed again soon.
static void release(const Blob& blob) {
  importer::release_pages(text_of(blob.bytes), blob.owner);
}

void produce_weights(const plan::Plan& plan, const ByteSink& sink) {
  // Slots that share an offset hold the same packed weight.
  std::map<uint64_t, const plan::Slot*> slots;
  for (const plan::Slot& slot : plan.slots) {
    if (slot.slot_class == plan::SlotClass::Weight) slots.emplace(slot.offset, &slot);
  }
  uint64_t done = 0;
  auto fill_to = [&](uint64_t offset) {
    SVOD_CHECK(offset >= done) << "weight slots overlap at " << offset;
    sink(std::vector<std::byte>(static_cast<size_t>(offset - done)));
    done = offset;
  };
  Tensor source;
  NodeId evaluated = kNoNode;
  for (const auto& [offset, slot] : slots) {
    const PackedWeight& weight = plan.packed[slot->source];
    if (weight.source != evaluated) source = evaluate_known(plan.graph, weight.source);
    evaluated = weight.source;
    std::vector<std::byte> bytes = pack_weight(weight, source);
    SVOD_CHECK(bytes.size() <= slot->bytes) << "packed weight larger than its slot";
    fill_to(offset);
    sink(bytes);
    done += bytes.size();
    const Node& node = plan.graph[weight.source];
    if (node.op == Op::Weight)
      release(plan.graph.blob(static_cast<uint32_t>(node.payload[0])));
  }
  fill_to(plan.weight_bytes);
  // Those that packed weights are computed from, by several of them.
  for (uint32_t id = 0; id < plan.graph.blob_count(); id++) release(plan.graph.blob(id));
}

} // namespace svod::packager
