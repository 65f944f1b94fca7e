// The text of a fused graph: buffers, packed weights, kernels, regions, chains.
#include "compiler/kernel/fused_graph.h"
#include "compiler/support/join.h"
#include "compiler/support/text.h"

namespace svod {

static std::string shape_text(const Shape& shape) { return "[" + join(shape, ",") + "]"; }

static std::string print(const FusedGraph& f, const FusedRegion& region) {
  std::string out(info(f.graph[region.node].op).text);
  out += " %" + std::to_string(region.node);
  for (const Argument& a : region.inputs)
    out += (a.kind == Argument::Kind::Buffer ? " b" : " w") + std::to_string(a.id);
  out += " ->";
  for (BufferId id : region.results)
    out += id == kNoBuffer ? " -" : " b" + std::to_string(id);
  if (region.value != kNoBuffer) out += " value b" + std::to_string(region.value);
  out += "\n";
  for (const FusedGraph& body : region.bodies) out += "body\n" + print(body) + "end\n";
  return out;
}

std::string print(const FusedGraph& f) {
  std::string out;
  for (size_t i = 0; i < f.buffers.size(); ++i) {
    const Buffer& b = f.buffers[i];
    out += "b" + std::to_string(i) + " = %" + std::to_string(b.node) + " " +
           std::string(info(b.dtype).text) + shape_text(b.shape) + " " + print(b.layout);
    if (b.input >= 0) out += " input " + std::to_string(b.input);
    for (int32_t o : b.outputs) out += " output " + std::to_string(o);
    out += "\n";
  }
  for (size_t i = 0; i < f.packed.size(); ++i) {
    const PackedWeight& p = f.packed[i];
    out += "w" + std::to_string(i) + " = %" + std::to_string(p.source) + " " +
           std::string(info(p.dtype).text) + shape_text(p.extents) + " strides " +
           shape_text(p.strides) + " offset " + std::to_string(p.offset) + "\n";
  }
  size_t next = 0;
  for (size_t i = 0; i <= f.kernels.size(); ++i) {
    for (; next < f.regions.size() && f.regions[next].kernels_before == i; ++next)
      out += print(f, f.regions[next]);
    if (i < f.kernels.size())
      out += "kernel " + std::to_string(i) + "\n" + print(f.kernels[i]);
  }
  for (const Chain& chain : f.chains) {
    out += "chain " + std::to_string(chain.first) + " to " +
           std::to_string(chain.first + chain.count - 1);
    for (const Chain::Passed& p : chain.buffers)
      out += " b" + std::to_string(p.buffer) + ":" + std::to_string(p.bytes);
    out += "\n";
  }
  return out;
}

std::string print(const std::vector<ChosenAlgorithm>& chosen) {
  std::string out;
  for (const ChosenAlgorithm& c : chosen)
    out += quoted(c.source) + ": " + c.contraction + " -> " + c.algorithm + "\n";
  return out;
}

} // namespace svod
