// Inputs that are picture files (--image). The program takes the bytes of a file, of
// which a run decides the number, as it does the size of an input of --dim; what the
// model calls the input is made of them.
#include "importer/driver/ports.h"

#include <algorithm>

namespace svod::importer {

namespace {

std::string type_text(const InputValue& input, const InputShapes& shapes) {
  const ModelValue& tensor = input.tensors.front();
  std::string out = onnx_type_name(tensor.onnx_type) + "[";
  for (int64_t dim : shapes.inputs.at(tensor.name))
    out += (out.back() == '[' ? "" : ",") + std::to_string(dim);
  return out + "]";
}

bool is_one_tensor(const InputValue& input) {
  return input.port.is_tensor() && input.tensors.size() == 1;
}

std::string named(const InputValue& input) { return "input " + quoted(input.port.name); }

} // namespace

void PortImport::find_pictures(const InputShapes& shapes) {
  for (const std::string& text : import_.options.images) {
    const auto spec = parse_image_spec(text);
    if (const std::string* fault = std::get_if<std::string>(&spec))
      import_.diags.error(Exit::Usage, "--image " + quoted(text) + ": " + *fault);
    else
      find_picture(std::get<ImageSpec>(spec), shapes);
  }
}

void PortImport::find_picture(const ImageSpec& spec, const InputShapes& shapes) {
  const auto fails = [&](const std::string& what) {
    import_.diags.error(Exit::Usage, "--image: " + what);
  };
  std::vector<const InputValue*> found;
  std::string names;
  for (const InputValue& input : shapes.values) {
    names += (names.empty() ? "" : ", ") + quoted(input.port.name);
    const bool may_be = is_one_tensor(input) &&
                        may_be_picture(shapes.inputs.at(input.tensors.front().name));
    if (spec.input.empty() ? may_be : input.port.name == spec.input)
      found.push_back(&input);
  }
  if (found.empty() && spec.input.empty() && shapes.values.size() == 1)
    found.push_back(&shapes.values.front()); // which says what is wrong with it
  if (found.empty() && !spec.input.empty())
    return fails("no input is called " + quoted(spec.input) + "; there are " + names);
  if (found.size() != 1) {
    std::string these;
    for (const InputValue* input : found)
      these += (these.empty() ? "" : ", ") + quoted(input->port.name);
    return fails((found.empty() ? "no input has the shape of one picture, as f32[1,3,224,"
                                  "224]; there are " +
                                      names
                                : "it may be for " + these) +
                 "; say which by NAME=...");
  }
  const InputValue& input = *found.front();
  if (!is_one_tensor(input)) return fails(named(input) + " is no tensor");
  const ModelValue& tensor = input.tensors.front();
  const std::string what = named(input) + " " + type_text(input, shapes) + ": ";
  const std::optional<DType> dtype = dtype_from_onnx(tensor.onnx_type);
  if (import_.options.values.contains(tensor.name))
    return fails(what + "it has one value only (--value)");
  const auto picture =
      fit_image_spec(spec, dtype.value_or(DType::String), shapes.inputs.at(tensor.name));
  if (const std::string* fault = std::get_if<std::string>(&picture))
    return fails(what + *fault);
  const PictureInput made{std::get<Picture>(picture), *dtype,
                          shapes.inputs.at(tensor.name)};
  if (!pictures_.emplace(tensor.name, made).second) fails(what + "it is given twice");
}

void PortImport::prepare_pictures(Scope& scope) {
  const PictureBound bound = picture_bound();
  ModelInterface& interface = import_.interface;
  for (const ModelPort& port : interface.inputs) {
    const auto picture = pictures_.find(port.name);
    if (picture == pictures_.end()) continue;
    const auto& [made, dtype, shape] = picture->second;
    const NodeId bytes = scope.values.at(port.name);
    interface.open_inputs[port.first] = {
        g().inputs().size(), {port.name + ".bytes"}, {}, {}};
    interface.pictures[port.first] = made.text;
    const NodeId count = g().add_input(port.name + ".shape", DType::I64, {1});
    g().open_source("--image " + port.name);
    scope.values[port.name] =
        prepared_picture(g(), made, dtype, shape, bytes, count, bound);
    g().close_source();
  }
  if (!pictures_.empty())
    import_.diags.note("a picture may have " + std::to_string(bound.pixels()) +
                       " pixels (--limit-image); of the memory for that a smaller one "
                       "takes only its share");
}

} // namespace svod::importer
