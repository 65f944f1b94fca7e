#!/usr/bin/env python3
"""Cases of the corpus on other cores: packed for a target, run under QEMU (modules in Node), compared with the data.

    SVOD_CORPUS=DIR emulated_cases.py nodes TARGET... [--every 5]   a share of ONNX's node tests
    SVOD_CORPUS=DIR emulated_cases.py packs TARGET... [--most-bytes 1048576]
                                                   small real models pack as for this machine; refusals by reason
    SVOD_CORPUS=DIR emulated_cases.py models TARGET... [--count 20]
                                                   real models of different families compute what the reference does

Linux targets run the packed program, which compares by itself; others a library with a main function. A case that
has no plain tensors (sequences, strings) is left out where the target has libraries only. With a time limit for the corpus
(SVOD_CORPUS_SECONDS) an eighth of the node tests' share, of the packs and of the models is taken.
"""
import argparse
import collections
import concurrent.futures
import os
import pathlib
import re
import shutil
import sys
import tempfile

import run_conformance as base

sys.path.insert(0, str(base.HERE.parent / "support"))
import emulated
from packed_header import Header
import tensor_file

WORK = base.BUILD / "emulated_cases"
MOST_BYTES = 1 << 20
MORE_WORDS = []  # for every pack
SHARE = 8 if os.environ.get("SVOD_CORPUS_SECONDS") else 1


class LeftOut(Exception):
    """The case cannot be run on this kind of target, with the reason."""


def pack(case, output, target, words=()):
    command = [str(base.BUILD / "svod-pack"), str(case.model), "-o", str(output), "--verify", "off", "-q", *words, *MORE_WORDS]
    if target:
        command += ["--target", target]
    if case.data:
        command += ["--shape-from", str(case.data[0])]
    environment = dict(os.environ, SVOD_CACHE_DIR=str(WORK / "cache"))
    return base.run(command, base.PACK_SECONDS, environment)[:2]


def numbered(folder, kind):
    return sorted(folder.glob(f"{kind}_*.pb"), key=lambda p: int(re.search(r"(\d+)\.pb$", p.name)[1]))


def run_program(case, target, folder):
    code, text = pack(case, folder / "program", target.alias)
    if code != 0:
        return f"pack exit {code}: {text[-300:]}"
    for data in case.data:
        code, text, _ = base.run([*target.emulator, str(folder / "program"), "--verify", str(data)], base.RUN_SECONDS)
        if "decode_save_opc: Assertion" in text:
            raise LeftOut("QEMU 7.2 ends at RISC-V's vector conversion towards zero, by an assertion of its own")
        if code != 0:
            return f"run exit {code}: {text[-300:]}"
    return ""


def tensors_of(paths):
    try:
        return [tensor_file.read_tensor(path) for path in paths]
    except (tensor_file.NoTensor, IndexError, OverflowError) as why:
        raise LeftOut(f"no plain tensors: {why}") from why


def compare(ports, found, expected):
    if len(found) != len(expected):
        raise LeftOut("outputs of the data set are not those of the library")
    for port, raw, (dtype, _, right) in zip(ports, found, expected):
        if why := tensor_file.difference(dtype, raw, right):
            return f"output {port.name}: {why}"
    return ""


def check_inputs(takes, given):
    if [port.bytes for port in takes] != [len(raw) for _, _, raw in given]:
        raise LeftOut("inputs of the data set are not those of the library")
    return [raw for _, _, raw in given]


def run_library(case, target, folder):
    module = target.triple.startswith("wasm")
    library = folder / ("infer.wasm" if module else "libinfer.a")
    code, text = pack(case, library, target.alias, ["--threads", "1"])
    if code != 0:
        return f"pack exit {code}: {text[-300:]}"
    data = case.data[0]
    given, expected = tensors_of(numbered(data, "input")), tensors_of(numbered(data, "output"))
    if module:
        loader = library.with_suffix(".mjs")
        inputs = check_inputs(emulated.module_ports(loader, "kInputs"), given)
        ports = emulated.module_ports(loader, "kOutputs")
        code, found = emulated.execute_module(target, library, inputs, folder, base.RUN_SECONDS)
    else:
        inputs = check_inputs(Header(library.with_suffix(".h")).ports("INPUT"), given)
        program, outputs = emulated.link(target, library, folder, inputs)
        ports = [port for port, _ in outputs]
        code, found = emulated.execute(target, program, outputs, seconds=base.RUN_SECONDS)
    return f"run exit {code}" if code != 0 else compare(ports, found, expected)


