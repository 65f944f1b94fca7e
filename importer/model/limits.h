// What a model may ask for. The defaults are far above real models and low enough that a
// hostile file ends in an error within a second; each can be changed on the command line.
#pragma once

#include <cstdint>

namespace svod::importer {

struct Limits {
  int64_t file_bytes = int64_t{1}
                       << 31; // protobuf's own limit; larger weights are external
  int64_t external_bytes = int64_t{1} << 34; // all external data files together
  int64_t structure_bytes = int64_t{1}
                            << 28;  // of our structs for nodes, names, attributes
  int64_t nodes = 1'000'000;        // after inlining of functions
  int64_t graph_nodes = 1'000'000;  // that the rules make of them
  int64_t unrolled_nodes = 200'000; // made by unrolling loops
  int64_t sequence_items = int64_t{1} << 24; // of all sequences made when packing
  int64_t loop_iterations = 4096;            // of one unrolled loop
  // Of a loop whose count is data of the run: more stop the run, so none hangs.
  int64_t region_iterations = int64_t{1} << 24;
  // Of a size that depends on data and has no bound of its own; 0: it is refused.
  int64_t size = 0;
  // Of a picture that the run decodes: memory is for the largest.
  int64_t image_height = 512, image_width = 512;
  int64_t nesting = 32;    // of graphs in attributes of nodes
  int64_t call_depth = 64; // of functions
  int64_t functions = 10'000;
  int64_t operands = 16384;  // inputs or outputs of one node
  int64_t attributes = 64;   // of one node
  int64_t name_bytes = 1024; // of one name
  int64_t rank = 16;
  int64_t dim = int64_t{1} << 31;
  int64_t elements = int64_t{1} << 31;     // of one tensor
  int64_t folded_bytes = int64_t{1} << 28; // of values computed when packing
  bool allow_newer =
      false; // IR versions and opsets newer than the pinned `onnx` package's
};

} // namespace svod::importer
