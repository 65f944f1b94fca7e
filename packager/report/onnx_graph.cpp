#include "packager/report/onnx_graph.h"

#include <algorithm>
#include <map>

namespace svod::packager {

using importer::ModelGraph;
using importer::ModelNode;

namespace {

// Who makes each value: a node, or -1 - the number of an input.
using Makers = std::map<std::string_view, int64_t>;

void add_reader(std::string_view value, const Makers& makers,
                std::vector<int64_t>& read) {
  const auto maker = makers.find(value);
  if (maker != makers.end() && std::ranges::count(read, maker->second) == 0)
    read.push_back(maker->second);
}

// A value of a graph inside hides one of the same name around it; that is rare, and an
// arrow too many then.
void add_reads(const ModelNode& node, const Makers& makers, std::vector<int64_t>& read) {
  for (const std::string& input : node.inputs) add_reader(input, makers, read);
  for (const importer::ModelAttribute& attribute : node.attributes) {
    if (!attribute.graph) continue;
    for (const ModelNode& inside : attribute.graph->nodes)
      add_reads(inside, makers, read);
    for (const importer::ModelValue& output : attribute.graph->outputs)
      add_reader(output.name, makers, read);
  }
}

} // namespace

void write_onnx_graph(JsonWriter& json, const importer::Model& model) {
  const ModelGraph& graph = model.graph;
  Makers makers;
  json.key("onnx").begin_object().key("inputs").begin_list();
  for (size_t i = 0; i < graph.inputs.size(); ++i) {
    makers.emplace(graph.inputs[i].name, -1 - static_cast<int64_t>(i));
    json.value(graph.inputs[i].name);
  }
  for (size_t i = 0; i < graph.nodes.size(); ++i)
    for (const std::string& output : graph.nodes[i].outputs)
      if (!output.empty()) makers.emplace(output, static_cast<int64_t>(i));
  json.end_list().key("nodes").begin_list();
  for (size_t i = 0; i < graph.nodes.size(); ++i) {
    const ModelNode& node = graph.nodes[i];
    const std::string op = importer::full_op_name(node);
    std::vector<int64_t> read;
    add_reads(node, makers, read);
    json.begin_object();
    json.pair("name", importer::place_path({static_cast<int64_t>(i), "", node.name, op}));
    json.pair("op", op).key("inputs").begin_list();
    for (int64_t maker : read) json.value(maker);
    json.end_list().end_object();
  }
  json.end_list().key("outputs").begin_list();
  for (const importer::ModelValue& output : graph.outputs) {
    const auto maker = makers.find(output.name);
    if (maker == makers.end()) continue; // a constant
    json.begin_object().pair("name", output.name).pair("of", maker->second).end_object();
  }
  json.end_list().end_object();
}

} // namespace svod::packager
