#!/usr/bin/env python3
"""--skip-unchanged: a run that is told which inputs have changed does what hangs on them and nothing else, and its outputs are
those of a run of all: in libraries of this machine, and on a board, whose run is emitted. What is skipped is seen by inputs that
change without being told."""
import ctypes
import itertools
import pathlib
import struct
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from board import Run, pack_for_board
from onnx_writer import model, node, random_tensor, tensor, value
from packing import check, pack, work_folder

FOLDER = work_folder("changed")


def two_towers():
    """Layers of x, layers of y, and what reads both; a picture's border, a joined tensor and rows that are replaced in one."""
    nodes = [node("Conv", ["x", "w"], ["c"], pads=[1, 1, 1, 1]), node("Relu", ["c"], ["r"]),
             node("MaxPool", ["r"], ["pool"], kernel_shape=[2, 2], strides=[2, 2]),
             node("Conv", ["pool", "w2"], ["c2"], pads=[1, 1, 1, 1]), node("Tanh", ["c2"], ["features"]),
             node("MatMul", ["y", "v"], ["m"]), node("Softmax", ["m"], ["weights"], axis=-1),
             node("Reshape", ["features", "flat"], ["tokens"]),
             node("MatMul", ["weights", "tokens"], ["mixed"]),
             node("Concat", ["mixed", "weights"], ["both"], axis=1),
             node("ScatterElements", ["both", "at", "y"], ["z"], axis=0)]
    return model(nodes, [value("x", [1, 3, 20, 20]), value("y", [4, 9])],
                 [value("features", [1, 16, 10, 10]), value("weights", [4, 16]), value("z", [4, 116])],
                 [random_tensor("w", [8, 3, 3, 3], 1, 0.3), random_tensor("w2", [16, 8, 3, 3], 2, 0.2),
                  random_tensor("v", [9, 16], 3, 0.5), tensor("flat", [2], [16, 100], 7),
                  tensor("at", [4, 9], [(3 * i) % 4 for i in range(36)], 7)])


def grown_state():
    """A state changes in every run, whatever is told."""
    return model([node("MatMul", ["x", "w"], ["d"]), node("Add", ["h", "d"], ["next"]), node("Tanh", ["next"], ["y"])],
                 [value("x", [1, 7]), value("h", [1, 5])], [value("y", [1, 5]), value("next", [1, 5])],
                 [random_tensor("w", [7, 5], 1, 0.3)])


class Library:
    def __init__(self, name, content, *options):
        folder = FOLDER / name
        folder.mkdir()
        (folder / "net.onnx").write_bytes(content)
        pack(folder / "net.onnx", folder / "libnet.so", "--skip-unchanged", "--name", "net", *options)
        self.calls = ctypes.CDLL(str(folder / "libnet.so"))
        size = self.calls.net_arena_bytes
        size.restype = ctypes.c_size_t
        self.arena_bytes = size()
        self.memory = ctypes.create_string_buffer(b"\xa5" * (size() + 64), size() + 64)
        self.arena = ctypes.c_void_p(ctypes.addressof(self.memory) + 63 & ~63)

    def run(self, inputs, outputs, changed=None):
        """On buffers of the caller's; what it returns is there."""
        ins = (ctypes.c_void_p * len(inputs))(*[ctypes.addressof(b) for b in inputs])
        outs = (ctypes.c_void_p * len(outputs))(*[ctypes.addressof(b) for b in outputs])
        status = self.calls.net_run(self.arena, ins, outs) if changed is None else \
            self.calls.net_run_changed(self.arena, ins, outs, ctypes.c_uint64(changed))
        if status != 0:
            check(False, f"a run returns {status}")
        return [bytes(o) for o in outputs]


def floats(count, seed):
    state = seed * 2654435761 % 2**32
    out = []
    for _ in range(count):
        state = (1103515245 * state + 12345) % 2**31
        out.append(state / 2**30 - 1)
    return ctypes.create_string_buffer(struct.pack(f"<{count}f", *out), 4 * count)


