// The key is compared in full when an entry is read: its digest finds the entry and
// proves nothing. Of weights it has types and shapes; what passes ask of their values
// (they fold them, test them for powers of two, measure how an algorithm rounds them) the
// entry says as facts, with the recipes of what is computed from weights.
//
// Ids of nodes decide the order in which passes look at them, so the key has that order:
// a model whose nodes are listed in another order has an equal `svod-pack key`, and an
// entry of its own.
#include "compiler/stored_plan.h"

#include "compiler/ir/digest.h"
#include "compiler/ir/verify.h"
#include "compiler/support/byte_form.h"
#include "compiler/support/check.h"
#include "compiler/value_questions.h"

#include <algorithm>
#include <numeric>

namespace svod {

static_assert(kFieldCount<codegen::KernelSource> == 9, "with_parts() names them all");
static_assert(kFieldCount<ScheduledKernel> == 2, "with_parts() names both bases");

namespace {

// The names of ONNX nodes, and the input and output names, stay out where each node of
// the graph says by itself where it comes from. A body has names of its own, and reports
// on fixed-point layers hold some: there they are part of the key.
bool keeps_names(const Graph& graph, const CompileOptions& options) {
  return graph.body_count() != 0 ||
         std::ranges::all_of(options.target.levels, &Level::fixed);
}

// The ONNX nodes of a graph by what they made: nodes of equal lists are told apart by
// nothing.
struct Provenance {
  std::vector<int32_t> order;              // numbers in source_names(), those that made
                                           // a live node alone
  std::vector<std::vector<uint64_t>> made; // by place in `order`: node numbers

