// The inputs and outputs of the model.
#pragma once

#include "importer/driver/import_state.h"
#include "importer/images/import_picture.h"
#include "importer/inputs/input_shapes.h"

namespace svod::importer {

class PortImport : ImportPart {
public:
  explicit PortImport(ImportState& state) : ImportPart(state) {}
  // False where a size of a state is none: nothing more can be said of the model then.
  [[nodiscard]] bool add_inputs(const InputShapes& shapes, Scope& scope);
  // What names of the inputs of which a run decides sizes stand for.
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
  // `presences`: ports of optionals that only the data decides, and whether they are
  // there.
  void add_output_value(const ModelValue& declared, NodeId id,
                        std::vector<std::pair<size_t, NodeId>>& presences);
  bool add_elements(ModelPort& port, const Compound& value);
  void add_extents();
  void add_input_values(const InputShapes& shapes, Scope& scope, bool states);
  // Behind the caller's inputs: the extents of those of which a run decides sizes.
  void add_input_extents(const InputShapes& shapes, const Scope& scope);
  void add_input_value(const InputValue& input, const InputShapes& shapes, Scope& scope);

  // picture_inputs.cpp
  void find_pictures(const InputShapes& shapes);
  void find_picture(const ImageSpec& spec, const InputShapes& shapes);

  // states.cpp
  void find_states();
  void add_state(const ModelPort& input, const ModelPort& output);

  // growing_states.cpp
  bool find_growing(const InputShapes& shapes);
  void add_counters();
  void count_along_inputs();
  NodeId rows_of_state(const std::string& output, NodeId id);
  void add_counted_rows();

  std::vector<std::pair<size_t, NodeId>> sized_outputs_; // whose sizes depend on data
  // Names of what stays from run to run: an input, and the output that it becomes.
  std::vector<std::pair<std::string, std::string>> states_;
  std::set<std::string> input_states_, output_states_;
  // States that grow, by the name of the input and of the output.
  struct Growing {
    int64_t axis = 0;
    std::string dimension; // of --dim
    int64_t room = 0;      // positions of its tensor along the axis
    NodeId all = kNoNode;  // the input with all its room
  };
  std::map<std::string, Growing> growing_;
  std::map<std::string, std::string> growing_outputs_; // the input of each
  // By the dimension along which they grow: how many rows they hold before and after.
  struct Rows {
    size_t counter = 0;
    NodeId after = kNoNode;
  };
  std::map<std::string, Rows> rows_;
  // An input that is given as a picture file, and the type that the model declares.
  struct PictureInput {
    Picture picture;
    DType dtype = DType::F32;
    Shape shape;
  };
  std::map<std::string, PictureInput> pictures_;
};

} // namespace svod::importer
