// Expressions: each is evaluated into a named variable where it is first needed, once per
// position of the register tile that it depends on. What does not depend on the lane axis
// is a scalar; the rest are vectors.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/expression_emitter.h"
#include "compiler/kernel/lane_facts.h"
#include "compiler/support/check.h"
#include "compiler/support/join.h"

#include <algorithm>

namespace svod::codegen {

void ExpressionEmitter::line(const std::string& text) {
  out_.append(2 * static_cast<size_t>(indent_), ' ');
  out_ += text;
  out_ += '\n';
}

void ExpressionEmitter::open(const std::string& head) {
  line(head + " {");
  ++indent_;
  frames_.emplace_back();
}

void ExpressionEmitter::close(const char* end) {
  frames_.pop_back();
  --indent_;
  line(end);
}

std::string ExpressionEmitter::type(DType dtype, bool vector) const {
  return (vector ? "v" : "") + compute_type(dtype);
}

std::string ExpressionEmitter::declare(const std::string& type, const std::string& init) {
  std::string name = fresh("t");
  line("const " + type + " " + name + " = " + init + ";");
  return name;
}

ExpressionEmitter::Value ExpressionEmitter::eval(ExprId id, const Point& p) {
  Point at = project(id, p);
  for (size_t i = frames_.size(); i-- > 0;)
    if (auto found = frames_[i].find({id, at}); found != frames_[i].end())
      return found->second;
  if (k_.exprs[id].kind == Expr::Kind::Load && load_neighbours(id, at))
    return frames_.back().at({id, at});
  Value v = make(id, at);
  frames_.back()[{id, at}] = v;
  return v;
}

std::string ExpressionEmitter::splat(const Value& v, DType dtype) const {
  return v.vector ? v.name : type(dtype, true) + "(" + v.name + ")";
}

std::string ExpressionEmitter::product(const std::vector<ExprId>& factors, const Point& p,
                                       bool vector) {
  std::string text;
  for (ExprId f : factors) {
    Value v = eval(f, p);
    text += (text.empty() ? "" : " * ") + (vector ? splat(v, k_.exprs[f].dtype) : v.name);
  }
  return text;
}

// All positions of the dot axis at once: four bytes of each lane, or of all lanes.
ExpressionEmitter::Value ExpressionEmitter::make_dot_load(const Expr& e, const Point& p) {
  bool vector = lane_dependent(e.index);
  std::string address =
      "a" + std::to_string(e.argument) + " + " + index_text(e.index, p, false);
  int64_t apart = 0;
  const bool lies_packed =
      k_.indices.affine_in(e.index, *k_.loops.dot, apart) && apart == 1;
  std::string value = (!vector       ? "load_dot("
                       : lies_packed ? "load_dots("
                                     : "interleave_dots(") +
                      address + ")";
  std::string guard = condition(e.bounds, p, false);
  if (!guard.empty()) value = guard + " ? " + value + " : i32(0)";
  return {declare(type(DType::I32, vector), value), vector};
}

// The same for what is made of such bytes: a function of kDot bytes per lane.
ExpressionEmitter::Value ExpressionEmitter::make_dot_map(const Expr& e, const Point& p) {
  const Value bytes = eval(e.inputs[0], p), other = eval(e.inputs[1], p);
  const std::string type = "DotBytes<" + compute_type(e.dtype) + ">";
  const std::string name = "op_" + std::string(info(e.op).text) + "_bytes";
  functions_[name] = "static SVOD_INLINE " + type + " " + name + "(" + type + " a, " +
                     type + " b) {\n  typedef " + type + " T;\n  return T(" +
                     std::string(info(e.op).cell) + ");\n}\n";
  return {declare("vi32", "vi32(" + name + "(" + type + "(" + bytes.name + "), " + type +
                              "(" + other.name + ")))"),
          true};
}

// Lanes a few elements apart, or neighbours of which some lanes in the middle are wanted:
// whole vectors and shuffles. Lanes further apart that are all wanted, or lie otherwise:
// no name.
ExpressionEmitter::Value
ExpressionEmitter::make_near_load(const Expr& e, const Point& p, int64_t step,
                                  const std::string& guard,
                                  const std::vector<Bound>& by_lane) {
  std::vector<ExprId> dynamic;
  k_.indices.collect_dynamic(e.index, dynamic);
  std::string low, high, name = "load";
  const bool near = step >= 1 && step <= how_.near_lanes;
  const bool apart = !near && step >= 1 && !by_lane.empty();
  if (!(near || apart) || !lane_range(by_lane, p, low, high) ||
      std::ranges::any_of(dynamic, [&](ExprId d) { return on_lanes(d); }))
    return {};
  std::string arguments =
      "a" + std::to_string(e.argument) + " + " + index_text(e.index, p, false);
  if (apart) {
    name += "_apart";
    arguments += ", " + std::to_string(step);
  } else {
    if (step != 1) name += "_strided";
    if (!by_lane.empty()) name += "_between";
    if (step != 1) name += "<" + std::to_string(step) + ">";
  }
  if (!by_lane.empty())
    arguments += ", " + low + ", " + high + ", " + stored_literal(e.dtype, e.bits);
  std::string value = from_store(e.dtype, name + "(" + arguments + ")"),
              vtype = type(e.dtype, true);
  if (!guard.empty())
    value = guard + " ? " + value + " : " + vtype + "(" + literal(e.dtype, e.bits) + ")";
  return {declare(vtype, value), true};
}

// Lanes that read elements of one vector: no name where they do not.
ExpressionEmitter::Value
ExpressionEmitter::make_shuffled_load(const Expr& e, const Point& p,
                                      const std::string& guard,
                                      const std::vector<Bound>& by_lane) {
  if (type(e.dtype, false) != type(DType::F32, false) || !by_lane.empty()) return {};
  const std::optional<ShuffledLanes> lanes = shuffled_lanes(k_, e);
  if (!lanes) return {};
  const std::string vtype = type(e.dtype, true),
                    all = from_store(e.dtype,
                                     "load(a" + std::to_string(e.argument) + " + " +
                                         index_text(lanes->block, p, false) + ")");
  std::string value = "take_lanes(" + all + ", lane_numbers<" + join(lanes->lanes) +
                      ">(i32(" + index_text(lanes->moved, p, false) + ")))";
  if (!guard.empty())
    value = guard + " ? " + value + " : " + vtype + "(" + literal(e.dtype, e.bits) + ")";
  return {declare(vtype, value), true};
}

ExpressionEmitter::Value ExpressionEmitter::make_load(const Expr& e, const Point& p) {
  if (k_.has_dot_axis() && k_.indices.depends_on(e.index, *k_.loops.dot))
    return make_dot_load(e, p);
  std::string base = "a" + std::to_string(e.argument), fill = literal(e.dtype, e.bits);
  std::vector<Bound> uniform, by_lane;
  split_bounds(e.bounds, p, uniform, by_lane);
  std::string guard = condition(uniform, p, false);
  bool vector = lane_dependent(e.index) || !by_lane.empty();
  if (!vector) {
    std::string element =
        from_store(e.dtype, base + "[" + index_text(e.index, p, false) + "]");
    if (!guard.empty()) element = guard + " ? " + element + " : " + fill;
    return {declare(type(e.dtype, false), element), false};
  }
  std::string vtype = type(e.dtype, true);
  int64_t step = 0;
  if (!k_.indices.affine_in(e.index, *k_.loops.lane, step)) step = 0;
  bool neighbours = step == 1;
  std::vector<ExprId> dynamic;
  k_.indices.collect_dynamic(e.index, dynamic);
  for (ExprId d : dynamic) neighbours &= !on_lanes(d);
  std::string count;
  bool partial = neighbours && e.bits == 0 && first_lane_count(by_lane, p, count);
  if (neighbours && (by_lane.empty() || partial)) {
    std::string address = base + " + " + index_text(e.index, p, false);
    std::string value =
        partial ? "load_part(" + address + ", " + count + ")" : "load(" + address + ")";
    value = from_store(e.dtype, value);
    if (!guard.empty()) value = guard + " ? " + value + " : " + vtype + "(" + fill + ")";
    return {declare(vtype, value), true};
  }
  if (Value near = make_near_load(e, p, step, guard, by_lane); !near.name.empty())
    return near;
  if (Value shuffled = make_shuffled_load(e, p, guard, by_lane); !shuffled.name.empty())
    return shuffled;
  for (ExprId d : dynamic) eval(d, p);
  std::string lane_guard = condition(by_lane, p, true);
  if (!guard.empty()) lane_guard += (lane_guard.empty() ? "" : " && ") + guard;
  std::string element =
      from_store(e.dtype, base + "[" + index_text(e.index, p, true) + "]");
  if (!lane_guard.empty()) element = lane_guard + " ? " + element + " : " + fill;
  std::string name = fresh("t");
  line(vtype + " " + name + ";");
  line("for (iptr l = 0; l < kLanes; ++l) " + name + "[l] = " + element + ";");
  return {name, true};
}

// Linkers keep one of all kernels' equal ones.
static constexpr char kCalled[] = "inline __attribute__((noinline)) ";

// A scalar function as a C++ function of its own: the cell of ops.def with its types.
std::string ExpressionEmitter::function_of(Op op, DType result,
                                           const std::vector<DType>& inputs, bool vector,
                                           bool called) {
  DType operand = op == Op::Select ? inputs[1] : inputs[0];
  std::string name = (called ? "call_" : "op_") + std::string(info(op).text) + "_" +
                     (vector ? "v" : "") + std::string(info(operand).text);
  std::string parameters;
  for (size_t i = 0; i < inputs.size(); ++i)
    parameters +=
        (i != 0 ? ", " : "") + type(inputs[i], vector) + " " + static_cast<char>('a' + i);
  std::string cell(info(op).cell);
  std::string body = "T(" + cell + ")";
  if (result == DType::Bool && operand != DType::Bool) body = cell;
  body = rounded(result, body);
  (called ? called_ : functions_)[name] =
      (called ? kCalled : "static SVOD_INLINE ") + type(result, vector) + " " + name +
      "(" + parameters + ") {\n  typedef " + type(operand, vector) + " T;\n  return " +
      body + ";\n}\n";
  return name;
}

ExpressionEmitter::Value ExpressionEmitter::make_map(const Expr& e, const Point& p) {
  if (std::optional<Value> half = make_high_product(e, p)) return *half;
  std::vector<Value> values;
  std::vector<DType> dtypes;
  bool vector = false;
  for (ExprId in : e.inputs) {
    values.push_back(eval(in, p));
    dtypes.push_back(k_.exprs[in].dtype);
    vector |= values.back().vector;
  }
  std::string arguments;
  for (size_t i = 0; i < values.size(); ++i)
    arguments +=
        (i != 0 ? ", " : "") + (vector ? splat(values[i], dtypes[i]) : values[i].name);
  const bool called =
      std::ranges::count(how_.called, static_cast<ExprId>(&e - k_.exprs.data())) != 0;
  std::string call =
      function_of(e.op, e.dtype, dtypes, vector, called) + "(" + arguments + ")";
  return {declare(type(e.dtype, vector), call), vector};
}

ExpressionEmitter::Value ExpressionEmitter::make_guard(const Expr& e, const Point& p) {
  Value child = eval(e.inputs[0], p);
  std::vector<Bound> uniform, by_lane;
  split_bounds(e.bounds, p, uniform, by_lane);
  if (uniform.empty() && by_lane.empty()) return child;
  std::string fill = literal(e.dtype, e.bits);
  bool vector = child.vector || !by_lane.empty();
  std::string guard = condition(uniform, p, false);
  if (by_lane.empty()) {
    std::string other = vector ? type(e.dtype, true) + "(" + fill + ")" : fill;
    return {declare(type(e.dtype, vector), guard + " ? " + child.name + " : " + other),
            vector};
  }
  std::string lane_guard = condition(by_lane, p, true);
  if (!guard.empty()) lane_guard += " && " + guard;
  std::string name = fresh("t");
  line(type(e.dtype, true) + " " + name + ";");
  line("for (iptr l = 0; l < kLanes; ++l) " + name + "[l] = " + lane_guard + " ? " +
       child.name + (child.vector ? "[l]" : "") + " : " + fill + ";");
  return {name, true};
}

ExpressionEmitter::Value ExpressionEmitter::make_position(const Expr& e, const Point& p) {
  std::string element = compute_type(e.dtype);
  if (!lane_dependent(e.index)) {
    std::string at = element + "(" + index_text(e.index, p, false) + ")";
    return {declare(type(e.dtype, false), at), false};
  }
  std::string name = fresh("t");
  line(type(e.dtype, true) + " " + name + ";");
  line("for (iptr l = 0; l < kLanes; ++l) " + name + "[l] = " + element + "(" +
       index_text(e.index, p, true) + ");");
  return {name, true};
}

static std::string cast_text(DType from, DType to, const std::string& x) {
  if (to == DType::Bool) return "to_bool_(" + x + ")";
  if (!is_narrow_float(to)) return "convert_<" + compute_type(to) + ">(" + x + ")";
  std::string narrow =
      from == DType::F64 ? "odd_float(" + x + ")" : "convert_<f32>(" + x + ")";
  return rounded(to, narrow);
}

ExpressionEmitter::Value ExpressionEmitter::make_cast(const Expr& e, const Point& p) {
  if (std::optional<Value> byte = make_byte_cast(e, p)) return *byte;
  if (std::optional<Value> byte = make_narrow_cast(e, p)) return *byte;
  Value x = eval(e.inputs[0], p);
  DType from = k_.exprs[e.inputs[0]].dtype;
  return {declare(type(e.dtype, x.vector), cast_text(from, e.dtype, x.name)), x.vector};
}

ExpressionEmitter::Value ExpressionEmitter::make(ExprId id, const Point& p) {
  const Expr& e = k_.exprs[id];
  switch (e.kind) {
  case Expr::Kind::Load:
    return make_load(e, p);
  case Expr::Kind::Constant:
    return {literal(e.dtype, e.bits), false};
  case Expr::Kind::Position:
    return make_position(e, p);
  case Expr::Kind::Map:
    if (k_.has_dot_axis() && depends(id, *k_.loops.dot) && byte_size(e.dtype) == 1)
      return make_dot_map(e, p);
    return make_map(e, p);
  case Expr::Kind::Guard:
    return make_guard(e, p);
  case Expr::Kind::Local: {
    Point at = project(id, p);
    auto found = locals_.find({e.stage, at});
    SVOD_CHECK(found != locals_.end()) << "local of stage " << e.stage << " is not there";
    return found->second;
  }
  case Expr::Kind::Cast:
    return make_cast(e, p);
  case Expr::Kind::Bitcast: {
    Value x = eval(e.inputs[0], p);
    DType from = k_.exprs[e.inputs[0]].dtype;
    std::string stored = (x.vector ? "v" : "") + store_type(e.dtype);
    std::string value = "bits_<" + stored + ">(" + to_store(from, x.name) + ")";
    return {declare(type(e.dtype, x.vector), from_store(e.dtype, value)), x.vector};
  }
  case Expr::Kind::Descend:
    return make_descend(id, p);
  case Expr::Kind::Checked: {
    Value x = eval(e.inputs[0], p);
    std::string call = "checked(" + x.name + ", " + std::to_string(e.limit) + "u, bad)";
    return {declare(type(e.dtype, x.vector), call), x.vector};
  }
  }
  SVOD_CHECK(false) << "unknown expression";
  return {};
}

} // namespace svod::codegen