  explicit Provenance(const Graph& graph) {
    std::vector<std::vector<uint64_t>> by_source(graph.source_names().size());
    const std::vector<NodeId> walk = walk_order(graph);
    const auto note = [&](NodeId id, uint64_t number) {
      for (int32_t source : graph.sources(id))
        by_source[static_cast<size_t>(source)].push_back(number);
    };
    for (size_t i = 0; i < walk.size(); i++) note(walk[i], i);
    for (size_t i = 0; i < graph.inputs().size(); i++)
      note(graph.inputs()[i].node, walk.size() + i);
    for (size_t i = 0; i < by_source.size(); i++)
      if (!by_source[i].empty()) order.push_back(static_cast<int32_t>(i));
    std::ranges::stable_sort(order, {}, [&](int32_t source) {
      return by_source[static_cast<size_t>(source)];
    });
    for (int32_t source : order)
      made.push_back(std::move(by_source[static_cast<size_t>(source)]));
  }
};

void put_target(ByteWriter& key, const Target& target) {
  key.put(target.alias);
  key.put(target.triple);
  key.put(target.kind);
  for (const Level& level : target.levels) {
    key.put(level.name);
    key.put(level.flags);
    key.put(level.machine.name);
    key.put(level.small);
    key.put(level.tf32);
  }
}

// Those of the passes; the rest hands something out.
void put_options(ByteWriter& key, const CompileOptions& options) {
  key.put(options.exact);
  key.put(options.one_thread);
  key.put(uint64_t{options.fusion_budget});
  key.put(uint64_t{options.equal_budget});
  key.put(options.as_written);
  key.put(options.most_weights);
  key.put(options.for_speed);
  key.put(options.work_for_ram);
  key.put(options.most_arena);
  key.put(options.pools);
  key.put(options.changes);
  key.put(uint64_t{options.search_budget});
  key.put(options.unsearched);
}

// The order of ids among live nodes.
void put_order(ByteWriter& key, const Graph& graph) {
  const std::vector<NodeId> walk = walk_order(graph);
  std::vector<uint64_t> by_id(walk.size());
  std::iota(by_id.begin(), by_id.end(), 0);
  std::ranges::sort(by_id, {}, [&](uint64_t i) { return walk[i]; });
  key.put(by_id);
}

using Blobs = std::map<Digest, Blob>;

void collect_blobs(const Graph& graph, Blobs& out) {
  for (uint32_t i = 0; i < graph.blob_count(); i++)
    out.emplace(graph.blob(i).digest, graph.blob(i));
  for (uint32_t i = 0; i < graph.body_count(); i++) collect_blobs(*graph.body(i), out);
}

// How the bytes of a blob are had again: they are in the entry, are a blob of the graph
// that asks, or what a recipe makes of its weights.
enum class BlobForm : uint8_t { Kept, Known, Made };

void put_blob(ByteWriter& out, const Blob& blob, const Blobs& known) {
  if (blob.trace.facts) {
    out.put(BlobForm::Made);
    out.put(blob.trace.node);
    return;
  }
  const bool is_known = known.contains(blob.digest);
  out.put(is_known ? BlobForm::Known : BlobForm::Kept);
  out.put(blob.digest);
  if (is_known) return;
  out.put(uint64_t{blob.size()});
  out.raw(blob.unnoted_bytes());
}

void put_graph(ByteWriter& out, const Graph& graph, const Blobs& known) {
  out.put(uint64_t{graph.blob_count()});
  for (uint32_t i = 0; i < graph.blob_count(); i++) put_blob(out, graph.blob(i), known);
  out.put(uint64_t{graph.body_count()});
  for (uint32_t i = 0; i < graph.body_count(); i++) put_graph(out, *graph.body(i), known);
  out.put(uint64_t{graph.size()});
  for (NodeId id = 0; id < graph.size(); id++) {
    out.put(graph[id]);
    out.put(graph.sources(id));
  }
  out.put(uint64_t{graph.inputs().size()});
  for (const GraphInput& input : graph.inputs()) out.put(input);
  out.put(uint64_t{graph.outputs().size()});
  for (const GraphOutput& output : graph.outputs()) out.put(output);
  out.put(graph.source_names());
}

// What a graph is read with.
struct Given {
  Blobs known;                 // by digest
  std::map<NodeId, Blob> made; // by recipe
};

template <class Key>
std::optional<Blob> find(const std::map<Key, Blob>& blobs, const Key& key) {
  const auto at = blobs.find(key);
  return at == blobs.end() ? std::nullopt : std::optional(at->second);
}

std::optional<Blob> get_blob(ByteReader& in, const Given& given) {
  const auto form = in.get<BlobForm>();
  if (form == BlobForm::Made) return find(given.made, in.get<NodeId>());
  const auto digest = in.get<Digest>();
  if (form == BlobForm::Known) return find(given.known, digest);
  const std::span<const std::byte> bytes = in.raw(in.get<uint64_t>());
  auto owner = std::make_shared<const std::vector<std::byte>>(bytes.begin(), bytes.end());
  const std::span<const std::byte> view = *owner;
  return Blob(view, std::move(owner), digest);
}

// Blobs that have become equal would be one.
void get_blobs(ByteReader& in, Graph& graph, const Given& given) {
  const auto count = in.get<uint64_t>();
  for (uint64_t i = 0; i < count && !in.failed(); i++) {
    const std::optional<Blob> blob = get_blob(in, given);
    if (!blob || graph.add_blob(*blob) != i) in.fail();
  }
}

// Whether a node's operator and type are some, and the bodies and bytes that it names
// are there: a body's digest follows them.
bool is_of(const Graph& g, const Node& node) {
  constexpr size_t kTypes = 0
#define DTYPE(...) +1
#include "compiler/ir/dtypes.def"
      ;
  if (static_cast<size_t>(node.op) >= op_count() ||
      static_cast<size_t>(node.dtype) >= kTypes)
    return false;
  const size_t bodies = body_count(node.op), named = bodies + has_blob(node.op);
  if (node.payload.size() < named) return false;
  for (size_t i = 0; i < named; i++)
    if (static_cast<uint64_t>(node.payload[i]) >=
        (i < bodies ? g.body_count() : g.blob_count()))
      return false;
  return true;
}

// Everything is interned in the order of its numbers, so that it has them again.
void get_graph(ByteReader& in, Graph& graph, const Given& given) {
  get_blobs(in, graph, given);
  for (auto count = in.get<uint64_t>(); count > 0 && !in.failed(); count--) {
    auto body = std::make_shared<Graph>();
    get_graph(in, *body, given);
    if (!in.failed()) graph.add_body(std::move(body));
  }
  const auto nodes = in.get<uint64_t>();
  std::vector<std::vector<int32_t>> sources;
  for (uint64_t i = 0; i < nodes && !in.failed(); i++) {
    auto node = in.get<Node>();
    sources.push_back(in.get<std::vector<int32_t>>());
    const auto before = [&](NodeId input) { return input < i; };
    if (in.failed() || !std::ranges::all_of(node.inputs, before) || !is_of(graph, node))
      return in.fail();
    if (graph.intern(std::move(node)) != i) return in.fail();
  }
  for (auto count = in.get<uint64_t>(); count > 0 && !in.failed(); count--) {
    auto input = in.get<GraphInput>();
    if (input.node >= graph.size()) return in.fail();
    const Node node = graph[input.node];
    graph.add_input(std::move(input.name), node.dtype, node.shape, input.seen);
  }
  for (auto count = in.get<uint64_t>(); count > 0 && !in.failed(); count--) {
    auto output = in.get<GraphOutput>();
    if (output.node >= graph.size()) return in.fail();
    graph.add_output(std::move(output.name), output.node, output.seen);
  }
  for (const std::string& name : in.get<std::vector<std::string>>())
    graph.open_source(name);
  graph.close_source();
  for (size_t i = 0; i < sources.size() && !in.failed(); i++)
    graph.credit(static_cast<NodeId>(i), sources[i]);
}

template <class Change> void for_each_list(plan::Step& step, const Change& change) {
  change(step.sources);
  for (plan::Step& joined : step.joined) for_each_list(joined, change);
}

// `plan` with the names of `graph` in place of those that it was made with.
void rename(plan::Plan& plan, const Graph& graph, const std::vector<int32_t>& made_with,
            const Provenance& now) {
  std::map<int32_t, int32_t> to;
  for (size_t i = 0; i < made_with.size(); i++) to[made_with[i]] = now.order[i];
  const auto change = [&](std::vector<int32_t>& list) {
    for (int32_t& source : list) source = to.at(source);
    std::ranges::sort(list);
  };
  plan.graph.rename(graph, change);
  for (plan::Step& step : plan.steps) for_each_list(step, change);
}

// Whether the lists hold nothing but these.
bool holds_only(const plan::Plan& plan, const std::vector<int32_t>& made_with) {
  const std::set<int32_t> known(made_with.begin(), made_with.end());
  bool all = true;
  const auto look = [&](const std::vector<int32_t>& list) {
    for (int32_t source : list) all = all && known.contains(source);
  };
  for (NodeId id = 0; id < plan.graph.size(); id++) look(plan.graph.sources(id));
  for (plan::Step step : plan.steps) for_each_list(step, look);
  return all;
}

// The plan but for its graph.
template <class Plan, class Visit> void with_rest(Plan& plan, const Visit& visit) {
  with_fields(plan, [&](auto&, auto&... rest) { (visit(rest), ...); });
}

// Kernels begin with a few preludes, half of all text: each is there once.
void put_sources(ByteWriter& out, const std::vector<codegen::KernelSource>& sources) {
  std::map<std::string, uint64_t> preludes;
  for (const codegen::KernelSource& source : sources)
    preludes.emplace(source.text.substr(0, source.prelude_bytes), preludes.size());
  out.put(preludes);
  out.put(uint64_t{sources.size()});
  for (codegen::KernelSource source : sources) {
    out.put(preludes.at(source.text.substr(0, source.prelude_bytes)));
    source.text.erase(0, source.prelude_bytes);
    out.put(source);
  }
}

void get_sources(ByteReader& in, std::vector<codegen::KernelSource>& sources) {
  std::map<uint64_t, std::string> preludes;
  for (auto& [text, number] : in.get<std::map<std::string, uint64_t>>())
    preludes[number] = text;
  for (auto count = in.get<uint64_t>(); count > 0 && !in.failed(); count--) {
    const auto prelude = preludes.find(in.get<uint64_t>());
    if (prelude == preludes.end()) return in.fail();
    codegen::KernelSource& source = sources.emplace_back();
    in.get(source);
    source.text.insert(0, prelude->second);
  }
}

void put_record(ByteWriter& out, const ValueRecord& record) {
  put_graph(out, record.recipes, {});
  out.put(record.facts);
  out.put(record.leaves);
}

// The recipes whose values the graph of a plan has as blobs.
std::set<NodeId> wanted_by(const Graph& graph) {
  std::set<NodeId> out;
  for (uint32_t i = 0; i < graph.blob_count(); i++)
    if (graph.blob(i).trace.facts) out.insert(graph.blob(i).trace.node);
  return out;
}

ValueRecord get_record(ByteReader& in) {
  ValueRecord out;
  get_graph(in, out.recipes, {});
  in.get(out.facts);
  in.get(out.leaves);
  const auto exists = [&](NodeId id) { return id < out.recipes.size(); };
  const bool fits = std::ranges::all_of(out.facts, [&](const ValueFact& fact) {
    const bool names_type = fact.question != ValueQuestion::PowersOfTwo ||
                            (fact.number >= 0 && fact.number < kDTypes);
    return fact.question <= kLastQuestion && names_type && exists(fact.value) &&
           (fact.other == kNoNode || exists(fact.other)) &&
           (fact.question != ValueQuestion::Same || exists(fact.other));
  });
  if (in.failed() || !fits || !verify(out.recipes).empty()) in.fail();
  return out;
}

// What a plan of this graph is read with; nothing where it is not one for its weights.
std::optional<Given> get_given(ByteReader& in, const Graph& graph) {
  Given out;
  collect_blobs(graph, out.known);
  if (!traces_values(graph)) return out;
  const ValueRecord record = get_record(in);
  const auto wanted = in.get<std::set<NodeId>>();
  if (in.failed() || (!wanted.empty() && *wanted.rbegin() >= record.recipes.size()))
    return std::nullopt;
  auto made = values_of(record, graph, wanted);
  if (!made) return std::nullopt;
  out.made = std::move(*made);
  return out;
}

// Of a traced graph only functions of calls are known by their digests: a weight of the
// plan that has just the bytes of one of the model is none of it.
Blobs known_by_digest(const Graph& graph) {
  Blobs out;
  collect_blobs(graph, out);
  if (traces_values(graph))
    for (uint32_t blob : leaf_blobs(graph)) out.erase(graph.blob(blob).digest);
  return out;
}

} // namespace

bool traces_values(const Graph& graph) { return graph.body_count() == 0; }

std::string stored_plan_key(const Graph& graph, const CompileOptions& options,
                            const std::string& build) {
  ByteWriter key;
  key.put(std::string("svod plan 3"));
  key.put(build);
  key.put(graph_encoding(graph, {.weight_values = !traces_values(graph)}));
  put_order(key, graph);
  put_target(key, options.target);
  put_options(key, options);
  if (keeps_names(graph, options)) {
    key.put(graph.source_names());
    for (const GraphInput& input : graph.inputs()) key.put(input.name);
    for (const GraphOutput& output : graph.outputs()) key.put(output.name);
    for (NodeId id : graph.live_nodes()) key.put(graph.sources(id));
  } else {
    key.put(Provenance(graph).made);
  }
  const std::vector<std::byte>& bytes = key.bytes();
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

std::optional<std::vector<std::byte>>
plan_bytes(const CompiledPlan& plan, const Graph& graph, const std::string& key) {
  const bool is_same = graph.source_names() == plan.kernels.plan.graph.source_names();
  Provenance made_with(graph);
  if (graph.body_count() == 0 &&
      (!is_same || !holds_only(plan.kernels.plan, made_with.order)))
    return std::nullopt;
  const bool traces = traces_values(graph);
  SVOD_CHECK(!traces || plan.facts) << "a plan without facts of its weights";
  if (traces && plan.facts->is_lost()) return std::nullopt;
  const Blobs known = known_by_digest(graph);
  ByteWriter out;
  out.put(key);
  out.put(made_with.order);
  if (traces) {
    put_record(out, record_of(*plan.facts, graph));
    out.put(wanted_by(plan.kernels.plan.graph));
  }
  put_graph(out, plan.kernels.plan.graph, known);
  with_rest(plan.kernels.plan, [&](const auto& field) { out.put(field); });
  put_sources(out, plan.kernels.sources);
  out.put(plan.equal);
  out.put(plan.searched);
  out.put(plan.unsearched);
  out.put(plan.fixed_point);
  return out.take();
}

std::optional<CompiledPlan> plan_from_bytes(std::span<const std::byte> bytes,
                                            const Graph& graph, const std::string& key) {
  ByteReader in(bytes);
  if (in.get<std::string>() != key || in.failed()) return std::nullopt;
  const auto made_with = in.get<std::vector<int32_t>>();
  const std::optional<Given> given = get_given(in, graph);
  if (!given) return std::nullopt;
  CompiledPlan out;
  get_graph(in, out.kernels.plan.graph, *given);
  with_rest(out.kernels.plan, [&](auto& field) { in.get(field); });
  get_sources(in, out.kernels.sources);
  in.get(out.equal);
  in.get(out.searched);
  in.get(out.unsearched);
  in.get(out.fixed_point);
  if (in.failed() || !in.at_end()) return std::nullopt;
  if (graph.body_count() != 0) return out;
  const Provenance now(graph);
  const Graph& kept = out.kernels.plan.graph;
  if (now.order.size() != made_with.size() || !holds_only(out.kernels.plan, made_with) ||
      kept.inputs().size() != graph.inputs().size() ||
      kept.outputs().size() != graph.outputs().size())
    return std::nullopt;
  rename(out.kernels.plan, graph, made_with, now);
  return out;
}

} // namespace svod
