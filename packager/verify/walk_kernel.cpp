// One kernel: what it reads is given to the evaluator, which makes from it what the
// kernel has to write. So a kernel is blamed for its own result alone, whatever those
// before it did.
#include "packager/verify/compare.h"
#include "packager/verify/walk.h"

#include "compiler/support/check.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace svod::packager {

namespace {

uint64_t hash_of(const std::byte* at, uint64_t bytes) {
  return std::hash<std::string_view>{}({reinterpret_cast<const char*>(at), bytes});
}

bool is_input(const Argument& a) {
  return a.kind == Argument::Kind::Buffer && a.read && !a.written;
}

} // namespace

const std::vector<Argument>& Walk::arguments(const Step& step) const {
  return launched_[step.kernel].kernel->arguments;
}

const Buffer& Walk::buffer(const Step& step, size_t argument) const {
  return launched_[step.kernel].fused->buffers[arguments(step)[argument].id];
}

Walk::Writing& Walk::writing(const Step& step, size_t argument) {
  return writings_[{launched_[step.kernel].fused, arguments(step)[argument].id}];
}

std::vector<std::string> Walk::nodes_of(const Step& step) const {
  return plan_.graph.names_of(step.sources);
}

Fault& Walk::blame(const Step& step, std::string kernel, uint32_t program) {
  return fault_.emplace(
      Fault{code_.whole(program), std::move(kernel), nodes_of(step), {}});
}

void Walk::note_written(std::byte* at, uint64_t bytes, const Buffer* buffer) {
  std::erase_if(written_, [&](const Written& w) { return w.at == at; });
  written_.push_back({at, bytes, buffer});
}

// Slices move, and a part of a chain goes with it.
void Walk::remember(SlotId id) {
  const plan::Slot& slot = memory_.slot(id);
  if (slot.slot_class == plan::SlotClass::Slice) {
    hashes_.erase(plan::root_slot(plan_, id));
    return;
  }
  if (slot.slot_class == plan::SlotClass::Part) return;
  hashes_[id] = hash_of(memory_.address(id), slot.bytes);
  remembered_.insert(id);
}

bool Walk::read_inputs(const Step& step, uint32_t program,
                       std::map<NodeId, Tensor>& known) {
  for (size_t a = 0; a < arguments(step).size(); ++a) {
    if (!is_input(arguments(step)[a])) continue;
    const SlotId id = step.arguments[a];
    const std::byte* const at = memory_.address(id);
    const auto hash = hashes_.find(id);
    if (hash != hashes_.end() && hash->second != hash_of(at, memory_.bytes(id))) {
      blame(step, code_.name(program), program).facts = {
          "what it reads, " + buffer_text(buffer(step, a)) +
          ", was overwritten since it was made: the plan gave the same memory to another "
          "buffer, or a kernel wrote beyond its own"};
      return false;
    }
    known.insert_or_assign(buffer(step, a).node, value_in(buffer(step, a), at));
  }
  return true;
}

void Walk::begin_writing(const Step& step, uint32_t program) {
  const plan::Launched& l = launched_[step.kernel];
  const std::vector<plan::SharedArguments> shared = plan::shared_arguments(plan_, step);
  for (size_t a = 0; a < arguments(step).size(); ++a) {
    if (!arguments(step)[a].written) continue;
    Writing& w = writing(step, a);
    const uint64_t bytes = memory_.bytes(step.arguments[a]);
    if (w.writers.empty()) {
      w.left = writers_.at(l.fused)[arguments(step)[a].id];
      if (w.left > 1) w.owner.assign(bytes, 0);
      // What lies on what its kernel reads must be left as it is.
      if (std::ranges::find(shared, a, &plan::SharedArguments::written) == shared.end())
        std::memset(memory_.address(step.arguments[a]), 0xff, bytes);
    }
    w.writers.push_back(code_.name(program));
  }
}

// Of buffers that others write, too.
std::vector<std::vector<std::byte>> Walk::written_bytes(const Step& step) {
  std::vector<std::vector<std::byte>> out(step.arguments.size());
  for (size_t a = 0; a < out.size(); ++a) {
    if (!arguments(step)[a].written || writing(step, a).owner.empty()) continue;
    const std::byte* const at = memory_.address(step.arguments[a]);
    out[a].assign(at, at + memory_.bytes(step.arguments[a]));
  }
  return out;
}