def run_case(case, alias):
    """(case, what is wrong or nothing, why it was left out or nothing)."""
    target = emulated.find_target(alias)
    folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
    programs = "linux" in target.triple
    try:
        return case, (run_program if programs else run_library)(case, target, folder), ""
    except LeftOut as why:
        return case, "", str(why)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def run_cases(cases, alias, jobs):
    """Prints what is wrong and the counts; whether all is right."""
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        done = list(pool.map(lambda case: run_case(case, alias), cases))
    wrong = [(case, why) for case, why, _ in done if why]
    left_out = collections.Counter(why for _, _, why in done if why)
    for case, why in wrong:
        print(f"wrong: {alias}: {case.name}: {why}")
    for why, count in left_out.most_common():
        print(f"  left out {count:4}  {why}")
    right = len(done) - len(wrong) - sum(left_out.values())
    print(f"{alias}: {right} right, {len(wrong)} wrong, {sum(left_out.values())} left out, of {len(done)}")
    return not wrong


def nodes(options, corpus):
    passing = base.listed("passing", "node")
    cases = [c for c in base.cases_of("node", corpus) if c.name in passing and re.search(options.filter, c.name)]
    return all([run_cases(cases[::options.every], alias, options.jobs) for alias in options.targets])


def small_models(corpus, most_bytes):
    cases = [c for c in base.cases_of("real", corpus) if c.model.stat().st_size < most_bytes]
    return [c for c in cases if c.data]


def packs(options, corpus):
    """Whether each target takes what this machine takes."""
    cases = [c for c in small_models(corpus, options.most_bytes) if re.search(options.filter, c.name)][::SHARE]
    here, good = {}, True
    for alias in ["", *options.targets]:
        triple = emulated.find_target(alias).triple if alias else "linux"
        suffix = "" if "linux" in triple else ".wasm" if "wasm" in triple else ".a"

        def one(case):
            folder = pathlib.Path(tempfile.mkdtemp(dir=WORK))
            try:
                return case.name, pack(case, folder / f"out{suffix}", alias)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            found = dict(pool.map(one, cases))
        here = here or found
        packed = [name for name, (code, _) in found.items() if code == 0]
        for line, count in collections.Counter(
                text.splitlines()[-2 if text.endswith("written") else -1][:150]
                for code, text in found.values() if code != 0).most_common():
            print(f"  refused {count:4}  {line}")
        for name, (code, text) in found.items():
            if code != here[name][0]:
                good = False
                print(f"not as here: {alias}: {name}: exit {code}: {text[-300:]}")
        print(f"{alias or 'this machine'}: {len(packed)} of {len(found)} small models pack")
    return good


def families(cases, count):
    """Models of as many families (folders of the corpus) as there are, the smallest first."""
    by_family = collections.defaultdict(list)
    for case in sorted(cases, key=lambda c: c.model.stat().st_size):
        by_family[case.name.split("/")[0]].append(case)
    chosen = []
    while len(chosen) < count and any(by_family.values()):
        for of_family in by_family.values():
            if of_family and len(chosen) < count:
                chosen.append(of_family.pop(0))
    return chosen


def models(options, corpus):
    passing = base.listed("passing", "real")
    cases = [c for c in small_models(corpus, options.most_bytes) if c.name in passing]
    chosen = [c for c in families(cases, options.count) if re.search(options.filter, c.name)]
    for case in chosen:
        print(f"  {case.model.stat().st_size:8} bytes  {case.name}")
    return all([run_cases(chosen, alias, options.jobs) for alias in options.targets])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["nodes", "packs", "models"])
    parser.add_argument("targets", nargs="+")
    parser.add_argument("--every", type=int, default=5 * SHARE)
    parser.add_argument("--count", type=int, default=-(-20 // SHARE))
    parser.add_argument("--most-bytes", type=int, default=MOST_BYTES)
    parser.add_argument("--filter", default="")
    parser.add_argument("--jobs", "-j", type=int, default=2)
    parser.add_argument("--small", action="store_true", help="pack with -Os")
    options = parser.parse_args()
    if options.small:
        MORE_WORDS.append("-Os")
    if not os.environ.get("SVOD_CORPUS"):
        print("skipped: SVOD_CORPUS does not name a corpus")
        return 77
    WORK.mkdir(parents=True, exist_ok=True)
    for alias in options.targets if options.what != "packs" else []:
        target = emulated.find_target(alias)
        tools = [emulated.CLANG, emulated.LLD, target.emulator[0], *([target.compiler] if target.compiler else [])]
        if missing := [tool for tool in tools if not shutil.which(tool)]:
            print(f"skipped: {missing[0]} is not installed")
            return 77
    corpus = pathlib.Path(os.environ["SVOD_CORPUS"]).resolve()
    return 0 if {"nodes": nodes, "packs": packs, "models": models}[options.what](options, corpus) else 1


if __name__ == "__main__":
    sys.exit(main())
