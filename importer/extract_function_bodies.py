#!/usr/bin/env python3
"""Writes the function bodies of standard ONNX operators as a C++ array.

The `onnx` package holds, for some operators, a body made of simpler operators. They are written
as one ModelProto whose functions are those bodies, so that the reader of models reads them too.
The overload of each function is "FIRST-LAST", the versions of its domain in which it holds; an
attribute's default is put into the function, where the specification keeps it in the operator.

usage: extract_function_bodies.py OUTPUT.cpp
"""

import sys

import onnx
from onnx import defs


def last_versions(schemas):
    """(domain, name, since_version) -> the last version before the next schema."""
    history = {}
    for schema in schemas:
        history.setdefault((schema.domain, schema.name), []).append(schema.since_version)
    last = {}
    for (domain, name), versions in history.items():
        versions.sort()
        for first, following in zip(versions, versions[1:] + [10000]):
            last[domain, name, first] = following - 1
    return last


def function_of(schema, last):
    function = onnx.FunctionProto()
    function.CopyFrom(schema.function_body)
    function.domain = schema.domain
    function.overload = f"{schema.since_version}-{last}"
    function.doc_string = ""
    del function.attribute[:]
    for name, attribute in sorted(schema.attributes.items()):
        if attribute.default_value.name:
            function.attribute_proto.append(attribute.default_value)
        else:
            function.attribute.append(name)
    return function


def main():
    schemas = defs.get_all_schemas_with_history()
    last = last_versions(schemas)
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    model.opset_import.add(domain="", version=defs.onnx_opset_version())
    # A graph needs an output; this one hands its input through.
    model.graph.name = "function bodies"
    model.graph.input.add(name="x")
    model.graph.output.add(name="x")
    key = lambda s: (s.domain, s.name, s.since_version)
    for schema in sorted(schemas, key=key):
        if schema.has_function:
            model.functions.append(function_of(schema, last[key(schema)]))
    data = model.SerializeToString(deterministic=True)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// Made by extract_function_bodies.py.\n")
        out.write("#include <cstddef>\n\nnamespace svod {\n\n")
        out.write("extern const unsigned char kFunctionBodies[];\n")
        out.write("extern const size_t kFunctionBodiesSize;\n")
        out.write("const unsigned char kFunctionBodies[] = {")
        for start in range(0, len(data), 20):
            out.write("\n    " + ",".join(str(b) for b in data[start : start + 20]) + ",")
        out.write(f"\n}};\nconst size_t kFunctionBodiesSize = {len(data)};\n\n}} // namespace svod\n")


if __name__ == "__main__":
    main()
