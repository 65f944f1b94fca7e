// The inputs and outputs of the model.
#pragma once

#include "importer/driver/import_state.h"
#include "importer/images/import_picture.h"
#include "importer/inputs/input_shapes.h"

namespace svod::importer {

class PortImport : ImportPart {
public:
  explicit PortImport(ImportState& state) : ImportPart(state) {}
  void add_inputs(const InputShapes& shapes, Scope& scope);
  // Behind the inputs: the extents of those of which a run decides sizes.
  void open_sizes(const InputShapes& shapes, Scope& scope);
  // Likewise, of those that are picture files, and what becomes of these.
  void prepare_pictures(Scope& scope);
  // `value_of`: what the name of an output of the model stands for.
  void add_outputs(const std::function<NodeId(const std::string&)>& value_of);
  // Behind the outputs: which of them are inputs of the next run.
  void link_states();

private:
  // fixed_inputs.cpp
  std::optional<std::vector<std::byte>> fixed_value(const std::string& name, DType dtype,
                                                    const Shape& shape);

  PictureBound picture_bound() const {
    return {import_.options.picture_height, import_.options.picture_width};
  }
  NodeId add_input(const ModelValue& tensor, const Shape& shape);
  NodeId add_complex_input(const ModelValue& tensor, const Shape& shape, DType part);
  NodeId add_string_input(const std::string& name, const Shape& shape);
  void add_output(const std::string& name, NodeId id);
  bool add_elements(ModelPort& port, const Compound& value);
  void add_extents();
  void add_input_value(const InputValue& input, const InputShapes& shapes, Scope& scope);

  // picture_inputs.cpp
  void find_pictures(const InputShapes& shapes);
  void find_picture(const ImageSpec& spec, const InputShapes& shapes);

  // states.cpp
  void find_states();
  void add_state(const ModelPort& input, const ModelPort& output);

  std::vector<std::pair<size_t, NodeId>> sized_outputs_; // whose sizes depend on data
  // Names of what stays from run to run: an input, and the output that it becomes.
  std::vector<std::pair<std::string, std::string>> states_;
  std::set<std::string> input_states_, output_states_;
  // An input that is given as a picture file, and the type that the model declares.
  struct PictureInput {
    Picture picture;
    DType dtype = DType::F32;
    Shape shape;
  };
  std::map<std::string, PictureInput> pictures_;
};

} // namespace svod::importer
