// Models: from bytes, or drawn from the table of operators (draw_model.cpp). What the
// importer takes is simplified and evaluated, under limits that keep a case short.
#include "compiler/ir/evaluate.h"
#include "compiler/rewrite/simplify.h"
#include "importer/check/read_model.h"
#include "importer/driver/import.h"
#include "tests/fuzz/draw_model.h"
#include "tests/support/compare.h"

#include <cstring>

namespace svod::fuzz {

namespace {

using namespace importer;

constexpr int64_t kMostElements = 1 << 16; // of all nodes of a graph that is evaluated

ImportOptions options() {
  ImportOptions out;
  out.limits.structure_bytes = 1 << 22;
  out.limits.graph_nodes = 4000;
  out.limits.unrolled_nodes = 1000;
  out.limits.sequence_items = 4096;
  out.limits.loop_iterations = 32;
  out.limits.region_iterations = 64;
  out.limits.elements = 1 << 20;
  out.limits.folded_bytes = 1 << 20;
  out.limits.external_bytes = 0;
  out.limits.image_height = out.limits.image_width = 32;
  out.limits.size = 16;
  return out;
}

bool is_small(const Graph& graph) {
  int64_t elements = 0;
  for (NodeId id = 0; id < graph.size(); ++id) {
    // A call is C++ text, which nobody evaluates.
    if (graph[id].op == Op::Call || has_body(graph[id].op)) return false;
    elements += element_count(graph[id].shape);
    if (elements > kMostElements) return false;
  }
  return true;
}

bool is_exact(const Graph& graph) {
  for (NodeId id = 0; id < graph.size(); ++id)
    if (is_float(graph[id].dtype)) return false;
  return true;
}

// Bytes that are small numbers of most types.
std::vector<Tensor> inputs_of(const Graph& graph) {
  std::vector<Tensor> out;
  for (const GraphInput& input : graph.inputs()) {
    const Node& node = graph[input.node];
    std::vector<double> values;
    for (int64_t i = 0; i < element_count(node.shape); ++i)
      values.push_back(node.dtype == DType::Bool ? static_cast<double>(i % 2)
                                                 : static_cast<double>(i % 3));
    out.push_back(test::make_tensor(node.dtype, node.shape, values));
  }
  return out;
}

void check_graph(const Graph& graph) {
  const Graph simple = rewrite::simplify(graph);
  must(simple.outputs().size() == graph.outputs().size(), "simplify keeps the outputs");
  for (size_t i = 0; i < graph.outputs().size(); ++i) {
    const Node& before = graph[graph.outputs()[i].node];
    const Node& after = simple[simple.outputs()[i].node];
    must(before.dtype == after.dtype && before.shape == after.shape,
         "simplify keeps types and shapes");
  }
  if (!is_small(graph) || !is_small(simple)) return;
  const std::vector<Tensor> inputs = inputs_of(graph);
  const Evaluated want = evaluate(graph, inputs), got = evaluate(simple, inputs);
  // A rule may drop a check of an index whose value nobody uses.
  if (want.failed != kNoNode) return;
  must(got.failed == kNoNode, "what runs runs simplified");
  if (!is_exact(graph) || !is_exact(simple)) return;
  for (size_t i = 0; i < want.outputs.size(); ++i) {
    const std::string fault =
        test::compare_tensors(got.outputs[i], want.outputs[i], 0, 0);
    must(fault.empty(), "simplify keeps values: " + fault);
  }
}

void check_model_bytes(const std::string& bytes) {
  const ImportOptions how = options();
  Diags diags;
  const auto model = read_model_bytes(bytes, how.limits, diags);
  std::optional<Graph> graph;
  ModelInterface interface;
  if (model) graph = import_model(*model, how, diags, &interface);
  must(graph.has_value() != diags.failed(), "a graph, or an error");
  const Exit exit = diags.exit();
  must(exit == Exit::Done || exit == Exit::InvalidModel || exit == Exit::Usage ||
           exit == Exit::Unsupported || exit == Exit::File,
       "an exit code of the table");
  for (char c : diags.text("m"))
    must(c == '\n' || (c >= 0x20 && c < 0x7f), "messages are printable");
  if (graph) check_graph(*graph);
}

} // namespace

void fuzz_model(Bytes bytes) { check_model_bytes({bytes.begin(), bytes.end()}); }

void fuzz_operators(Bytes bytes) { check_model_bytes(draw_model(bytes)); }

} // namespace svod::fuzz
