// The sets of input shapes that a command line asks for. Each becomes an entry of the
// package.
#pragma once

#include "compiler/ir/graph.h"
#include "importer/inputs/model_interface.h"

#include <map>
#include <set>
#include <string>
#include <variant>
#include <vector>

namespace svod::packager {

struct Options;

// As many as the packed program has bits to tell them apart.
inline constexpr size_t kMostSets = 64;

struct ShapeSet {
  std::string name; // letters, digits and _; its number unless the user gave one
  std::map<std::string, Shape> shapes; // by the name of an input or a dimension
  // Sizes that a run decides, by the name of a dimension or as x[2].
  std::map<std::string, importer::SizeRange> sizes = {};
};

struct ShapeSets {
  std::vector<ShapeSet> sets;   // at least one
  std::set<std::string> absent; // optional inputs that are left out, in all sets
};

// `shapes`: of --shape, NAME=AxBxC or NAME=none. A name that the current set has already
// begins the next set. `entries`: of --entry, NAME:x=1x3,y=2. What a set does not give is
// taken from the first set of --shape. `dims`: of --dim, NAME=LEAST..MOST, which holds
// for all sets; /STEP behind it makes a set for each multiple of STEP on the way to MOST,
// small ones first. What is wrong, as a text for the user, otherwise.
std::variant<ShapeSets, std::string>
read_shape_sets(const std::vector<std::string>& shapes,
                const std::vector<std::string>& entries,
                const std::vector<std::string>& dims);

// Why these options do not go with several sets, or nothing.
std::string sets_fault(const Options& options);

} // namespace svod::packager
