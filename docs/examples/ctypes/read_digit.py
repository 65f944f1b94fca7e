#!/usr/bin/env python3
"""Calls a packed model from Python with nothing but the standard library.

    svod-pack digits.onnx -o libdigits.so --name digits
    python3 read_digit.py ./libdigits.so < ../cmake-app/four.txt
"""
import ctypes
import json
import sys

INK = {"#": 1.0, "+": 0.5}


class Model:
    """A library of one input and one output, both of 32-bit floats."""

    def __init__(self, path, name):
        library = ctypes.CDLL(path)
        self.run_model = getattr(library, f"{name}_run")
        self.status_text = getattr(library, f"{name}_status_text")
        self.status_text.restype = ctypes.c_char_p
        info = getattr(library, f"{name}_info")
        info.restype = ctypes.c_char_p
        about = json.loads(info())
        entry = about["entries"][0]
        self.inputs, self.outputs = (self.count(entry[side][0]) for side in ("inputs", "outputs"))
        # One arena for all runs, aligned to 64 bytes.
        self.memory = ctypes.create_string_buffer(about["bytes"]["arena"] + 64)
        self.arena = ctypes.c_void_p(-(-ctypes.addressof(self.memory) // 64) * 64)

    @staticmethod
    def count(tensor):
        assert tensor["dtype"] == "f32", tensor
        count = 1
        for extent in tensor["shape"]:
            count *= extent
        return count

    def __call__(self, values):
        given = (ctypes.c_float * self.inputs)(*values)
        answer = (ctypes.c_float * self.outputs)()
        status = self.run_model(self.arena, (ctypes.c_void_p * 1)(ctypes.addressof(given)),
                                (ctypes.c_void_p * 1)(ctypes.addressof(answer)))
        if status != 0:
            raise RuntimeError(self.status_text(status).decode())
        return list(answer)


def main():
    model = Model(sys.argv[1], "digits")
    lines = [line.rstrip("\n").ljust(8)[:8] for line in sys.stdin.readlines()[:8]]
    scores = model([INK.get(c, 0.0) for line in lines for c in line])
    best = max(range(len(scores)), key=scores.__getitem__)
    print(f"{best}, score {scores[best]:.3g}")


if __name__ == "__main__":
    main()
