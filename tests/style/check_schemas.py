#!/usr/bin/env python3
"""Holds importer/operators/onnx_ops.def against the schemas of the pinned `onnx` package: every operator, every version.

Each version of each operator is covered by exactly one row, by a function body of the package or by the importer's
control flow; a row lists the attributes of every version it covers, no more and no fewer, with their types and
defaults. Numbers of inputs and outputs, element types and required attributes are no table of ours: extract_onnx.py
takes them from the same package while building. What differs on purpose is listed here with its reason.
"""
import ast
import collections
import os
import pathlib
import re
import sys

OTHER_DEFAULT = {
    ("Clip", "min"): "without a default in opset 1: the least float bounds nothing",
    ("Clip", "max"): "without a default in opset 1: the greatest float bounds nothing",
    ("GRU", "direction"): "the package's default of opset 1 is misspelt: foward",
    ("MeanVarianceNormalization", "axes"): "the rule has the list",
    ("Multinomial", "dtype"): "the rule has the default, a type",
    ("RandomNormal", "dtype"): "the rule has the default, a type",
    ("RandomUniform", "dtype"): "the rule has the default, a type",
    ("RNN", "activations"): "the rule has the default, which is Tanh for each direction",
    ("RotaryEmbedding", "num_heads"): "0 stands for: the input has an axis of heads",
    ("SequenceEmpty", "dtype"): "without a default: f32, as its text says",
    ("StringNormalizer", "locale"): "without a default: en_US, as its text says",
}
ROW = re.compile(r'^ONNX_OP\("([^"]*)", *(\w*),(.*(?:\n    [VO]\(.*)*)\)$', re.M)
VERSIONS = re.compile(r'\b[VO]\( *(\d+), *(\d+), \w+(.*?)\)(?=\n|$)', re.M)
ATTRIBUTE = re.compile(r'A\((\w+), (\w+), "((?:[^"\\]|\\.)*)"\)')
# Operators without versions of ours: the driver imports them whole.
BY_DRIVER = re.compile(r'^ONNX_OP\("([^"]*)", *(\w+),.* BY_DRIVER\)$', re.M)
Row = collections.namedtuple("Row", "first last attributes")


def find_onnx():
    """The package `onnx`: the one that the build took its data from, else this python's."""
    sys.path.insert(0, str(pathlib.Path(os.environ.get("SVOD_BUILD", "build")) / "onnx-python"))
    try:
        import onnx
        from onnx import defs
    except ImportError as error:
        print(f"skipped: python cannot import onnx ({error})")
        sys.exit(77)
    pinned = pathlib.Path("importer/onnx_pin.txt").read_text().strip()
    if onnx.__version__ != pinned:
        print(f"skipped: onnx is {onnx.__version__}, the tables are held against {pinned}")
        sys.exit(77)
    return onnx, defs


def read_rows():
    rows = collections.defaultdict(list)
    table = pathlib.Path("importer/operators/onnx_ops.def").read_text()
    for domain, name, row in ROW.findall(table):
        for first, last, rest in VERSIONS.findall(row):
            attributes = {a: (kind, default) for a, kind, default in ATTRIBUTE.findall(rest)}
            rows[domain, name].append(Row(int(first), int(last), attributes))
    return rows, set(BY_DRIVER.findall(table))


def same_default(onnx, text, attribute):
    """Whether a row's text is the schema's default; no default is no text."""
    if not attribute.default_value.name:
        return text == ""
    value = onnx.helper.get_attribute_value(attribute.default_value)
    if isinstance(value, bytes):
        return text == value.decode()
    return text != "" and not isinstance(value, list) and \
        abs(ast.literal_eval(text) - value) <= 1e-7 * abs(value)  # a float's text has fewer digits


def attribute_faults(onnx, name, row, schema):
    kinds = {"TYPE_PROTO": "TypeProto"}
    for attribute in sorted(row.attributes.keys() ^ schema.attributes.keys()):
        yield f"attribute '{attribute}' is {'not in the schema' if attribute in row.attributes else 'missing'}"
    for attribute in sorted(row.attributes.keys() & schema.attributes.keys()):
        kind, default = row.attributes[attribute]
        theirs = schema.attributes[attribute]
        wanted = kinds.get(theirs.type.name, theirs.type.name.title().replace("_", ""))
        if kind != wanted:
            yield f"attribute '{attribute}' is {kind}, the schema has {wanted}"
        if not same_default(onnx, default, theirs) and (name, attribute) not in OTHER_DEFAULT:
            yield f"attribute '{attribute}' has the default '{default}', not the schema's"


def faults(onnx, rows, by_driver, domain, name, schema, last):
    covering = [row for row in rows if row.first <= last and row.last >= schema.since_version]
    if schema.deprecated:  # gone from this version on; a row may go on for models that use it all the same
        return
    if not covering:
        if (domain, name) not in by_driver and not schema.has_function:
            yield "no row"
        return
    at = schema.since_version
    for row in sorted(covering):
        if max(row.first, schema.since_version) != at:
            yield f"no row or two at version {at}"
        at = min(row.last, last) + 1
        yield from attribute_faults(onnx, name, row, schema)
    if at != last + 1:
        yield f"no row from version {at} on"


def main():
    onnx, defs = find_onnx()
    rows, by_driver = read_rows()
    history = collections.defaultdict(list)
    for schema in defs.get_all_schemas_with_history():
        history["" if schema.domain == "ai.onnx" else schema.domain, schema.name].append(schema)
    newest = collections.Counter()
    for (domain, _), schemas in history.items():
        newest[domain] = max(newest[domain], *(s.since_version for s in schemas))
    versions, found = 0, []
    for (domain, name), schemas in sorted(history.items()):
        schemas.sort(key=lambda s: s.since_version)
        for schema, following in zip(schemas, [*schemas[1:], None]):
            last = following.since_version - 1 if following else newest[domain]
            versions += 1
            found += [f"{domain or 'ai.onnx'} {name} {schema.since_version}: {fault}"
                      for fault in faults(onnx, rows[domain, name], by_driver, domain, name, schema, last)]
    print("\n".join(found))
    print(f"{versions} versions of {len(history)} operators, {len(found)} differences")
    return 1 if found or not versions else 0


if __name__ == "__main__":
    sys.exit(main())
