// Strings in a graph of numbers. A tensor of strings is a tensor of handles, numbers that
// each name one string; so every operator that moves elements works on strings as it is.
// The bytes lie in pools: constants of the model, known when packing, and pools of rows
// u8[count, width], made by an input or by an operator that computes strings. A row holds
// one string, zeros after its end; a string with a zero byte in it has no row.
//
// A tensor of handles is mostly known when packing, also where the bytes are not: the
// handles of an input are consecutive numbers. Where handles depend on data, the strings
// they may name are found by walking back to where handles come from.
#pragma once

#include "compiler/ir/graph.h"

#include <map>
#include <string>
#include <vector>

namespace svod::importer {

// Bytes that all rows of one pool of constants may have.
inline constexpr int64_t kStringTableBytes = int64_t{1} << 26;
// Of one computed row; a longer one is refused.
inline constexpr int64_t kStringRowBytes = int64_t{1} << 16;

class StringTable {
public:
  StringTable();

  // The handle of a string known when packing; equal strings have one. "" is handle 0.
  int64_t constant(const std::string& text);
  bool is_constant(int64_t handle) const { return handle < kFirstRow; }
  const std::string& text(int64_t handle) const {
    return constants_[static_cast<size_t>(handle)];
  }
  // The handles of u8[count, width] rows, in order. Equal rows have one pool.
  NodeId add_rows(Graph& g, NodeId rows);

  // The handles a node may hold, ascending, each pool of rows by its first handle; or why
  // they cannot be found.
  struct Reach {
    std::vector<int64_t> constants;
    std::vector<int64_t> pools;
    std::string failure;
  };
  Reach reach(const Graph& g, NodeId handles) const;

  // u8[elements, width] with the bytes of each element of a tensor of handles, width >=
  // 1; kNoNode with the reason in `failure`.
  NodeId rows_of(Graph& g, NodeId handles, std::string& failure) const;

  // A tensor of the model, row-major.
  NodeId tensor(Graph& g, Shape shape, const std::vector<std::string>& strings);

  // The strings of a tensor of handles when all are known when packing.
  std::optional<std::vector<std::string>> known(const Graph& g, NodeId handles) const;

  // One row per string, all of the width of the longest, at least `width`. kNoNode: a
  // string with a zero byte, or too much memory; `failure` says which.
  static NodeId constant_rows(Graph& g, const std::vector<std::string>& strings,
                              int64_t width, std::string& failure);

private:
  static constexpr int64_t kFirstRow = int64_t{1} << 30; // handles below are constants
  struct Pool {
    int64_t count;
    NodeId rows;
  };
  struct Layout; // of a table made of several pools

  void add_known(const std::vector<int64_t>& values, Reach& reach) const;
  std::map<int64_t, Pool>::const_iterator pool_of(int64_t handle) const;
  NodeId table(Graph& g, const Reach& reach, Layout& layout, std::string& failure) const;

  std::vector<std::string> constants_;
  std::map<std::string, int64_t> by_text_;
  std::map<int64_t, Pool> pools_; // by first handle
  std::map<NodeId, NodeId> handles_of_rows_;
  int64_t next_row_ = kFirstRow;
};

} // namespace svod::importer
