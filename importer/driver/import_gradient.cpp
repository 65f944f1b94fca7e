// The node Gradient: its attributes name values of the graph around it, y and the xs, and
// its inputs give the xs their values again.
#include "importer/driver/graph_import.h"
#include "importer/driver/support.h"
#include "importer/formula/gradient.h"

#include <algorithm>

namespace svod::importer {

namespace {

const ModelAttribute* find_attribute(const ModelNode& node, std::string_view name) {
  const auto found = std::ranges::find(node.attributes, name, &ModelAttribute::name);
  return found == node.attributes.end() ? nullptr : &*found;
}

bool is_known_name(const Scope& scope, const std::string& name) {
  for (const Scope* at = &scope; at; at = at->outer)
    if (at->values.contains(name) || at->initializers.contains(name)) return true;
  return false;
}

} // namespace

void add_gradient_names(const ModelNode& node,
                        std::unordered_set<std::string_view>& names) {
  if (!is_gradient(node.domain, node.op_type)) return;
  for (const ModelAttribute& attribute : node.attributes) {
    names.insert(attribute.strings.begin(), attribute.strings.end());
    if (attribute.name == "y") names.insert(attribute.s);
  }
}

Results GraphImport::import_gradient(const ModelNode& node,
                                     const std::vector<NodeId>& inputs,
                                     const ModelPlace& place, const Scope& scope) {
  const auto refuse = [&](Exit exit, const std::string& why) {
    fail(exit, why, place);
    return Results{};
  };
  const ModelAttribute *xs = find_attribute(node, "xs"), *y = find_attribute(node, "y");
  const ModelAttribute* zs = find_attribute(node, "zs");
  if (!xs || !y || xs->strings.empty())
    return refuse(Exit::InvalidModel, "it needs the attributes xs and y");
  std::vector<std::string> names = xs->strings;
  if (zs) names.insert(names.end(), zs->strings.begin(), zs->strings.end());
  if (names.size() != inputs.size())
    return refuse(Exit::InvalidModel, "it needs an input for each of xs and zs");
  names.push_back(y->s);
  Results values;
  for (const std::string& name : names) {
    if (!is_known_name(scope, name))
      return refuse(Exit::InvalidModel,
                    "nothing makes '" + escaped(name) + "', which its attributes name");
    values.push_back(look_up(scope, name, place));
    if (values.back() == kPoisoned) return {};
    if (values.back() == kNoNode || is_compound(values.back()) ||
        !is_float(g()[values.back()].dtype))
      return refuse(Exit::Unsupported, quoted(name) + " is no tensor of floating point");
  }
  const NodeId result = values.back();
  values.pop_back();
  if (values != inputs)
    return refuse(Exit::Unsupported, "its inputs are other values than xs and zs; only "
                                     "the gradient where y is computed is supported");
  std::string failure;
  values.resize(xs->strings.size());
  Results gradient = gradients(g(), result, values, failure);
  if (gradient.empty()) return refuse(Exit::Unsupported, failure);
  return gradient;
}

} // namespace svod::importer
