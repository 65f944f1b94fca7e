// A module has numbers for arguments, so somebody has to put tensors into its memory and
// take them out again: that is all the loader does. Where tensors and arena lie follows
// from their sizes: behind the module's own data, each on a multiple of 64 bytes.
#include "packager/artefact/module_loader.h"

#include "compiler/ir/dtype.h"
#include "packager/report/json.h"

#include <sstream>

namespace svod::packager {

namespace {

std::string tensors_text(const std::vector<ImageTensor>& tensors) {
  JsonWriter json;
  json.begin_list();
  for (const ImageTensor& tensor : tensors) {
    json.begin_object().pair("name", tensor.name);
    json.pair("dtype", onnx_type_text(tensor.onnx_type)).key("dims").begin_list();
    for (int64_t dim : tensor.dims) json.value(dim);
    json.end_list().pair("bytes", tensor.bytes).end_object();
  }
  return json.end_list().text();
}

// JSON is JavaScript.
std::string quoted(const std::string& text) {
  JsonWriter json;
  return json.value(text).text();
}

// What follows the constants.
constexpr char kCode[] = R"js(
const kArrays = {
  f32: Float32Array, f64: Float64Array, bool: Uint8Array,
  i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
  u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array,
  f16: Uint16Array, bf16: Uint16Array, // bits
};
const arrayOf = (dtype) => kArrays[dtype] ?? Uint8Array;
const round = (at) => Math.ceil(at / 64) * 64;

async function bytesBeside() {
  const place = new URL(kModule, import.meta.url);
  if (place.protocol === "file:")
    return (await import("node:fs/promises")).readFile(place);
  return (await fetch(place)).arrayBuffer();
}

function place(tensors, at) {
  return tensors.map((tensor) => {
    const here = at;
    at = round(at + tensor.bytes);
    return here;
  }).concat(at);
}

class Model {
  constructor(instance) {
    this.calls = instance.exports;
    this.inputs = kInputs;
    this.outputs = kOutputs;
    const begin = round(this.calls.__heap_base.value);
    this.pointers = begin;
    this.given = place(kInputs, round(begin + 4 * (kInputs.length + kOutputs.length)));
    this.written = place(kOutputs, this.given.at(-1));
    this.arena = this.written.at(-1);
    const memory = this.calls.memory, end = this.arena + kArenaBytes;
    if (end > memory.buffer.byteLength)
      memory.grow(Math.ceil((end - memory.buffer.byteLength) / 65536));
  }

  // `inputs`: typed arrays by name. Gives typed arrays by name, which are the caller's.
  run(inputs) {
    const memory = this.calls.memory.buffer;
    const pointers = new Uint32Array(memory, this.pointers);
    kInputs.forEach((tensor, i) => {
      const value = inputs[tensor.name], array = arrayOf(tensor.dtype);
      if (!(value instanceof array) || value.byteLength !== tensor.bytes)
        throw new TypeError(`input '${tensor.name}' is no ${array.name} of ${tensor.bytes} bytes`);
      new Uint8Array(memory, this.given[i], tensor.bytes)
        .set(new Uint8Array(value.buffer, value.byteOffset, value.byteLength));
      pointers[i] = this.given[i];
    });
    kOutputs.forEach((_, i) => { pointers[kInputs.length + i] = this.written[i]; });
    const status = this.calls[kName + "_run"](this.arena, this.pointers,
                                              this.pointers + 4 * kInputs.length);
    if (status !== 0) throw new Error(this.text(this.calls[kName + "_status_text"](status)));
    return Object.fromEntries(kOutputs.map((tensor, i) => {
      const array = arrayOf(tensor.dtype), at = this.written[i];
      return [tensor.name, new array(memory.slice(at, at + tensor.bytes))];
    }));
  }

  // What was packed.
  info() { return JSON.parse(this.text(this.calls[kName + "_info"]())); }

  text(at) {
    const bytes = new Uint8Array(this.calls.memory.buffer, at);
    return new TextDecoder().decode(bytes.subarray(0, bytes.indexOf(0)));
  }
}

// `bytes`: of the module, or a WebAssembly.Module; by default the file beside this one.
export async function load(bytes) {
  const found = await WebAssembly.instantiate(bytes ?? (await bytesBeside()), {});
  return new Model(found.instance ?? found);
}
)js";

} // namespace

std::string module_loader_text(const HeaderFacts& facts, const std::string& module) {
  const ImageEntry& entry = facts.contents->entries.front();
  std::ostringstream out;
  out << "// Loads a packed model and runs it. Made by svod-pack; the module beside it "
         "belongs to it.\n"
      << "//   const model = await load();\n"
      << "//   const outputs = model.run({name: new Float32Array(...), ...});\n"
      << "const kModule = " << quoted(module) << ";\n"
      << "const kName = " << quoted(facts.prefix) << ";\n"
      << "const kArenaBytes = " << facts.arena.all() << ";\n"
      << "const kInputs = " << tensors_text(entry.inputs) << ";\n"
      << "const kOutputs = " << tensors_text(entry.outputs) << ";\n"
      << kCode;
  return out.str();
}

} // namespace svod::packager
