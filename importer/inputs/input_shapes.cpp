// Dimensions are unified by name: an input whose shape the user gives also fixes the
// named dimensions in it, for all inputs, and those that are expressions of them. Only
// then are leading dimensions taken as a batch of 1.
#include "importer/inputs/input_shapes.h"

#include "compiler/support/nearest.h"
#include "importer/inputs/dimension_expression.h"

#include <algorithm>
#include <set>

namespace svod::importer {

namespace {

std::string shape_text(const Shape& shape) {
  std::string text;
  for (size_t i = 0; i < shape.size(); ++i)
    text += (i ? "x" : "") + std::to_string(shape[i]);
  return text.empty() ? "scalar" : text;
}

std::string declared_text(const std::vector<ModelDim>& dims) {
  std::string text;
  for (size_t i = 0; i < dims.size(); ++i) {
    const bool known = dims[i].value.value_or(-1) != -1;
    text += i ? "x" : "";
    text += known                  ? std::to_string(*dims[i].value)
            : dims[i].name.empty() ? "?"
                                   : escaped(dims[i].name);
  }
  return text.empty() ? "scalar" : text;
}

std::string nearest_name(const std::string& name, std::set<std::string> names,
                         const std::set<std::string>& dimensions) {
  names.insert(dimensions.begin(), dimensions.end());
  names.erase("");
  const std::vector<std::string_view> words(names.begin(), names.end());
  return words.empty() ? "" : escaped(nearest_text(name, words), 400);
}

// Whether a node takes the value, in a graph inside as well.
bool reads(const ModelGraph& graph, const std::string& name) {
  const auto in_body = [&](const ModelAttribute& attribute) {
    return attribute.graph && reads(*attribute.graph, name);
  };
  const auto names_it = [&](const ModelValue& output) { return output.name == name; };
  return std::ranges::any_of(graph.outputs, names_it) ||
         std::ranges::any_of(graph.nodes, [&](const ModelNode& node) {
           return std::ranges::count(node.inputs, name) != 0 ||
                  std::ranges::any_of(node.attributes, in_body);
         });
}

class Binder {
public:
  Binder(const ModelGraph& graph, const ImportOptions& options, Diags& diags)
      : graph_(graph), options_(options), diags_(diags) {
    result_.values = input_values(graph, options, diags);
    for (const InputValue& value : result_.values)
      for (const ModelValue& tensor : value.tensors) inputs_.push_back(&tensor);
  }
  void bind_user();
  void bind_batch(bool expressions);
  std::optional<InputShapes> finish();

private:
  void bind_dimension(const std::string& name, int64_t value);
  static bool fits(const ModelValue& input, const Shape& shape);
  void bind_shape(const ModelValue& input, const Shape& shape);
  const Shape* given(const ModelValue& input) const;
  std::string open_dimension(const ModelValue& input, size_t axis) const;
  void open_sizes(const ModelValue& input, Shape& shape);
  void check_sizes(const std::set<std::string>& names,
                   const std::set<std::string>& dimensions);
  std::optional<SizeRange> size_of(const std::string& name) const;
  std::optional<int64_t> extent(const ModelDim& dim) const;
  void check_limits(const ModelValue& input, const Shape& shape);
  bool is_batch(const ModelDim& dim) const;
  void guess(const ModelValue& input);
  void note_guessed();
  std::string option(const ModelValue& input) const;
  void usage(const std::string& what) { diags_.error(Exit::Usage, what); }

