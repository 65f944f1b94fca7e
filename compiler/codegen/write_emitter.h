// Results on their way to memory.
#pragma once

#include "compiler/codegen/expression_emitter.h"

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
  bool writes_columns(const Stage& s, const std::vector<Point>& all) const;
  void emit_columns(const Stage& s, const std::vector<Point>& all);
  bool emit_byte_rows(const Stage& s, const std::vector<Point>& all);
};

} // namespace svod::codegen
