// A call's text ends with svod_call(void* const* tensors), inputs first, then outputs. It
// is compiled without optimisation in mind as a shared object of its own, apart from the
// kernels of the program that is verified: other flags, another code path to its tensors,
// so that a wrong place or size of a tensor there is found. The function itself is the
// same text; whether that is right is what conformance tests with others' data are for.
#include "packager/verify/run_calls.h"

#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/toolchain/compile_all.h"
#include "packager/artefact/objects.h"
#include "packager/verify/aligned_memory.h"
#include "packager/verify/shared_code.h"

#include <cstring>
#include <map>
#include <memory>

namespace svod::packager {

namespace {

using Function = int32_t(void* const*);

constexpr std::string_view kEntry =
    "\nextern \"C\" __attribute__((visibility(\"default\"))) __INT32_TYPE__\n"
    "svod_run_call(void* const* tensors) { return svod_call(tensors); }\n";

// The call compiled; what cannot be compiled or loaded has no function.
std::optional<SharedCode> load(const toolchain::Compiler& compiler,
                               std::string_view text) {
  const Target target = default_target();
  toolchain::Source source{"call.cpp", std::string(text), {}};
  source.text += kEntry;
  const toolchain::CompileJob job{&target.levels.front(), std::move(source)};
  const toolchain::CompileAllResult compiled =
      toolchain::compile_all(compiler, target, {&job, 1});
  if (!compiled.ok()) return std::nullopt;
  toolchain::LinkInputs inputs;
  inputs.objects.emplace_back(compiled.results[0].output);
  return SharedCode(target, inputs);
}

class Runner {
public:
  bool run(const Graph& g, const Node& call, const std::vector<const Tensor*>& in,
           Tensor& out) {
    const Blob& blob = g.blob(static_cast<uint32_t>(call.payload[0]));
    auto at = loaded_.find(blob.digest);
    if (at == loaded_.end()) {
      at = loaded_.emplace(blob.digest, load(compiler_, text_of(blob.bytes()))).first;
    }
    Function* const entry =
        at->second ? at->second->find<Function>("svod_run_call") : nullptr;
    if (entry == nullptr) return false;
    std::vector<AlignedMemory> memory;
    for (const Tensor* tensor : in) {
      memory.push_back(aligned_memory(tensor->bytes.size()));
      if (!tensor->bytes.empty())
        std::memcpy(memory.back().data(), tensor->bytes.data(), tensor->bytes.size());
    }
    std::vector<void*> tensors;
    for (AlignedMemory& one : memory) tensors.push_back(one.data());
    // Behind the function's number and that of the output stand the bytes of all outputs.
    // What is large may be touched in part only, so nothing is written to it here.
    std::vector<std::unique_ptr<MemoryLine[]>> results;
    for (size_t i = 2; i < call.payload.size(); ++i) {
      const size_t lines = static_cast<size_t>(call.payload[i]) / SVOD_ALIGN + 1;
      results.push_back(std::make_unique_for_overwrite<MemoryLine[]>(lines));
      tensors.push_back(results.back().get());
    }
    if (entry(tensors.data()) != 0) return false;
    const auto wanted = static_cast<size_t>(call.payload[1]);
    SVOD_CHECK(static_cast<int64_t>(out.bytes.size()) <=
               call.payload[2 + static_cast<size_t>(call.payload[1])])
        << "output of a call";
    if (!out.bytes.empty())
      std::memcpy(out.bytes.data(), results[wanted].get(), out.bytes.size());
    return true;
  }

private:
  toolchain::Compiler compiler_ = package_compiler();
  std::map<Digest, std::optional<SharedCode>> loaded_; // by the function's text
};

} // namespace

CallRunner calls_run_by() {
  return [runner = std::make_shared<Runner>()](
             const Graph& g, const Node& call, const std::vector<const Tensor*>& in,
             Tensor& out) { return runner->run(g, call, in, out); };
}

} // namespace svod::packager
