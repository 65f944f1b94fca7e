// How deep the stack gets: the frames along the longest chain of calls, over objects that
// are linked together and were compiled with -ffunction-sections and
// -fstack-size-section.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace svod::toolchain {

class CallGraph {
public:
  void add(std::span<const std::byte> object);
  // A function that is not among the objects: it and all that it calls take so much.
  void define(const std::string& symbol, uint64_t bytes);
  // Functions whose symbol holds `caller` call `callee` through a pointer. False: there
  // is no such function.
  [[nodiscard]] bool add_call(std::string_view caller, const std::string& callee);

  // Bytes from the call of this symbol on; 0: it is not there.
  uint64_t deepest(const std::string& symbol) const;

private:
  // A section: a function, or data that holds addresses of some.
  struct Node {
    uint64_t frame = 0;
    std::vector<size_t> callees;
    std::vector<std::string> names, outer; // its symbols; symbols of other objects
  };
  struct Reading;
  uint64_t depth(size_t node, std::vector<uint64_t>& known) const;

  uint64_t red_zone_ = 0; // below the last frame
  uint64_t call_ = 0;     // beside the frame of each
  std::vector<Node> nodes_;
  std::map<std::string, size_t, std::less<>> symbols_; // that other objects see
};

} // namespace svod::toolchain
