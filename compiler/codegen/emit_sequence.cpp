// A sequence: the bodies of its parts, each in a namespace of its own, and one function
// that calls them with addresses made of few pointers, constants and loop counters.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "runtime_stub/status.h"

#include <algorithm>
#include <set>

namespace svod::codegen {

// Kernels call nothing outside.
static const char kCopy[] =
    "static void copy(char* __restrict to, const char* __restrict from, iptr bytes) {\n"
    "  for (iptr i = 0; i < bytes; ++i) to[i] = from[i];\n}\n";

static std::string place_text(const SequenceStep::Place& place) {
  std::string out = "p" + std::to_string(place.argument);
  if (place.offset != 0) out += " + " + std::to_string(place.offset);
  for (const SequenceStep::Move& m : place.moves) {
    const std::string n = "n" + std::to_string(m.depth);
    out +=
        " + " + (m.alternates ? "(" + n + " & 1)" : n) + " * " + std::to_string(m.stride);
  }
  return out;
}

static std::string call_text(const ScheduledKernel& part, const SequenceStep& step) {
  std::string out = "bad |= part" + std::to_string(step.part) + "::body(";
  for (size_t i = 0; i < step.places.size(); ++i)
    out += "reinterpret_cast<" + pointer_type(part.arguments[i]) + ">(" +
           place_text(step.places[i]) + "), ";
  return out + "scratch, 0);\n";
}

static std::string step_text(const ScheduledKernel& k, const SequenceStep& step) {
  const std::string n = "n" + std::to_string(step.depth);
  switch (step.kind) {
  case SequenceStep::Kind::Launch:
    return call_text(k.parts()[step.part], step);
  case SequenceStep::Kind::Copy:
    return "copy(" + place_text(step.places[1]) + ", " + place_text(step.places[0]) +
           ", " + std::to_string(step.count) + ");\n";
  case SequenceStep::Kind::Loop:
    return "for (" + n + " = 0; " + n + " < " + std::to_string(step.count) + "; ++" + n +
           ") {\n";
  case SequenceStep::Kind::End:
    return "}\n";
  }
  __builtin_unreachable();
}

std::string sequence_text(const ScheduledKernel& k, size_t level) {
  const std::vector<SequenceStep>& steps = k.sequence()->steps;
  std::string parts, out;
  std::map<std::string, std::string> called;
  for (size_t i = 0; i < k.parts().size(); ++i) {
    KernelEmitter part(k.parts()[i], k.parts()[i].levels[level]);
    parts += "namespace part" + std::to_string(i) + " {\n" + part.definitions() + "}\n";
    part.add_called(called);
  }
  for (const auto& [name, definition] : called) out += definition;
  out += parts;
  if (std::ranges::any_of(steps, [](const SequenceStep& step) {
        return step.kind == SequenceStep::Kind::Copy;
      }))
    out += kCopy;
  out += "} // namespace kernel\n\n"
         "extern \"C\" __attribute__((visibility(\"hidden\"))) __INT32_TYPE__\n"
         "svod_kernel(void* const* buffers, void* scratch, __UINT32_TYPE__) {\n"
         "  using namespace kernel;\n  i32 bad = 0;\n";
  for (size_t i = 0; i < k.arguments.size(); ++i)
    out += "  char* const p" + std::to_string(i) + " = static_cast<char*>(buffers[" +
           std::to_string(i) + "]);\n";
  std::set<uint32_t> depths;
  for (const SequenceStep& step : steps)
    if (step.kind == SequenceStep::Kind::Loop && depths.insert(step.depth).second)
      out += "  iptr n" + std::to_string(step.depth) + " = 0;\n";
  size_t indent = 1;
  for (const SequenceStep& step : steps) {
    indent -= step.kind == SequenceStep::Kind::End ? 1 : 0;
    out += std::string(2 * indent, ' ') + step_text(k, step);
    indent += step.kind == SequenceStep::Kind::Loop ? 1 : 0;
  }
  return out + "  return bad ? " + std::to_string(SVOD_INDEX) + " : 0;\n}\n";
}

} // namespace svod::codegen