// The arguments whose buffers are whole now.
std::vector<size_t> Walk::end_writing(const Step& step,
                                      const std::vector<std::vector<std::byte>>& before,
                                      const std::map<NodeId, Tensor>& known) {
  std::vector<size_t> ready;
  for (size_t a = 0; a < arguments(step).size(); ++a) {
    if (!arguments(step)[a].written) continue;
    Writing& w = writing(step, a);
    const std::byte* const at = memory_.address(step.arguments[a]);
    for (size_t i = 0; i < before[a].size(); ++i)
      if (before[a][i] != at[i]) w.owner[i] = static_cast<uint16_t>(w.writers.size());
    for (const auto& [node, value] : known) w.known.insert_or_assign(node, value);
    remember(step.arguments[a]);
    note_written(memory_.address(step.arguments[a]), memory_.bytes(step.arguments[a]),
                 &buffer(step, a));
    if (--w.left == 0) ready.push_back(a);
  }
  return ready;
}

int32_t Walk::call(const Step& step, uint32_t program) {
  std::vector<void*> buffers;
  for (SlotId id : step.arguments) buffers.push_back(memory_.address(id));
  for (uint32_t chunk = 0; chunk < step.chunks; ++chunk)
    if (const int32_t status =
            code_.call(program, buffers.data(), memory_.scratch(), chunk);
        status != 0)
      return status;
  return 0;
}

bool Walk::kernel(const Step& step, uint32_t program) {
  tell_(code_.name(program), nodes_of(step));
  ++counts_.kernels;
  std::map<NodeId, Tensor> known;
  if (!read_inputs(step, program, known)) return false;
  begin_writing(step, program);
  const auto before = written_bytes(step);
  const int32_t status = call(step, program);
  return check(step, program, end_writing(step, before, known), status);
}

bool Walk::check(const Step& step, uint32_t program, const std::vector<size_t>& ready,
                 int32_t status) {
  const Graph& g = launched_[step.kernel].fused->graph;
  std::map<NodeId, Tensor> known;
  std::vector<NodeId> roots;
  for (size_t a : ready) {
    roots.push_back(buffer(step, a).node);
    known.merge(writing(step, a).known);
  }
  const Evaluated expected = evaluate_from(g, roots, known, calls_);
  const Op failed = expected.failed == kNoNode ? Op::Add : g[expected.failed].op;
  const bool cannot = failed == Op::Input || failed == Op::Call;
  if (cannot) ++counts_.skipped;
  if (status != 0 && (expected.failed != kNoNode || ready.empty())) return false;
  if (!cannot && (status != 0) != (expected.failed != kNoNode)) {
    const std::string who = status != 0 ? "the kernel" : "the evaluator";
    blame(step, code_.name(program), program).facts = {
        who + " finds an index out of range, and stops; the other does not"};
    return false;
  }
  for (size_t i = 0; i < ready.size(); ++i) {
    if (!cannot && !compare(step, program, ready[i], known, expected.outputs[i]))
      return false;
    writings_.erase({launched_[step.kernel].fused, arguments(step)[ready[i]].id});
  }
  return true;
}

bool Walk::compare(const Step& step, uint32_t program, size_t argument,
                   const std::map<NodeId, Tensor>& known, const Tensor& expected) {
  const Graph& g = launched_[step.kernel].fused->graph;
  const Buffer& b = buffer(step, argument);
  const std::byte* const at = memory_.address(step.arguments[argument]);
  const Tensor got = value_in(b, at);
  const std::vector<int64_t> wrong =
      wrong_elements(g, b.node, known, calls_, expected, got);
  const std::optional<int64_t> border = wrong_border(b, at);
  if (wrong.empty() && !border) {
    if (stored_ && launched_[step.kernel].fused == &whole_)
      stored_({b, code_.name(program), nodes_of(step), expected, got});
    return true;
  }
  Fault& fault = blame(step, code_.name(program), program);
  fault.facts = {buffer_text(b) + ", a" + std::to_string(argument) + " of the kernel"};
  const int64_t place = wrong.empty() ? *border : offset_of(b, wrong[0]);
  fault.facts.push_back(wrong.empty()
                            ? "element " + std::to_string(place) +
                                  " in memory, of the border, does not hold what "
                                  "the layout says"
                            : difference_text(expected, got, wrong));
  const Writing& w = writing(step, argument);
  if (w.writers.size() > 1) {
    std::string all = "written by";
    for (const std::string& writer : w.writers) all += " " + writer + ",";
    const uint16_t owner = w.owner[static_cast<size_t>(place * byte_size(b.dtype))];
    fault.facts.push_back(all + (owner == 0
                                     ? " none of which wrote there"
                                     : " there by " + w.writers[size_t(owner) - 1u]));
  }
  return false;
}

} // namespace svod::packager