def does_what_changed():
    library = Library("towers", two_towers())
    inputs = {(i, seed): floats(count, 10 * i + seed) for i, count in enumerate((1200, 36)) for seed in (1, 2, 3)}
    new = lambda: [ctypes.create_string_buffer(4 * count) for count in (1600, 64, 464)]
    whole = {}
    for x, y in itertools.product((1, 2, 3), repeat=2):
        whole[x, y] = library.run([inputs[0, x], inputs[1, y]], new())
    library.memory[:] = b"\x5a" * len(library.memory)
    outputs = new()
    got = library.run([inputs[0, 1], inputs[1, 1]], outputs, 0)
    check(got == whole[1, 1], "in an arena that is not known, all is done although nothing is said to have changed")
    for mask, x, y in ((2, 1, 2), (1, 3, 2), (3, 2, 1), (0, 2, 1), (2, 2, 3), (2, 2, 1), (1, 1, 1), (2**64 - 1, 3, 3)):
        got = library.run([inputs[0, x], inputs[1, y]], outputs, mask)
        check(got == whole[x, y], f"changed {mask:#x}: the outputs of a run of all")
    # Not told: x is 1 again. Only what hangs on y is new.
    got = library.run([inputs[0, 1], inputs[1, 2]], outputs, 2)
    check(got == whole[3, 2], "an input that is said to be as it was is not looked at: its layers did not run")
    got = library.run([inputs[0, 1], inputs[1, 1]], outputs, 1)
    check(got[0] == whole[1, 1][0] and got[1] == whole[3, 2][1], "nor is the other one")
    check(library.run([inputs[0, 1], inputs[1, 1]], outputs) == whole[1, 1], "run does all")
    plain = FOLDER / "towers" / "libplain.so"
    pack(FOLDER / "towers" / "net.onnx", plain, "--name", "plain")
    bytes_of = ctypes.CDLL(str(plain)).plain_arena_bytes
    bytes_of.restype = ctypes.c_size_t
    check(bytes_of() < library.arena_bytes, f"what is kept takes memory: {library.arena_bytes} bytes instead of {bytes_of()}")
    check(not hasattr(ctypes.CDLL(str(plain)), "plain_run_changed"), "without the option there is no such function")


def states_go_on():
    library = Library("state", grown_state(), "--state", "h=next")
    x = floats(7, 5)
    outputs = [ctypes.create_string_buffer(20)]
    first = library.run([x], outputs, 1)
    second = library.run([x], outputs, 0)
    library.memory[:] = b"\x5a" * len(library.memory)
    check([library.run([x], outputs), library.run([x], outputs)] == [first, second] and first != second,
          "a state goes on although no input has changed")


def on_a_board():
    folder = FOLDER / "board"
    folder.mkdir()
    path = folder / "towers.onnx"
    path.write_bytes(two_towers())
    found = []
    for name, how in (("all", "net_run(a,i,o)"), ("none", "(net_run(a,i,o)?1:net_run_changed(a,i,o,0))"),
                      ("second", "(net_run_changed(a,i,o,0)?1:net_run_changed(a,i,o,2))")):
        own = folder / name
        own.mkdir()
        pack_for_board(path, own, "net", "cortex-m7", "--skip-unchanged")
        inputs = [bytes(floats(count, seed)) for count, seed in ((1200, 1), (36, 11))]
        found.append(Run(own, "net", "cortex-m7", inputs, f"-DMODEL_RUN(a,i,o)={how}").outputs)
    check(found[0] == found[1] == found[2], "on a board: the same outputs, whatever is left out")


def is_refused():
    path = FOLDER / "towers" / "net.onnx"
    for output, words, why in (("program", [], "is for libraries"), ("net.c", ["--emit=source"], "neither modules, source"),
                               ("libnet.a", ["--dim", "x[0]=1..4"], "fixed sizes")):
        said = pack(path, FOLDER / output, "--skip-unchanged", *words, expect=2).stderr.decode()
        check(why in said, said.strip())


def main():
    does_what_changed()
    states_go_on()
    on_a_board()
    is_refused()


if __name__ == "__main__":
    main()
