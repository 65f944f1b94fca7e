// What is over a budget is told with the parts that it is made of, so that a reader sees
// where to save.
#include "packager/budget.h"

#include "compiler/plan/memory_use.h"

#include <algorithm>
#include <sstream>

namespace svod::packager {

static uint64_t stored_weights(const ImageContents& contents, const SizeFacts& sizes) {
  return sizes.stored != 0 ? sizes.stored : contents.weight_bytes;
}

// A program makes what its entry reads, a library all that it has.
static uint64_t made_weights(const Options& options, const ImageContents& contents,
                             const SizeFacts& sizes) {
  if (sizes.stored == 0) return 0;
  if (options.is_library() || contents.entries.size() == 1) return contents.weight_bytes;
  uint64_t most = 0;
  for (const ImageEntry& entry : contents.entries)
    most = std::max(most, weight_bytes(entry));
  return most;
}

uint64_t flash_bytes(const ImageContents& contents, const SizeFacts& sizes) {
  return stored_weights(contents, sizes) + sizes.image + sizes.code + sizes.stub;
}

uint64_t most_arena(const Options& options) {
  constexpr uint64_t kPart = 8, kMost = 4096; // bytes of stack that are left free
  if (!options.max_ram || *options.max_ram == 0) return 0;
  return *options.max_ram - std::min(*options.max_ram / kPart, kMost);
}

// The last ONNX node of the step that writes it first.
static std::string made_by(const plan::Plan& plan, const plan::MemoryUse& use,
                           plan::SlotId id) {
  const auto range = std::ranges::find(use.ranges, id, &plan::LiveRange::slot);
  if (range == use.ranges.end() || range->sources.empty()) return "a node without a name";
  const auto last = static_cast<size_t>(range->sources.back());
  return "'" + plan.graph.source_names()[last] + "'";
}

std::vector<std::string> arena_lines(const plan::Plan& plan) {
  std::vector<std::string> out;
  const plan::MemoryUse use = memory_use(plan);
  std::string fullest;
  for (const plan::SlotId id : plan.peak)
    fullest += (fullest.empty() ? "" : ", ") + std::to_string(plan.slots[id].bytes) +
               " bytes of " + made_by(plan, use, id);
  if (!fullest.empty()) out.push_back("the arena is fullest with " + fullest);
  size_t launches = 0;
  int64_t moved = 0;
  for (const plan::Stream& stream : plan.streams)
    launches += stream.launches.size(), moved += stream.copied_bytes;
  if (launches != 0)
    out.push_back(std::to_string(launches) +
                  " kernels take turns row by row, which moves " + std::to_string(moved) +
                  " bytes in a run");
  return out;
}

Exit check_budget(const Options& options, const plan::Plan& plan,
                  const ImageContents& contents, const ArenaBytes& ram,
                  const SizeFacts& sizes, const Console& console) {
  Exit status = Exit::Done;
  const auto check = [&](const char* option, std::optional<uint64_t> limit,
                         uint64_t needed, const std::string& parts) {
    if (!limit || needed <= *limit) return;
    console.error(std::string(option) + ": " + std::to_string(needed) +
                  " bytes are needed, " + std::to_string(*limit) +
                  " are allowed: " + parts);
    status = Exit::Budget;
  };
  std::ostringstream parts;
  parts << "arena " << ram.all() << " (temporaries " << ram.temporaries << ", scratch "
        << ram.scratch << ", tables " << ram.tables
        << (ram.device != 0 ? ", for a GPU " + std::to_string(ram.device) : "")
        << "), stack " << sizes.stack;
  std::string memory = parts.str();
  for (const std::string& line : arena_lines(plan)) memory += "; " + line;
  for (size_t i = 0; i < contents.pools.size(); i++)
    check("--pool", options.pools[i].bytes, contents.pools[i].bytes,
          "memory " + contents.pools[i].name + " of an arena of " +
              std::to_string(ram.all()));
  const uint64_t expanded = made_weights(options, contents, sizes);
  if (expanded != 0)
    memory = "expanded weights " + std::to_string(expanded) + ", " + memory;
  check("--max-ram", options.max_ram, expanded + ram.all() + sizes.stack, memory);
  parts.str("");
  parts << "weights " << stored_weights(contents, sizes) << ", image " << sizes.image
        << ", kernels " << sizes.code << ", stub " << sizes.stub;
  check("--max-flash", options.max_flash, flash_bytes(contents, sizes), parts.str());
  return status;
}

} // namespace svod::packager