  const ModelGraph& graph_;
  const ImportOptions& options_;
  Diags& diags_;
  std::vector<const ModelValue*> inputs_;
  std::vector<std::string>
      guessed_; // quoted names of inputs whose leading dimension is 1
  InputShapes result_;
};

const Shape* Binder::given(const ModelValue& input) const {
  for (const auto* shapes : {&options_.shapes, &options_.data_shapes})
    if (const auto found = shapes->find(input.name); found != shapes->end())
      return &found->second;
  return nullptr;
}

std::optional<int64_t> Binder::extent(const ModelDim& dim) const {
  // Exporters write -1 for "unknown" as well.
  if (dim.value && *dim.value != -1) return dim.value;
  const auto bound = result_.dimensions.find(dim.name);
  if (bound != result_.dimensions.end() && !dim.name.empty()) return bound->second;
  const std::optional<SizeRange> size = size_of(dim.name);
  if (!size || size->least != size->most || options_.sizes.contains(dim.name))
    return std::nullopt;
  return size->least;
}

// Of a dimension that is known, that a run decides, or that is an expression of such.
std::optional<SizeRange> Binder::size_of(const std::string& name) const {
  const auto stated = [&](const std::string& of) -> std::optional<SizeRange> {
    if (const auto open = options_.sizes.find(of); open != options_.sizes.end())
      return open->second;
    const auto bound = result_.dimensions.find(of);
    if (bound == result_.dimensions.end()) return std::nullopt;
    return SizeRange{bound->second, bound->second};
  };
  if (const auto size = stated(name)) return size;
  const auto expression = DimensionExpression::parse(name);
  return expression ? range_of(*expression, stated) : std::nullopt;
}

// What exporters write where a dimension has no name, and so for different ones.
static bool is_no_name(const std::string& name) {
  return name.empty() || name == "?" || name == "-1" || name == "None";
}

void Binder::bind_dimension(const std::string& name, int64_t value) {
  if (is_no_name(name)) return;
  const auto [at, added] = result_.dimensions.emplace(name, value);
  if (!added && at->second != value)
    usage("dimension " + quoted(name) + " is given as " + std::to_string(at->second) +
          " and " + std::to_string(value));
}

// Exported for a batch of 1 and wanted for 8: most models compute their sizes from their
// inputs, and those that do not fail at the node that holds the other size.
bool Binder::fits(const ModelValue& input, const Shape& shape) {
  return !input.dims ||
         std::ranges::equal(*input.dims, shape, [](const ModelDim& dim, int64_t extent) {
           return dim.value.value_or(-1) == -1 || *dim.value == extent;
         });
}

void Binder::bind_shape(const ModelValue& input, const Shape& shape) {
  if (!fits(input, shape)) {
    result_.replaced = true;
    diags_.warning("input " + quoted(input.name) + " is " + declared_text(*input.dims) +
                   " in the model and becomes " + shape_text(shape) +
                   ", as given; what the model declares of other shapes is ignored");
  }
  if (!input.dims || input.dims->size() != shape.size()) return;
  for (size_t i = 0; i < shape.size(); ++i)
    if (const ModelDim& dim = (*input.dims)[i];
        !dim.value && !options_.sizes.contains(dim.name))
      bind_dimension(dim.name, shape[i]);
}

std::string axis_name(const std::string& input, size_t axis) {
  return input + "[" + std::to_string(axis) + "]";
}

// Of ImportOptions::sizes; "": none of them is meant by this axis.
std::string Binder::open_dimension(const ModelValue& input, size_t axis) const {
  std::string name = axis_name(input.name, axis);
  if (options_.sizes.contains(name)) return name;
  if (!input.dims || axis >= input.dims->size() || (*input.dims)[axis].value) return "";
  name = (*input.dims)[axis].name;
  if (options_.sizes.contains(name)) return name;
  const auto expression = DimensionExpression::parse(name);
  const bool is_open =
      expression && !result_.dimensions.contains(name) &&
      std::ranges::any_of(expression->names(), [&](const std::string& of) {
        return options_.sizes.contains(of);
      });
  return is_open && size_of(name) ? name : "";
}

// The most that each open axis may have takes the place of what is known of it.
void Binder::open_sizes(const ModelValue& input, Shape& shape) {
  std::vector<std::string> names;
  bool any = false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    names.push_back(open_dimension(input, axis));
    if (names.back().empty()) continue;
    any = true;
    shape[axis] = size_of(names.back())->most;
    // What the model declares of other shapes may follow from the size that it states.
    result_.replaced |= input.dims && (*input.dims)[axis].value.value_or(-1) != -1;
  }
  if (any) result_.open[input.name] = std::move(names);
}

// Each name of --dim is a dimension that no --shape fixes, or an axis of an input.
void Binder::check_sizes(const std::set<std::string>& names,
                         const std::set<std::string>& dimensions) {
  std::set<std::string> axes;
  for (const ModelValue* input : inputs_)
    for (size_t axis = 0; input->dims && axis < input->dims->size(); ++axis)
      axes.insert(axis_name(input->name, axis));
  for (const auto& [name, range] : options_.sizes) {
    if (!axes.contains(name) && (name.empty() || !dimensions.contains(name)))
      usage("--dim: the model has no dimension " + quoted(name) +
            nearest_name(name, axes, dimensions));
    else if (options_.shapes.contains(name) && !names.contains(name))
      usage("dimension " + quoted(name) + " is given by --dim and by --shape");
  }
}

void Binder::bind_user() {
  std::set<std::string> names, dimensions;
  for (const InputValue& value : result_.values) names.insert(value.port.name);
  for (const ModelValue* input : inputs_) {
    names.insert(input->name);
    if (!input->dims) continue;
    for (const ModelDim& dim : *input->dims)
      if (!dim.value) dimensions.insert(dim.name);
  }
  for (const std::string& name : options_.absent)
    if (std::ranges::none_of(result_.values, [&](const InputValue& value) {
          return value.port.optional && value.port.name == name;
        }))
      usage("the model has no optional input " + quoted(name));
  for (const auto& [name, shape] : options_.shapes) {
    if (names.contains(name)) continue;
    if (!dimensions.contains(name) || name.empty())
      usage("the model has no input and no dimension " + quoted(name) +
            nearest_name(name, names, dimensions));
    else if (shape.size() != 1)
      usage(quoted(name) + " is a dimension, one number fixes it");
    else
      bind_dimension(name, shape[0]);
  }
  check_sizes(names, dimensions);
  for (const ModelValue* input : inputs_)
    if (const Shape* shape = given(*input)) bind_shape(*input, *shape);
}

// What is an expression of others follows from them.
void Binder::bind_batch(bool expressions) {
  for (const ModelValue* input : inputs_) {
    if (!input->dims || input->dims->empty() || given(*input)) continue;
    const ModelDim& leading = input->dims->front();
    if (leading.name.empty() || extent(leading) || !open_dimension(*input, 0).empty() ||
        DimensionExpression::parse(leading.name).has_value() != expressions)
      continue;
    result_.dimensions[leading.name] = 1;
  }
}

void Binder::check_limits(const ModelValue& input, const Shape& shape) {
  int64_t elements = 1;
  for (int64_t dim : shape)
    if (dim < 0)
      return diags_.error(Exit::InvalidModel, "input " + quoted(input.name) +
                                                  " has the negative dimension " +
                                                  std::to_string(dim));
    else if (dim > options_.limits.dim ||
             __builtin_mul_overflow(elements, std::max<int64_t>(dim, 1), &elements) ||
             elements > options_.limits.elements)
      return diags_.error(Exit::InvalidModel,
                          "input " + quoted(input.name) + " of shape " +
                              shape_text(shape) + " is over the limit of " +
                              std::to_string(options_.limits.elements) + " elements");
}

// What to type to fix the unknown dimensions of an input.
std::string Binder::option(const ModelValue& input) const {
  std::string by_name, by_shape = "--shape " + escaped(input.name) + "=";
  bool all_named = true;
  for (size_t i = 0; i < input.dims->size(); ++i) {
    const ModelDim& dim = (*input.dims)[i];
    const std::optional<int64_t> known = extent(dim);
    if (!known && dim.name.empty()) all_named = false;
    if (!known)
      by_name += (by_name.empty() ? "" : " ") + ("--shape " + escaped(dim.name) + "=N");
    by_shape += (i ? "x" : "") + (known ? std::to_string(*known) : i == 0 ? "1" : "N");
  }
  return all_named ? by_name : by_shape;
}

// A dimension that inputs of more dimensions lead with as well is a batch.
bool Binder::is_batch(const ModelDim& dim) const {
  return !dim.name.empty() && std::ranges::any_of(inputs_, [&](const ModelValue* input) {
    return input->dims && input->dims->size() > 1 &&
           input->dims->front().name == dim.name;
  });
}

// An unknown leading dimension becomes 1: a batch of one. Where it is all that an input
// has, and no batch, it counts bytes of a file or samples of a sound.
void Binder::guess(const ModelValue& input) {
  guessed_.push_back(quoted(input.name));
  if (input.dims->size() == 1 && !is_batch(input.dims->front()) &&
      reads(graph_, input.name))
    result_.lone.push_back(input.name);
}

void Binder::note_guessed() {
  if (guessed_.empty()) return;
  std::string names;
  for (size_t i = 0; i < guessed_.size(); ++i)
    names += (i == 0 ? "" : i + 1 == guessed_.size() ? " and " : ", ") + guessed_[i];
  const bool one = guessed_.size() == 1;
  diags_.note(
      one ? "the leading dimension of input " + names + " is unknown and becomes 1"
          : "the leading dimensions of inputs " + names + " are unknown and become 1");
}

std::optional<InputShapes> Binder::finish() {
  for (const ModelValue* input : inputs_) {
    Shape shape;
    if (const Shape* known = given(*input)) {
      shape = *known;
    } else if (!input->dims) {
      diags_.error(Exit::Unsupported, "the rank of input " + quoted(input->name) +
                                          " is unknown; use --shape " +
                                          escaped(input->name) + "=NxN...");
      continue;
    } else {
      bool unknown = false;
      for (const ModelDim& dim : *input->dims) {
        const bool leading = shape.empty();
        if (!open_dimension(*input, shape.size()).empty()) {
          shape.push_back(1); // open_sizes knows the most
          continue;
        }
        const std::optional<int64_t> known = extent(dim);
        unknown |= !known && !leading;
        shape.push_back(known.value_or(1));
        const auto bound_by_user = options_.shapes.contains(dim.name);
        if (leading && (!dim.value || *dim.value == -1) && shape[0] == 1 &&
            !bound_by_user)
          guess(*input);
      }
      if (unknown)
        diags_.error(Exit::Unsupported, "input " + quoted(input->name) +
                                            " has unknown dimensions; use " +
                                            option(*input));
    }
    open_sizes(*input, shape);
    check_limits(*input, shape);
    result_.inputs[input->name] = std::move(shape);
  }
  note_guessed();
  if (diags_.failed()) return std::nullopt;
  return std::move(result_);
}

} // namespace

std::optional<InputShapes> bind_input_shapes(const ModelGraph& graph,
                                             const ImportOptions& options, Diags& diags) {
  Binder binder(graph, options, diags);
  binder.bind_user();
  binder.bind_batch(false);
  binder.bind_batch(true);
  return binder.finish();
}

std::optional<Shape> declared_shape(const ModelValue& value,
                                    const std::map<std::string, int64_t>& dimensions) {
  if (value.kind != ModelValue::Kind::Tensor || !value.dims) return std::nullopt;
  Shape shape;
  for (const ModelDim& dim : *value.dims) {
    const auto bound = dimensions.find(dim.name);
    if (dim.value && *dim.value >= 0)
      shape.push_back(*dim.value);
    else if (!dim.name.empty() && bound != dimensions.end())
      shape.push_back(bound->second);
    else
      return std::nullopt;
  }
  return shape;
}

} // namespace svod::importer
