// Automata over the bytes of strings, as tables that a graph walks.
#pragma once

#include "importer/text/regex.h"
#include "importer/text/strings.h"

namespace svod::importer {

// The automaton of a pattern; a fault of it is the node's.
Automaton automaton_of(const NodeImport& node, const std::string& pattern);

// A state is its number times the number of classes, so that a step is one sum and one
// gather. The zeros behind a string are a class of their own: they lead nowhere, or leave
// the state as it is.
enum class Zeros { Stay, End };
struct WalkTables {
  Expr class_of; // i32[256]
  Expr next;     // i32[states * classes]
  Expr accepts;  // i32[states]
  int64_t classes;

  Expr classes_of(Expr rows) const; // of u8[n, width]
  Expr step(Expr state, Expr of_class) const;
  Expr accepted(Expr state) const; // bool
};
WalkTables walk_tables(Graph& g, const Automaton& automaton, Zeros zeros);

// Which strings of u8[n, width] match as a whole, bool[n].
Expr whole_matches(const NodeImport& node, Expr rows, const Automaton& automaton);

// Where matches lie in u8[n, width]: taken from left to right, each as long as possible
// and of at least one byte.
struct Matches {
  Expr begins; // i32[n, width], 1 where one begins
  Expr inside; // bool[n, width]
};
Matches find_matches(const NodeImport& node, Expr rows, const Automaton& automaton);

} // namespace svod::importer
