#include "compiler/made_kernels.h"

#include <algorithm>

namespace svod {

MadeKernels::Names MadeKernels::names_of(const ScheduledKernel& kernel,
                                         const Stored& stored) {
  Names out;
  for (const Argument& argument : kernel.arguments) {
    out.nodes.push_back(argument.kind == Argument::Kind::Buffer
                            ? stored.buffers[argument.id].node
                            : kNoNode);
    out.weights.push_back(argument.kind == Argument::Kind::Packed
                              ? stored.packed[argument.id]
                              : PackedWeight());
  }
  return out;
}

void MadeKernels::number(ScheduledKernel& kernel, const Names& names, Stored& stored) {
  for (size_t i = 0; i < kernel.arguments.size(); ++i) {
    Argument& argument = kernel.arguments[i];
    if (argument.kind == Argument::Kind::Buffer) {
      argument.id = stored.buffer_of.at(names.nodes[i]);
    } else if (argument.kind == Argument::Kind::Packed) {
      const auto same = std::ranges::find(stored.packed, names.weights[i]);
      argument.id = static_cast<PackedId>(same - stored.packed.begin());
      if (same == stored.packed.end()) stored.packed.push_back(names.weights[i]);
    }
  }
}

void MadeKernels::keep(const std::string& key, const optimize::CutKernel& cut,
                       const optimize::MadeKernel& made, const Stored& stored) {
  known_.try_emplace(key, Known{cut, made, names_of(cut.lowered.kernel, stored),
                                names_of(made.kernel, stored)});
}

optimize::CutKernel MadeKernels::cut(const std::string& key, Stored& stored) const {
  const Known& known = known_.at(key);
  optimize::CutKernel out = known.cut;
  number(out.lowered.kernel, known.cut_names, stored);
  return out;
}

optimize::MadeKernel MadeKernels::made(const std::string& key, Stored& stored) const {
  const Known& known = known_.at(key);
  optimize::MadeKernel out = known.made;
  number(out.kernel, known.made_names, stored);
  return out;
}

} // namespace svod
