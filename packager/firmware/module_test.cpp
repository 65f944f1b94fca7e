// Elements are compared as a firmware's self-test does: floats within rounding, all else
// byte for byte.
#include "packager/firmware/module_test.h"

#include "compiler/support/bytes.h"

#include <fstream>

namespace svod::packager {

static constexpr char kTest[] = R"js(import { readFileSync } from "node:fs";
import { load } from "./model.mjs";

const kArrays = { f32: Float32Array, f64: Float64Array, i8: Int8Array, i16: Int16Array,
  i32: Int32Array, i64: BigInt64Array, u16: Uint16Array, u32: Uint32Array,
  u64: BigUint64Array, f16: Uint16Array, bf16: Uint16Array };
const read = (kind, i, tensor) => new (kArrays[tensor.dtype] ?? Uint8Array)(
  Uint8Array.from(readFileSync(new URL(kind + i, import.meta.url))).buffer);
const near = (found, right) => Object.is(found, right) || found === right ||
  (Number.isFinite(found) && Number.isFinite(right) &&
   Math.abs(found - right) <= 1e-5 + 1e-3 * Math.abs(right));

const model = await load();
const inputs = Object.fromEntries(model.inputs.map((t, i) => [t.name, read("input", i, t)]));
const outputs = model.run(inputs);
let wrong = false;
model.outputs.forEach((tensor, i) => {
  const right = read("expected", i, tensor), found = outputs[tensor.name];
  const floats = tensor.dtype === "f32" || tensor.dtype === "f64";
  const at = found.findIndex((value, k) => floats ? !near(value, right[k]) : value !== right[k]);
  if (at < 0) return;
  console.log(`FAIL: output ${i}, element ${at}`);
  wrong = true;
});
if (!wrong) console.log("PASS");
process.exit(wrong ? 1 : 0);
)js";

std::string write_module_test(const std::string& folder, const TestVectors& vectors) {
  const auto write_all = [&](const char* kind, const std::vector<Tensor>& tensors) {
    for (size_t i = 0; i < tensors.size(); ++i)
      std::ofstream(folder + "/" + kind + std::to_string(i), std::ios::binary)
          << text_of(tensors[i].bytes);
  };
  write_all("input", vectors.inputs);
  write_all("expected", vectors.outputs);
  const std::string name = folder + "/test.mjs";
  std::ofstream(name) << kTest;
  return name;
}

} // namespace svod::packager
