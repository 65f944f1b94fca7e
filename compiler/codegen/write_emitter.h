// Results on their way to memory.
#pragma once

#include "compiler/codegen/expression_emitter.h"

#include <optional>
#include <string>
#include <vector>

namespace svod::codegen {

class WriteEmitter : public ExpressionEmitter {
public:
  using ExpressionEmitter::ExpressionEmitter;

protected:
  void emit_write(const Stage& s, const Value& value, const Point& p);
  // The values of a store at all positions of the register tile.
  void emit_writes(const Stage& s, const std::vector<Point>& all);
  // Where they are written at once: does so, and says so.
  virtual bool write_neighbours(const Stage&, const std::vector<Point>&) { return false; }

private:
  void emit_lane_writes(const Stage& s, const Value& value, const Point& p,
                        const std::string& condition);
  // Positions of the register tile that are neighbours in memory, and which lanes of
  // theirs are written.
  struct Columns {
    std::vector<Point> points;
    std::string wanted;
  };
  std::optional<std::string> lanes_condition(const Stage& s, const Point& p);
  std::vector<Columns> columns_of(const Stage& s, const std::vector<Point>& all);
  void emit_columns(const Stage& s, const Columns& columns);
  bool emit_byte_rows(const Stage& s, const std::vector<Point>& all);
};

} // namespace svod::codegen
