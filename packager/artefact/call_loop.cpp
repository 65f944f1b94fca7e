// Rates of layers that take turns are powers of two, and those of higher rates stand
// first. So one loop counts turns of the highest rate, and a layer of a quarter of it has
// its turn with every fourth; where a layer has none, those behind it have none either.
// Loops within each other, as they are written out, would be a recursion here.
#include "packager/artefact/call_loop.h"

#include "packager/artefact/call_table.h"

#include <sstream>

namespace svod::packager {

namespace {

constexpr char kReadTurn[] = R"(        int32_t n = 0;
        bool now = true;
        if ((head & 16u) != 0) {
          const int32_t when = static_cast<int16_t>(*at++);
          const uint32_t rate = when & 15;
          const uint32_t last = static_cast<uint32_t>(static_cast<int16_t>(*at++));
          if ((static_cast<uint32_t>(turn + 1) & ((1u << rate) - 1)) != 0) break;
          n = turn >> rate;
          const uint32_t chunk = static_cast<uint32_t>(n + (when >> 4));
          bases[5] = reinterpret_cast<const void*>(static_cast<uintptr_t>(chunk));
          now = chunk <= last;
        }
)";

constexpr char kMovePlace[] = R"(          if (kind == 7) {
            const int32_t* const place = reinterpret_cast<const int32_t*>(value);
            value = reinterpret_cast<uintptr_t>(bases[3]) +
                    static_cast<uintptr_t>(place[0] - n * place[1]);
          }
)";

} // namespace

std::string call_loop_text(size_t arguments, bool turns) {
  static_assert(kCallHasTurn == 16 && kCallFunction == 5 && kTurnEarly == 4);
  static_assert(static_cast<int>(CallBase::Arena) == 3 &&
                static_cast<int>(CallBase::Chunk) == 5 &&
                static_cast<int>(CallBase::Moved) == 7);
  std::string values;
  for (size_t i = 0; i < arguments; i++)
    values += (i == 0 ? "a[" : ", a[") + std::to_string(i) + "]";
  std::ostringstream out;
  out << "[[gnu::noinline, clang::minsize]] void run_calls(const uint16_t* at, uint32_t "
         "count,\n"
      << "                                const void** bases) {\n";
  if (turns)
    out << "  for (; count != 0; count--) {\n"
        << "    const uint32_t launches = at[0];\n"
        << "    const int32_t end = static_cast<int16_t>(at[2]);\n"
        << "    const uint16_t* const first = at + 3;\n"
        << "    for (int32_t turn = static_cast<int16_t>(at[1]); turn < end; turn++) {\n"
        << "      at = first;\n"
        << "      for (uint32_t left = launches; left != 0; left--) {\n";
  else
    out << "      for (; count != 0; count--) {\n";
  out << "        const uint32_t head = *at++;\n"
      << (turns ? kReadTurn : "") << "        const void* a[" << arguments << "];\n"
      << "        uint32_t kinds = 0;\n"
      << "        for (uint32_t i = 0; i < head % 16; i++) {\n"
      << "          kinds = i % 4 == 0 ? *at++ : kinds >> 4;\n"
      << "          const uint32_t kind = kinds % 16, unit = kind < 3 ? kind : 3;\n"
      << "          uintptr_t value = reinterpret_cast<uintptr_t>(bases[kind]);\n"
      << "          " << (turns ? "if (kind != 5) " : "") << "value += *at++ << unit;\n"
      << (turns ? kMovePlace : "")
      << "          a[i] = reinterpret_cast<const void*>(value);\n"
      << "        }\n"
      << (turns ? "        if (now)\n  " : "") << "        kKernels[head / 32](" << values
      << ");\n"
      << (turns ? "      }\n    }\n  }\n" : "      }\n") << "}\n\n";
  return out.str();
}

} // namespace svod::packager
