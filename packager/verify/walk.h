// The steps of a plan, one by one, each kernel's result beside the evaluator's.
#pragma once

#include "packager/verify/judge.h"
#include "packager/verify/loaded_kernels.h"
#include "packager/verify/run_memory.h"

#include "compiler/ir/evaluate_calls.h"

#include <functional>
#include <set>

namespace svod::packager {

// What differs first.
struct Fault {
  uint32_t program = 0;           // of the plan
  std::string kernel;             // "k3", "k0, part 2"
  std::vector<std::string> nodes; // ONNX's, that it computes
  std::vector<std::string> facts; // what it writes, where that differs, how
};

struct WalkCounts {
  int64_t kernels = 0; // launched, as often as loops launch them
  int64_t skipped = 0; // of them, those whose results the evaluator cannot compute
  // The model's data ended the run: an index out of range, a loop over its limit.
  bool stopped = false;
};

class Walk {
public:
  // Told before each kernel is called: a kernel may crash.
  using Tell = std::function<void(const std::string& kernel,
                                  const std::vector<std::string>& nodes)>;
  // Told of each value of the graph, but of its regions' bodies, that is as expected.
  using Stored = std::function<void(const StoredValue&)>;
  // `fused` is what the plan was made from.
  Walk(const LoadedKernels& code, const FusedGraph& fused, RunMemory& memory,
       CallRunner calls, Tell tell, Stored stored);
  std::optional<Fault> run();
  const WalkCounts& counts() const { return counts_; }

private:
  using Step = plan::Step;
  using SlotId = plan::SlotId;
  // Steps of the plan, or those that were joined to a sequence: its parts.
  struct Steps {
    const std::vector<Step>& list;
    std::optional<uint32_t> sequence = std::nullopt;
  };
  // A buffer that several kernels write is compared when the last of them has run.
  struct Writing {
    size_t left = 0; // kernels
    std::map<NodeId, Tensor> known;
    std::vector<std::string> writers;
    std::vector<uint16_t> owner; // by byte: the writer that changed it last, from 1 on
  };
  // What a kernel of a sequence or a chain wrote.
  struct Written {
    std::byte* at = nullptr;
    uint64_t bytes = 0;
    const Buffer* buffer = nullptr; // none: a copy
    std::optional<Tensor> value = std::nullopt;
  };

  // Each returns false when a fault was found, or the run cannot go on.
  bool steps(const Steps& in, size_t first, size_t end);
  bool branch(const Steps& in, size_t at, size_t& end);
  bool loop(const Steps& in, size_t at, size_t end);
  bool launch(const Steps& in, size_t at);
  bool sequence(const Step& step);
  bool chain(const Steps& in, size_t first);
  bool kernel(const Step& step, uint32_t program);
  bool check(const Step& step, uint32_t program, const std::vector<size_t>& ready,
             int32_t status);
  bool compare(const Step& step, uint32_t program, size_t argument,
               const std::map<NodeId, Tensor>& known, const Tensor& expected);
  bool same_as_parts(const Step& step, const std::string& name,
                     const std::vector<Written>& written);

  void copy(const Step& step);
  int32_t call(const Step& step, uint32_t program);
  bool read_inputs(const Step& step, uint32_t program, std::map<NodeId, Tensor>& known);
  void begin_writing(const Step& step, uint32_t program);
  std::vector<std::vector<std::byte>> written_bytes(const Step& step);
  std::vector<size_t> end_writing(const Step& step,
                                  const std::vector<std::vector<std::byte>>& before,
                                  const std::map<NodeId, Tensor>& known);
  void remember(SlotId id);
  void note_written(std::byte* at, uint64_t bytes, const Buffer* buffer);
  Fault& blame(const Step& step, std::string kernel, uint32_t program);
  Writing& writing(const Step& step, size_t argument);
  const Buffer& buffer(const Step& step, size_t argument) const;
  const std::vector<Argument>& arguments(const Step& step) const;
  std::vector<std::string> nodes_of(const Step& step) const;

  const LoadedKernels& code_;
  const plan::Plan& plan_;
  RunMemory& memory_;
  const CallRunner calls_;
  const Tell tell_;
  const Stored stored_;
  const FusedGraph& whole_;
  const std::vector<plan::Launched> launched_;
  std::map<const FusedGraph*, std::vector<size_t>> writers_; // by buffer
  std::map<std::pair<const FusedGraph*, BufferId>, Writing> writings_;
  std::map<SlotId, uint64_t> hashes_; // of what was written and nobody may change
  std::set<SlotId> remembered_;       // of these, slots written since a sequence began
  std::vector<Written> written_;
  std::optional<Fault> fault_;
  WalkCounts counts_;
};

} // namespace svod::packager
