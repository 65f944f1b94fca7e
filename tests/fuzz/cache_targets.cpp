// What a cache's folder holds, or what another machine gives in its place: entries, and
// in them plans.
#include "compiler/ir/parse.h"
#include "compiler/kernel/schedule_file.h"
#include "compiler/stored_plan.h"
#include "compiler/toolchain/cache_entry.h"
#include "tests/fuzz/decisions.h"

#include <cstring>

namespace svod::fuzz {

namespace {

using Contents = std::vector<std::byte>;

const std::string kKey = "a key";

struct Kept {
  Graph graph;
  Contents bytes; // of its plan
};

// A plan of each kind of field, which never has to run: a kernel between an input and an
// output, with a weight.
Kept make_kept() {
  Diags diags;
  Graph from = *parse_graph("%0 = input \"x\" : f32[4]\n"
                            "%1 = weight #0 {1, 2, 3, 4} : f32[4]\n"
                            "%2 = mul %0 %1\n"
                            "output \"y\" %2\n",
                            diags);
  Kept out;
  for (NodeId id = 0; id < from.size(); id++) {
    Node node = from[id];
    out.graph.open_source("node " + std::to_string(id));
    if (node.op == Op::Weight) node.payload[0] = out.graph.add_blob(from.blob(0));
    if (node.op == Op::Input)
      out.graph.add_input("x", node.dtype, node.shape);
    else
      out.graph.intern(node);
  }
  out.graph.close_source();
  out.graph.add_output("y", 2);
  TextFault fault;
  CompiledPlan plan;
  plan::Plan& made = plan.kernels.plan;
  const auto facts = std::make_shared<ValueFacts>();
  made.graph = with_traces(out.graph, facts);
  note_fact(made.graph, 1, {.question = ValueQuestion::Varies});
  plan.facts = facts;
  ScheduledKernel program;
  static_cast<Kernel&>(program) = *parse_kernel("axes i0:1 i1:16\n"
                                                "terms i1\n"
                                                "outer i0 i1\n"
                                                "a0 = buffer b0 f32 read\n"
                                                "a1 = buffer b1 f32 write\n"
                                                "e0 = load f32 a0[i1] if 0 <= i1 < 4\n"
                                                "s0 = store f32 over: e0 -> a1[i1]\n",
                                                fault);
  made.programs = {program};
  made.packed.push_back({1, DType::F32, {4}, {1}, 0, {{0, 0, 4, {1}}}, 0});
  made.slots = {{plan::SlotClass::Input, 0, 0, 16},
                {plan::SlotClass::Weight, 0, 0, 16},
                {plan::SlotClass::Output, 0, 0, 16}};
  plan::Step step;
  step.arguments = {0, 1, 2};
  step.sources = {2};
  step.joined = {step};
  made.steps = {step};
  made.streams = {{{{1, 0, 1}}, {{0, 0, 16, 1, 1}}, {{0, 0, false, 16, 1}}, 0, 1}};
  made.states.resize(1);
  made.overlaps = {{0, 2}};
  made.align = plan::kSlotAlign, made.weight_bytes = 16;
  codegen::KernelSource source;
  source.text = "prelude kernel", source.prelude_bytes = 7;
  source.level = "v3", source.symbol = "k0_v3", source.flags = {"-O2"};
  source.numbers = {1, 2};
  plan.kernels.sources = {source};
  plan.unsearched = {sha256("a kernel")};
  plan.fixed_point.emplace();
  out.bytes = plan_bytes(plan, out.graph, kKey).value();
  return out;
}

// Edits, three bytes at least for each: places and what is there then.
Contents edited(Contents whole, Decisions decide) {
  while (!decide.done() && !whole.empty()) {
    const size_t at = decide.below(whole.size());
    const auto place = whole.begin() + static_cast<std::ptrdiff_t>(at);
    const size_t left = whole.size() - at;
    switch (decide.below(6)) {
    case 0:
      whole[at] = std::byte{decide.byte()};
      break;
    case 1: // lengths and numbers of nodes are small
      whole[at] = std::byte(uint8_t(whole[at]) + decide.below(9) - 4);
      break;
    case 2:
      whole.erase(place, place + static_cast<std::ptrdiff_t>(
                                     std::min<size_t>(left, 1 + decide.below(16))));
      break;
    case 3:
      whole.insert(place, 1 + decide.below(16), std::byte{decide.byte()});
      break;
    case 4: { // a part of it once more
      const size_t from = decide.below(whole.size());
      const size_t size = std::min(whole.size() - from, 1 + decide.below(64));
      const auto begin = whole.begin() + static_cast<std::ptrdiff_t>(from);
      const Contents part(begin, begin + static_cast<std::ptrdiff_t>(size));
      whole.insert(whole.begin() + static_cast<std::ptrdiff_t>(at), part.begin(),
                   part.end());
      break;
    }
    default:
      std::fill(place, place + static_cast<std::ptrdiff_t>(std::min<size_t>(left, 8)),
                decide.chance(128) ? std::byte{0xff} : std::byte{0});
    }
  }
  return whole;
}

} // namespace

// Behind the header that belongs to it, or with one of its own.
void fuzz_entry(Bytes bytes) {
  using namespace toolchain;
  constexpr uint64_t kMostValue = 1 << 20;
  if (bytes.size() % 2 != 0) return (void)value_of(std::as_bytes(bytes), kMostValue);
  uint64_t unpacked = 0;
  if (bytes.size() < sizeof unpacked) return;
  std::memcpy(&unpacked, bytes.data(), sizeof unpacked);
  const auto packed = std::as_bytes(bytes.subspan(sizeof unpacked));
  const EntryHeader header = entry_header(packed, unpacked);
  std::vector<std::byte> entry(sizeof header + packed.size());
  std::memcpy(entry.data(), &header, sizeof header);
  std::ranges::copy(packed, entry.begin() + sizeof header);
  // A size that nobody could believe is refused without a bound, too.
  const bool absurd = unpacked > uint64_t{1} << 32;
  const auto value = value_of(entry, absurd ? UINT64_MAX : kMostValue);
  if (!value) return;
  must(value->size() == unpacked, "a value is as large as its header says");
  must(value_of(entry_of(*value)) == *value, "a value that is stored comes back");
}

// Facts of a plan whose weights are what was read: there are none, of the graph's leaves.
static std::shared_ptr<ValueFacts> no_facts(const Graph& graph) {
  auto out = std::make_shared<ValueFacts>();
  with_traces(graph, out);
  return out;
}

// What is read as a plan is one that is written and read as the same.
void fuzz_plan(Bytes bytes) {
  static const Kept kKept = make_kept();
  const Contents changed = edited(kKept.bytes, Decisions(bytes));
  auto read = plan_from_bytes(changed, kKept.graph, kKey);
  if (!read) return;
  read->facts = no_facts(kKept.graph);
  const auto again = plan_bytes(*read, kKept.graph, kKey);
  must(again.has_value(), "a plan that was read can be kept");
  auto same = plan_from_bytes(*again, kKept.graph, kKey);
  if (same) same->facts = read->facts;
  must(same && plan_bytes(*same, kKept.graph, kKey) == again,
       "a plan that was read and kept is read as the same");
}

} // namespace svod::fuzz
