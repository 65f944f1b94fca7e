"""Models as text: what a golden file holds above its expectation.

    x = input f32[1,4]                       an input of the graph; extents may be names
    w = known i64[2] 3 4                     an initializer, its values in order
    w = random f32[4,4] seed 1 scale 0.1     normal numbers, or bytes of all values, always the same ones
    y = Conv(x, w) "name" kernel_shape=[3,3] a node; more outputs as `a, b = ...`, attributes as Python writes them
      then_branch:                           an attribute that is a graph, its lines further in
        z = Relu(x)
        output z f32[?]
    output y f32[1,4]                        without a type: float of so many unknown extents as `rank N` says
    opset 17
    domain com.example 1

A node of another domain is written Op@domain(...). A name in quotes may hold escapes.
"""
import ast
import random
import re
import struct

import onnx_writer as onnx

TYPES = {"f32": (1, "f"), "f16": (10, "e"), "u8": (2, "B"), "i8": (3, "b"), "i32": (6, "i"), "i64": (7, "q"), "bool": (9, "?")}
NODE = re.compile(r'(?P<outputs>[\w, ]+) = (?P<op>\w+)(?:@(?P<domain>[\w.]+))?\((?P<inputs>[\w, ]*)\)'
                  r'(?: (?P<name>"(?:[^"\\]|\\.)*"))?(?P<attributes>.*)')
ATTRIBUTE = re.compile(r'(\w+)=("[^"]*"|\[[^\]]*\]|\S+)')


def names(text):
    return [name.strip() for name in text.split(",")] if text.strip() else []


def type_of(text):
    """(extents, number of the element type, letter of struct)"""
    element, extents = re.fullmatch(r"(\w+)\[(.*)\]", text).groups()
    dims = [int(d) if d.isdigit() else "unknown" if d == "?" else d for d in names(extents)]
    return dims, *TYPES[element]


def raw_tensor(name, dims, dtype, raw):
    return b"".join(onnx.number(1, d) for d in dims) + onnx.number(2, dtype) + onnx.data(8, name) + onnx.data(9, raw)


def random_values(dims, letter, seed, scale):
    count, rng = 1, random.Random(seed)
    for d in dims:
        count *= d
    if letter == "f":
        return [rng.gauss(0, scale) for _ in range(count)]
    low, high = (0, 255) if letter == "B" else (-128, 127)
    return [rng.randint(low, high) for _ in range(count)]


class Reader:
    """The lines of one graph, its bodies by recursion."""

    def __init__(self, lines):
        self.lines = lines
        self.nodes, self.inputs, self.outputs, self.known = [], [], [], []
        self.opset, self.domains = 17, []

    def block(self, indent):
        """The lines that are further in than `indent`."""
        out = []
        while self.lines and len(self.lines[0]) - len(self.lines[0].lstrip()) > indent:
            out.append(self.lines.pop(0))
        return out

    def read(self):
        while self.lines:
            line = self.lines.pop(0)
            indent, words = len(line) - len(line.lstrip()), line.split()
            if words[0] == "opset":
                self.opset = int(words[1])
            elif words[0] == "domain":
                self.domains.append((words[1], int(words[2])))
            elif words[0] == "output":
                self.output(words[1:])
            elif words[2:3] == ["input"]:
                self.inputs.append(onnx.value(words[0], *type_of(words[3])[:2]))
            elif words[2:3] in (["known"], ["random"]):
                self.tensor(words)
            else:
                self.node(line.strip(), indent)
        return self

    def output(self, words):
        if words[1] == "rank":
            self.outputs.append(onnx.value(words[0], ["abcdef"[i] for i in range(int(words[2]))]))
        else:
            self.outputs.append(onnx.value(words[0], *type_of(words[1])[:2]))

    def tensor(self, words):
        dims, dtype, letter = type_of(words[3])
        if words[2] == "random":
            options = dict(zip(words[4::2], words[5::2]))
            values = random_values(dims, letter, int(options["seed"]), float(options.get("scale", 1)))
        else:
            values = [ast.literal_eval(word) for word in words[4:]]
        self.known.append(raw_tensor(words[0], dims, dtype, struct.pack(f"<{len(values)}{letter}", *values)))

    def node(self, line, indent):
        parts = NODE.fullmatch(line)
        if not parts:
            raise ValueError(f"no line of a model: {line}")
        attributes = {key: ast.literal_eval(text) for key, text in ATTRIBUTE.findall(parts["attributes"])}
        name = ast.literal_eval(parts["name"]) if parts["name"] else ""
        made = onnx.node(parts["op"], names(parts["inputs"]), names(parts["outputs"]), name, parts["domain"] or "",
                         **attributes)
        for body in self.bodies(indent):
            made += onnx.data(5, body)
        self.nodes.append(made)

    def bodies(self, indent):
        lines = self.block(indent)
        while lines:
            head, inside = lines.pop(0), []
            depth = len(head) - len(head.lstrip())
            while lines and len(lines[0]) - len(lines[0].lstrip()) > depth:
                inside.append(lines.pop(0))
            graph = Reader(inside).read().graph("body")
            yield onnx.data(1, head.strip().rstrip(":")) + onnx.data(6, graph) + onnx.number(20, 5)

    def graph(self, name):
        return onnx.graph(self.nodes, self.inputs, self.outputs, self.known, name)


def model_of(text):
    """The bytes of the model that a text is."""
    read = Reader([line for line in text.splitlines() if line.strip()]).read()
    return onnx.model(read.nodes, read.inputs, read.outputs, read.known, opset=read.opset, domains=read.domains)
