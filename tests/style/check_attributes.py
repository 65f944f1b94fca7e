#!/usr/bin/env python3
"""Every attribute that a row of importer/operators/onnx_ops.def accepts is read by the importer, or listed here with the reason
why no result depends on it: an attribute that nobody reads must not be accepted in silence."""
import pathlib
import re
import sys

UNREAD = {
    "char_embedding_size": "the shape of an input shows it",
    "chunk_size": "how many steps are computed at once; the result is the same",
    "conv_window_size": "the shape of an input shows it",
    "embedding_size": "the shape of an input shows it",
    "has_subnormal": "the reference's formula has subnormal numbers either way",
    "is_inner_broadcast": "the shapes of the inputs show which axis is broadcast",
    "is_packed_batching": "the positions that are an input say the same",
    "kv_cache_bit_width": "of a quantised cache, whose types are refused",
    "mask_index_type": "the type of the output, which the graph shows",
    "multi_class": "ONNX Runtime's classifier does not read it either",
    "nodes_hitrates": "how often a node is met, a hint for speed",
    "nodes_hitrates_as_tensor": "how often a node is met, a hint for speed",
    "out_dtype": "an annotation of the values' type for hardware flows",
    "output_qk": "of an output that is refused where it is wanted",
    "output_sequence": "of opset 1 to 6: whether all states are wanted, which the names of the outputs say",
    "overload_name": "the operator's name and its inputs decide",
    "qk_norm_epsilon": "of weights that are refused",
    "qk_output": "of an output that is refused where it is wanted",
}
# Names that are put together of a kind and a field: class_treeids, nodes_values_as_tensor.
FIELD = re.compile(r"^(class|target|nodes|base)_(\w+?)(_as_tensor)?$")


def main():
    folder = pathlib.Path("importer")
    text = "\n".join(p.read_text() for p in sorted(folder.rglob("*.cpp")) + sorted(folder.rglob("*.h")))
    quoted = set(re.findall(r'"(\w+)"', text))
    rows = re.findall(r"\bA\((\w+), \w+,", (folder / "operators" / "onnx_ops.def").read_text())

    def read(name):
        field = FIELD.match(name)
        return name in quoted or name == "consumed_inputs" or \
            (field and {field[2], f"_{field[2]}", f"{field[1]}_{field[2]}"} & quoted)

    silent = sorted({name for name in rows if not read(name) and name not in UNREAD})
    stale = sorted(name for name in UNREAD if name in quoted or name not in rows)
    for name in silent:
        print(f"attribute '{name}' is accepted and nobody reads it")
    for name in stale:
        print(f"attribute '{name}' is listed as unread and is not")
    print(f"{len(set(rows))} attributes, {len(UNREAD)} of them without influence")
    return 1 if silent or stale else 0


if __name__ == "__main__":
    sys.exit(main())
