// Expressions of a kernel as C++: statements that give values names, and the text of
// indices and conditions.
#pragma once

#include "compiler/codegen/marked_text.h"
#include "compiler/codegen/tile_scope.h"

#include <map>
#include <optional>

namespace svod::codegen {

class ExpressionEmitter : public TileScope {
public:
  using TileScope::TileScope;

protected:
  struct Value {
    std::string name;
    bool vector = false;
  };
  // A byte by the number of another one.
  struct Lookup {
    std::string name; // of the table
    ExprId source = 0;
  };

  // A number that may differ between kernels of one text (marked_text.h).
  std::string number(int64_t value) const {
    return marks_ ? marked(NumberForm::Plain, {{1, value}}) : std::to_string(value);
  }
  bool marks_ = false;

  // Lines. What is named inside of a block is forgotten at its end.
  void line(const std::string& text);
  void open(const std::string& head);
  void close(const char* end = "}");
  std::string fresh(const char* prefix) { return prefix + std::to_string(next_++); }
  std::string declare(const std::string& type, const std::string& init);
  std::string type(DType dtype, bool vector) const;

  // Values: computed where they are first asked for.
  Value eval(ExprId id, const Point& p);
  // Where a load is read with its neighbours: names all of them, and says so.
  virtual bool load_neighbours(ExprId, const Point&) { return false; }
  std::string splat(const Value& v, DType dtype) const;
  // The factors' product as text.
  std::string product(const std::vector<ExprId>& factors, const Point& p, bool vector);
  const Lookup* lookup_of(ExprId id);
  // The name of a scalar function for these types.
  std::string function_of(Op op, DType result, const std::vector<DType>& inputs,
                          bool vector, bool called = false);

  // Indices, and the bounds that do not hold for certain.
  std::string index_text(const Index& index, const Point& p, bool lanewise);
  std::string condition(const std::vector<Bound>& bounds, const Point& p, bool lanewise);
  void split_bounds(const std::vector<Bound>& bounds, const Point& p,
                    std::vector<Bound>& uniform, std::vector<Bound>& by_lane) const;
  // When the bounds cut the vector after some first lanes: their number as text.
  bool first_lane_count(const std::vector<Bound>& bounds, const Point& p,
                        std::string& count);

  using Frame = std::map<std::pair<ExprId, Point>, Value>;
  std::vector<Frame> frames_; // of the blocks around, by where a value was named
  std::map<std::pair<uint32_t, Point>, Value> locals_; // results of stages
  std::map<std::string, std::string> functions_;       // signature key -> definition
  std::map<std::string, std::string> called_;          // those that are called
  std::string out_;

private:
  Value make(ExprId id, const Point& p);
  Value make_load(const Expr& e, const Point& p);
  Value make_near_load(const Expr& e, const Point& p, int64_t step,
                       const std::string& guard, const std::vector<Bound>& by_lane);
  Value make_shuffled_load(const Expr& e, const Point& p, const std::string& guard,
                           const std::vector<Bound>& by_lane);
  Value make_dot_load(const Expr& e, const Point& p);
  Value make_dot_map(const Expr& e, const Point& p);
  Value make_map(const Expr& e, const Point& p);
  Value make_descend(ExprId id, const Point& p);
  std::string descend_text(const Expr& e, const Point& p, const std::string& root,
                           bool lanewise);
  Value make_cast(const Expr& e, const Point& p);
  std::optional<Value> make_byte_cast(const Expr& e, const Point& p);
  std::optional<Value> make_narrow_cast(const Expr& e, const Point& p);
  std::optional<Value> make_high_product(const Expr& e, const Point& p);
  Value make_lookup(const Lookup& table, DType dtype, const Point& p);
  Value make_guard(const Expr& e, const Point& p);
  Value make_position(const Expr& e, const Point& p);
  std::string term_text(const Term& t, const Point& p, bool lanewise);
  std::string marked_index_text(const Index& index, const Point& p, bool lanewise);
  // When the bounds leave the lanes from `low` to before `high`: these as text.
  bool lane_range(const std::vector<Bound>& bounds, const Point& p, std::string& low,
                  std::string& high);

  std::map<ExprId, Lookup> lookups_; // of bytes that were asked for
  int indent_ = 1;
  int next_ = 0;
};

} // namespace svod::codegen
