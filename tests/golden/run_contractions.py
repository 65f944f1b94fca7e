#!/usr/bin/env python3
"""Which sums of products are found in named models, and what computes each.

    run_contractions.py [--rebase] [SET...]

contractions/SET.txt holds, model by model, every line of --emit=algorithms with how often it stands there. What a
rewrite hides from the analysis (compiler/contraction), or what an algorithm no longer takes, is missing then, and this
fails. --rebase rewrites what differs; review the diff: a line that is gone is an algorithm that is lost.

The set "generated" is made here, each spelled in a way of its own. "bundled" are the models of models/. "corpus" are
models of SVOD_CORPUS/real. "bench" are those of SVOD_BENCH_MODELS: NAME/model.onnx, or skeletons that its
materialise.py fills. Sets whose folder is not named are left out.
"""
import argparse
import os
import pathlib
import shutil
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "support"))
sys.path.insert(0, str(HERE.parent / "conformance"))
from onnx_writer import INT64, UINT8, data, model, node, number, random_tensor, tensor, value
from packing import PACKER, SOURCE, work_folder
import run_conformance
import run_golden

TARGET = "x86-64-v4"  # decisions are those of its widest vectors


def raw_tensor(name, dims, dtype, values):
    return b"".join(number(1, d) for d in dims) + number(2, dtype) + data(8, name) + data(9, bytes(values))


def layer(inputs, weights, **attributes):
    """One convolution over random weights."""
    rank = len(inputs)
    return model([node("Conv", ["x", "w"], ["y"], "conv", kernel_shape=weights[2:], **attributes)],
                 [value("x", inputs)], [value("y", ["abcde"[i] for i in range(rank)])],
                 [random_tensor("w", weights, 1, 0.1)])


def product(rows, inner, columns, **gemm):
    weights = [columns, inner] if gemm.get("transB") else [inner, columns]
    made = node("Gemm", ["x", "w"], ["y"], "product", **gemm) if gemm else node("MatMul", ["x", "w"], ["y"], "product")
    return model([made], [value("x", [rows, inner])], [value("y", ["a", "b"])], [random_tensor("w", weights, 1, 0.05)])


def integer_product():
    return model([node("MatMulInteger", ["x", "w", "z"], ["y"], "product")], [value("x", [8, 64], UINT8)],
                 [value("y", ["a", "b"], 6)],
                 [raw_tensor("w", [64, 32], 3, [i * 37 % 251 for i in range(64 * 32)]),
                  raw_tensor("z", [], UINT8, [7])])


