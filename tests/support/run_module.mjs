// Runs a packed module once: run_module.mjs LOADER.mjs INPUT... reads each input's bytes from a file and writes the
// outputs to stdout, one after the other.
import { readFileSync, writeSync } from "node:fs";
import { pathToFileURL } from "node:url";

const [loader, ...files] = process.argv.slice(2);
const { load } = await import(pathToFileURL(loader).href);
const model = await load();
const arrays = {
  f32: Float32Array, f64: Float64Array, i8: Int8Array, i16: Int16Array, i32: Int32Array, i64: BigInt64Array,
  u16: Uint16Array, u32: Uint32Array, u64: BigUint64Array, f16: Uint16Array, bf16: Uint16Array,
};
const inputs = {};
model.inputs.forEach((tensor, i) => {
  const bytes = Uint8Array.from(readFileSync(files[i]));
  inputs[tensor.name] = new (arrays[tensor.dtype] ?? Uint8Array)(bytes.buffer);
});
const outputs = model.run(inputs);
for (const { name } of model.outputs) {
  const value = outputs[name];
  const bytes = new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  for (let at = 0; at < bytes.length;) at += writeSync(1, bytes, at);
}
