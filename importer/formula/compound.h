// Values that are not one tensor: sequences, optionals and maps. They exist only while a
// model is imported. How many elements a sequence has, whether an optional is there and
// which keys a map has is known then, so each is a list of tensors that the graph never
// sees as one.
//
// A compound value has a NodeId of its own range: names, functions and control flow pass
// it on like any other value.
#pragma once

#include "compiler/ir/graph.h"

#include <deque>

namespace svod::importer {

// From here up to the marks at the end of the range (kNoNode, kPoisoned) an id names a
// compound value. Limits::graph_nodes keeps real nodes far below.
inline constexpr NodeId kFirstCompound = NodeId{1} << 31;
inline bool is_compound(NodeId id) { return id >= kFirstCompound && id < kNoNode - 1; }

// Of a map: numbers or texts, never both.
struct MapKeys {
  std::vector<int64_t> numbers;
  std::vector<std::string> texts;
  size_t size() const { return texts.empty() ? numbers.size() : texts.size(); }
  bool operator==(const MapKeys&) const = default;
};

// Of one sequence: each is a value of its own in the graph.
inline constexpr int64_t kMostElements = int64_t{1} << 16;

struct Compound {
  enum class Kind : uint8_t {
    Sequence, // items: its elements
    Optional, // items: its element, or none
    Map,      // items: the values in the order of the keys, one tensor [keys]
    Complex,  // items: one tensor with a last axis of two parts (complex.h)
    Maps,     // a sequence of maps of the same keys; items: one tensor [maps, keys]
  };
  Kind kind = Kind::Sequence;
  std::vector<NodeId> items{};
  int onnx_type = 0;        // element type of a sequence's tensors, 0: not known
  NodeId present = kNoNode; // of an optional with an item: a condition of the run
  MapKeys keys{};
};

// "a sequence", "an optional", "a map": for messages.
const char* kind_text(const Compound& value);

// All compound values of one import.
class CompoundTable {
public:
  NodeId add(Compound value);
  const Compound& operator[](NodeId id) const { return values_[id - kFirstCompound]; }
  // While it lives, `condition` is true: a branch is imported that only runs then.
  class Assumption {
  public:
    Assumption(CompoundTable& table, NodeId condition) : table_(table) {
      table_.assumed_.push_back(condition);
    }
    ~Assumption() { table_.assumed_.pop_back(); }
    Assumption(const Assumption&) = delete;
    Assumption& operator=(const Assumption&) = delete;

  private:
    CompoundTable& table_;
  };
  // The value, of which the run stops when `chosen` is false.
  NodeId guarded(Graph& g, NodeId value, NodeId chosen);
  // `yes` or `no` by a condition of the run, a bool of one element. kNoNode: the two
  // differ in type, length or keys.
  NodeId select(Graph& g, NodeId condition, NodeId yes, NodeId no);
  // Elements of all lists so far: what a limit is checked against.
  int64_t items() const { return items_; }

private:
  NodeId select_items(Graph& g, NodeId condition, const Compound& yes,
                      const Compound& no);
  NodeId select_optional(Graph& g, NodeId condition, const Compound& yes,
                         const Compound& no);
  std::vector<NodeId> assumed_;
  std::deque<Compound> values_; // a deque: references stay good while values are added
  int64_t items_ = 0;
};

} // namespace svod::importer