def channels_last():
    """Transposes around a convolution, as exporters of such frameworks write them."""
    return model(
        [node("Transpose", ["x"], ["t"], perm=[0, 3, 1, 2]),
         node("Conv", ["t", "w"], ["c"], "conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
         node("Transpose", ["c"], ["y"], perm=[0, 2, 3, 1])],
        [value("x", [1, 28, 28, 64])], [value("y", list("abcd"))], [random_tensor("w", [64, 64, 3, 3], 1, 0.1)])


def row_as_picture():
    """A sequence that is made a picture of one row for its convolution."""
    return model(
        [node("Unsqueeze", ["x", "two"], ["t"]),
         node("Conv", ["t", "w"], ["c"], "conv", kernel_shape=[1, 3], pads=[0, 1, 0, 1]),
         node("Squeeze", ["c", "two"], ["y"])],
        [value("x", [1, 64, 200])], [value("y", list("abc"))],
        [random_tensor("w", [64, 64, 1, 3], 1, 0.1), tensor("two", [1], [2], INT64)])


GENERATED = {
    "conv_3x3": lambda: layer([1, 64, 56, 56], [64, 64, 3, 3], pads=[1, 1, 1, 1]),
    "conv_3x3_stride_2": lambda: layer([1, 64, 56, 56], [64, 64, 3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    "conv_dilated": lambda: layer([1, 64, 40, 40], [64, 64, 3, 3], pads=[2, 2, 2, 2], dilations=[2, 2]),
    "conv_1d": lambda: layer([1, 64, 400], [64, 64, 5], pads=[2, 2]),
    "conv_3d": lambda: layer([1, 16, 8, 20, 20], [32, 16, 3, 3, 3], pads=[1] * 6),
    "conv_of_few_channels": lambda: layer([1, 3, 224, 224], [64, 3, 7, 7], pads=[3, 3, 3, 3], strides=[2, 2]),
    "pointwise": lambda: layer([1, 64, 28, 28], [128, 64, 1, 1]),
    "groups": lambda: layer([1, 32, 28, 28], [32, 4, 3, 3], pads=[1, 1, 1, 1], group=8),
    "depthwise": lambda: layer([1, 64, 28, 28], [64, 1, 3, 3], pads=[1, 1, 1, 1], group=64),
    "channels_last": channels_last,
    "row_as_picture": row_as_picture,
    "product_of_one_row": lambda: product(1, 512, 512),
    "product_512": lambda: product(128, 512, 512),
    "product_512_transposed": lambda: product(128, 512, 512, transB=1),
    "integer_product": integer_product,
    **{name: (lambda name=name: run_golden.read(name)) for name in ("attention", "dense_gelu", "resnet_block")},
}

CORPUS = """
    audio/basic-pitch--icassp_2022-nmp audio/dtln--model_1 audio/gtcrn--gtcrn audio/silero-vad--silero_vad_op18_ifless
    classification/marabou--cifar_deep_kw classification/onnxruntime--collateral-mnist
    classification/windows-machine-learning--SqueezeNet_fp16 detection/libfacedetection.train--yunet_n_320_320
    detection/nanodet-onnx-sample--nanodet_m_320 detection/onnxruntime-extensions--FastestDet
    detection/ultra-light-fast-generic--version-RFB-320 face/openseeface--lm_model0_opt face/openseeface--mnv3_detection_opt
    policy/mujoco_playground--apollo_policy quantised/emx-onnx-cgen--micro_kws_m_qoperator_softmax
    quantised/emx-onnx-cgen--micro_kws_m_static_qdq segmentation/portrait-segmentation--SINet_Softmax
    style-sr/onnxruntime-extensions--pytorch_super_resolution style-sr/windows-machine-learning--mosaic
    text/magika--standard_v3_3-model text/tract--byte_sb_bidi_lstm-model transformer/onnxruntime--gpt2_megatron
    transformer/onnxruntime--dummy_t5 transformer/onnxruntime-genai--tiny-qwen35-cuda-decoder
    classification/tensorrt--residual_block classification/onnxruntime--cnn_mnist_pytorch
""".split()


class Missing(Exception):
    """What a set of models cannot be made without."""


def bench_models(folder, work):
    """(name, path) of each; skeletons are filled one at a time."""
    filled = sorted(folder.glob("*/model.onnx"))
    if filled:
        yield from ((path.parent.name, path, None) for path in filled)
        return
    maker = folder / "materialise.py"
    if not maker.exists():
        raise Missing(f"{folder} has no NAME/model.onnx and no materialise.py")
    if subprocess.run([sys.executable, "-c", "import numpy, onnx"], stderr=subprocess.DEVNULL).returncode != 0:
        raise Missing("skeletons are filled with numpy and onnx, which this Python lacks")
    for skeleton in sorted(folder.glob("*.onnx")):
        name = skeleton.stem
        subprocess.run([sys.executable, str(maker), "--out", str(work), name], check=True, stdout=subprocess.DEVNULL)
        yield name, work / name / "model.onnx", None
        shutil.rmtree(work / name)


def models_of(name, work):
    """(name, path, folder of test data or None) of a set's models; None where its folder is not named."""
    if name == "generated":
        for each, make in GENERATED.items():
            path = work / f"{each}.onnx"
            path.write_bytes(make())
            yield each, path, None
    elif name == "bundled":
        for path in sorted((SOURCE / "models").glob("*.onnx")):
            yield path.stem, path, None
    elif name == "corpus":
        cases = {case.name: case for case in run_conformance.cases_of("real", pathlib.Path(os.environ["SVOD_CORPUS"]))}
        for each in CORPUS:
            yield each, cases[each].model, cases[each].data[0] if cases[each].data else None
    else:
        yield from bench_models(pathlib.Path(os.environ["SVOD_BENCH_MODELS"]), work)


SETS = {"generated": None, "bundled": None, "corpus": "SVOD_CORPUS", "bench": "SVOD_BENCH_MODELS"}


def table(path, shapes):
    """The lines of one model, each once with its count, in the order in which they first stand."""
    command = [str(PACKER), str(path), "--emit=algorithms", "--verify", "off", "-q", "--target", TARGET]
    if shapes:
        command += ["--shape-from", str(shapes)]
    done = subprocess.run(command, capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
    if done.returncode != 0:
        return f"  exit {done.returncode}: {done.stderr.decode(errors='replace').strip()}\n"
    counts = {}
    for line in done.stdout.decode().splitlines():
        what = line.partition("': ")[2]
        counts[what] = counts.get(what, 0) + 1
    return "".join(f"{count:4} {what}\n" for what, count in counts.items())


def text_of(name, work):
    return "".join(f"{each}\n{table(path, shapes)}\n" for each, path, shapes in models_of(name, work))


def sections(text):
    return {part.partition("\n")[0]: part.partition("\n")[2].splitlines() for part in text.split("\n\n") if part}


def report(expected, actual):
    """What is lost and what is new, model by model."""
    before, now = sections(expected), sections(actual)
    for each in dict.fromkeys([*before, *now]):
        old, new = before.get(each, []), now.get(each, [])
        for word, lines, others in (("lost", old, new), ("new", new, old)):
            for line in lines:
                if line not in others:
                    print(f"  {each}: {word}: {line.strip()}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sets", nargs="*", choices=[[], *SETS])
    parser.add_argument("--rebase", action="store_true", help="rewrite the tables that differ")
    options = parser.parse_args()
    differ, work = 0, work_folder("_".join(["contractions", *options.sets]))
    for name, variable in SETS.items():
        if options.sets and name not in options.sets:
            continue
        if variable and not os.environ.get(variable):
            print(f"{name}: left out, {variable} names no folder")
            continue
        try:
            actual, path = text_of(name, work), HERE / "contractions" / f"{name}.txt"
        except Missing as reason:
            print(f"{name}: left out, {reason}")
            continue
        expected = path.read_text() if path.exists() else ""
        print(f"{name}: {len(sections(actual))} models, {'as before' if actual == expected else 'differs'}", flush=True)
        if actual == expected:
            continue
        differ += 1
        report(expected, actual)
        if options.rebase:
            path.parent.mkdir(exist_ok=True)
            path.write_text(actual)
    return 1 if differ and not options.rebase else 0


if __name__ == "__main__":
    sys.exit(main())
