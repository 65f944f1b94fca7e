// Bytes for a WebAssembly module become an object by way of the assembler: a module's
// object format is a list of typed segments with a symbol table of its own, which LLVM
// knows how to write, and .incbin takes the bytes as they lie in memory.
#include "compiler/support/bytes.h"
#include "compiler/support/check.h"
#include "compiler/toolchain/compile.h"
#include "compiler/toolchain/data_object.h"

namespace svod::toolchain {

MemoryFile make_wasm_data_object(const Target& target, const DataObject& data,
                                 const std::function<void(const ByteSink&)>& produce) {
  MemoryFile bytes("svod-data");
  produce([&](std::span<const std::byte> part) { bytes.append(part); });
  const std::string name = data.symbol;
  Source source;
  source.name = "data.cpp";
  source.text = "__asm__(\".section " + data.section + ",\\\"\\\",@\\n.globl " + name +
                "\\n.hidden " + name + "\\n.balign " + std::to_string(data.align) +
                "\\n.type " + name + ",@object\\n" + name + ":\\n.incbin \\\"" +
                bytes.path() + "\\\"\\n.size " + name + ", " +
                std::to_string(bytes.size()) + "\\n\");\n";
  CompileResult made = Compiler().compile(target, target.levels.front(), source);
  SVOD_CHECK(made.ok) << made.diagnostics;
  MemoryFile object("svod-data-object");
  object.append(made.output);
  return object;
}

} // namespace svod::toolchain
