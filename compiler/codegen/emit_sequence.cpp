// A sequence: the bodies of its parts, each in a namespace of its own, and one function
// that calls them with addresses made of few pointers, constants and loop counters.
#include "compiler/codegen/element_text.h"
#include "compiler/codegen/kernel_emitter.h"
#include "compiler/codegen/kernels.h"
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

static std::string own_call_text(const ScheduledKernel& part, const SequenceStep& step) {
  std::string out = "bad |= part" + std::to_string(step.part) + "::body(";
  for (size_t i = 0; i < step.places.size(); ++i)
    out += "reinterpret_cast<" + pointer_type(part.arguments[i]) + ">(" +
           place_text(step.places[i]) + "), ";
  return out + "scratch, 0);\n";
}

using CallText = std::string (*)(const ScheduledKernel& part, const SequenceStep& step);

static std::string step_text(const ScheduledKernel& k, const SequenceStep& step,
                             CallText call) {
  const std::string n = "n" + std::to_string(step.depth);
  switch (step.kind) {
  case SequenceStep::Kind::Launch:
    return call(k.parts()[step.part], step);
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

// The functions of all parts, `function` of each.
template <class Function>
static std::string parts_text(const ScheduledKernel& k, size_t level,
                              const Function& function) {
  std::string parts, out;
  std::map<std::string, std::string> called;
  for (size_t i = 0; i < k.parts().size(); ++i) {
    KernelEmitter part(k.parts()[i], k.parts()[i].levels[level]);
    parts += "namespace part" + std::to_string(i) + " {\n" + function(part, i) + "}\n";
    part.add_called(called);
  }
  for (const auto& [name, definition] : called) out += definition;
  out += parts;
  if (std::ranges::any_of(k.sequence()->steps, [](const SequenceStep& step) {
        return step.kind == SequenceStep::Kind::Copy;
      }))
    out += kCopy;
  return out;
}

static std::string steps_text(const ScheduledKernel& k, CallText call) {
  const std::vector<SequenceStep>& steps = k.sequence()->steps;
  std::string out;
  std::set<uint32_t> depths;
  for (const SequenceStep& step : steps)
    if (step.kind == SequenceStep::Kind::Loop && depths.insert(step.depth).second)
      out += "  iptr n" + std::to_string(step.depth) + " = 0;\n";
  size_t indent = 1;
  for (const SequenceStep& step : steps) {
    indent -= step.kind == SequenceStep::Kind::End ? 1 : 0;
    out += std::string(2 * indent, ' ') + step_text(k, step, call);
    indent += step.kind == SequenceStep::Kind::Loop ? 1 : 0;
  }
  return out;
}

std::string sequence_text(const ScheduledKernel& k, size_t level) {
  std::string out = parts_text(
      k, level, [](KernelEmitter& part, size_t) { return part.definitions(); });
  out += "} // namespace kernel\n\n"
         "extern \"C\" __attribute__((visibility(\"hidden\"))) __INT32_TYPE__\n"
         "svod_kernel(void* const* buffers, void* scratch, __UINT32_TYPE__) {\n"
         "  using namespace kernel;\n  i32 bad = 0;\n";
  for (size_t i = 0; i < k.arguments.size(); ++i)
    out += "  char* const p" + std::to_string(i) + " = static_cast<char*>(buffers[" +
           std::to_string(i) + "]);\n";
  return out + steps_text(k, own_call_text) + "  return bad ? " +
         std::to_string(SVOD_INDEX) + " : 0;\n}\n";
}

static std::string direct_call_text(const ScheduledKernel& part,
                                    const SequenceStep& step) {
  std::string arguments;
  for (const SequenceStep::Place& place : step.places)
    arguments += (arguments.empty() ? "" : ", ") + place_text(place);
  if (takes_scratch(part)) arguments += ", scratch";
  if (takes_chunk(part)) arguments += ", 0";
  const std::string call = "part" + std::to_string(step.part) + "::body(" + arguments +
                           marked_call(step.part) + ")";
  return can_fail(part) ? "if (const i32 bad = " + call + ") return bad;\n"
                        : call + ";\n";
}

std::string direct_sequence_text(const ScheduledKernel& k, size_t level) {
  std::string out = parts_text(k, level, [&](KernelEmitter& part, size_t i) {
    const ScheduledKernel& kernel = k.parts()[i];
    if (k.levels[level].small) part.mark_numbers();
    return part.direct_function(std::string("inline __attribute__((noinline)) ") +
                                (can_fail(kernel) ? "i32" : "void") + " body");
  });
  out += direct_entry(k) + "(" + direct_parameters(k) + ") {\n";
  for (size_t i = 0; i < k.arguments.size(); ++i) {
    const std::string n = std::to_string(i);
    out +=
        "  [[maybe_unused]] char* const p" + n + " = static_cast<char*>(q" + n + ");\n";
  }
  return out + steps_text(k, direct_call_text) + (can_fail(k) ? "  return 0;\n" : "") +
         "}\n} // namespace kernel\n";
}

} // namespace svod::codegen
