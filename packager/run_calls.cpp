// A call's text ends with svod_call(void* const* tensors), inputs first, then outputs. It
// is compiled without optimisation in mind as a shared object of its own, apart from the
// kernels of the program that is verified: other flags, another code path to its tensors,
// so that a wrong place or size of a tensor there is found. The function itself is the
// same text; whether that is right is what conformance tests with others' data are for.
#include "packager/run_calls.h"

#include "compiler/support/check.h"
#include "compiler/toolchain/compile_all.h"
#include "compiler/toolchain/link.h"
#include "packager/objects.h"

#include <cstring>
#include <filesystem>
#include <map>
#include <memory>

#include <dlfcn.h>
#include <unistd.h>

namespace svod::packager {

namespace {

using Function = int32_t (*)(void* const*);

constexpr std::string_view kEntry =
    "\nextern \"C\" __attribute__((visibility(\"default\"))) __INT32_TYPE__\n"
    "svod_run_call(void* const* tensors) { return svod_call(tensors); }\n";

// Memory for one tensor, aligned as the stub aligns it.
constexpr size_t kAlign = 64;
struct alignas(kAlign) Line {
  std::byte bytes[kAlign];
};
using Memory = std::vector<Line>;
Memory memory_for(size_t bytes) { return Memory(bytes / kAlign + 1); }

class Library {
public:
  Library(const toolchain::Compiler& compiler, std::string_view text) {
    const Target target = default_target();
    toolchain::Source source{"call.cpp", std::string(text), {}};
    source.text += kEntry;
    const toolchain::CompileJob job{&target.levels.front(), std::move(source)};
    const toolchain::CompileAllResult compiled =
        toolchain::compile_all(compiler, target, {&job, 1});
    if (!compiled.ok()) return;
    std::error_code error;
    std::string path =
        (std::filesystem::temp_directory_path(error) / "svod-call-XXXXXX").string();
    const int file = error ? -1 : mkstemp(path.data());
    if (file < 0) return;
    close(file);
    toolchain::LinkInputs inputs;
    inputs.objects.emplace_back(compiled.results[0].output);
    if (toolchain::link_shared(target, inputs, "call", path).ok)
      handle_ = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    unlink(path.c_str());
  }
  ~Library() {
    if (handle_ != nullptr) dlclose(handle_);
  }
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  Function function() const {
    return handle_ == nullptr
               ? nullptr
               : reinterpret_cast<Function>(dlsym(handle_, "svod_run_call"));
  }

private:
  void* handle_ = nullptr;
};

class Runner {
public:
  bool run(const Graph& g, const Node& call, const std::vector<const Tensor*>& in,
           Tensor& out) {
    const auto function = static_cast<uint32_t>(call.payload[0]);
    auto at = libraries_.find(function);
    if (at == libraries_.end()) {
      const Blob& blob = g.blob(function);
      const std::string_view text(reinterpret_cast<const char*>(blob.bytes.data()),
                                  blob.bytes.size());
      at = libraries_.try_emplace(function, compiler_, text).first;
    }
    const Function entry = at->second.function();
    if (entry == nullptr) return false;
    std::vector<Memory> memory;
    for (const Tensor* tensor : in) {
      memory.push_back(memory_for(tensor->bytes.size()));
      if (!tensor->bytes.empty())
        std::memcpy(memory.back().data(), tensor->bytes.data(), tensor->bytes.size());
    }
    // Behind the function's number and that of the output stand the bytes of all outputs.
    for (size_t i = 2; i < call.payload.size(); ++i)
      memory.push_back(memory_for(static_cast<size_t>(call.payload[i])));
    std::vector<void*> tensors;
    for (Memory& one : memory) tensors.push_back(one.data());
    if (entry(tensors.data()) != 0) return false;
    const size_t wanted = in.size() + static_cast<size_t>(call.payload[1]);
    SVOD_CHECK(static_cast<int64_t>(out.bytes.size()) <=
               call.payload[2 + static_cast<size_t>(call.payload[1])])
        << "output of a call";
    if (!out.bytes.empty())
      std::memcpy(out.bytes.data(), memory[wanted].data(), out.bytes.size());
    return true;
  }

private:
  toolchain::Compiler compiler_ = package_compiler();
  std::map<uint32_t, Library> libraries_;
};

} // namespace

CallRunner calls_run_by() {
  return [runner = std::make_shared<Runner>()](
             const Graph& g, const Node& call, const std::vector<const Tensor*>& in,
             Tensor& out) { return runner->run(g, call, in, out); };
}

} // namespace svod::packager
