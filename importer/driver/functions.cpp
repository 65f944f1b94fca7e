// The bodies of standard operators are one ModelProto inside this program, written by
// extract_onnx.py and read by the reader of users' models.
#include "importer/driver/functions.h"

#include "compiler/support/check.h"
#include "importer/check/read_model.h"

#include <charconv>

namespace svod::importer {

// From the generated onnx_package.cpp.
extern const unsigned char kFunctionBodies[];
extern const size_t kFunctionBodiesSize;

namespace {

std::string key(const std::string& domain, const std::string& name,
                const std::string& overload) {
  return domain + '\0' + name + '\0' + overload;
}

struct StandardBody {
  int64_t first = 0, last = 0; // versions in which it holds
  Callable callable;
};

struct StandardBodies {
  Model model; // holds the functions
  std::map<std::pair<std::string, std::string>, std::vector<StandardBody>, std::less<>>
      bodies;
};

// "13-17" as versions.
void read_versions(const std::string& text, StandardBody& body) {
  const char* end = text.data() + text.size();
  const auto [dash, error] = std::from_chars(text.data(), end, body.first);
  SVOD_CHECK(error == std::errc() && dash != end && *dash == '-') << text;
  SVOD_CHECK(std::from_chars(dash + 1, end, body.last).ptr == end) << text;
}

StandardBodies load_standard_bodies() {
  StandardBodies loaded;
  Diags diags;
  std::optional<Model> model = read_model_bytes(
      {reinterpret_cast<const char*>(kFunctionBodies), kFunctionBodiesSize}, Limits{},
      diags);
  SVOD_CHECK(model.has_value()) << diags.text("function bodies");
  loaded.model = std::move(*model);
  for (const ModelFunction& function : loaded.model.functions) {
    StandardBody body;
    read_versions(function.overload, body);
    body.callable = {&function, function.opsets};
    loaded.bodies[{function.domain, function.name}].push_back(std::move(body));
  }
  return loaded;
}

} // namespace

FunctionTable::FunctionTable(const Model& model) {
  for (const ModelFunction& function : model.functions) {
    Callable callable{&function, function.opsets};
    // A function that does not import a domain means the model's version of it.
    callable.opsets.insert(model.opsets.begin(), model.opsets.end());
    by_key_[key(function.domain, function.name, function.overload)] = std::move(callable);
  }
}

const Callable* FunctionTable::find(const ModelNode& node) const {
  const auto found = by_key_.find(key(node.domain, node.op_type, node.overload));
  return found == by_key_.end() ? nullptr : &found->second;
}

const Callable* find_standard_body(std::string_view domain, std::string_view name,
                                   int64_t opset) {
  static const StandardBodies standard = load_standard_bodies();
  const auto found =
      standard.bodies.find(std::pair(std::string(domain), std::string(name)));
  if (found == standard.bodies.end()) return nullptr;
  for (const StandardBody& body : found->second)
    if (body.first <= opset && opset <= body.last) return &body.callable;
  return nullptr;
}

} // namespace svod::importer
