#!/usr/bin/env python3
"""Writes what the importer takes from the schemas of the `onnx` package, as C++ data.

Signatures: how many inputs and outputs each operator takes, and of which element types. An input
is a type variable, the same for inputs that must agree, and a set of types, one bit each.

Function bodies: for some operators the package holds a body made of simpler operators. They are
written as one ModelProto whose functions are those bodies, so that the reader of models reads
them too. The overload of each function is "FIRST-LAST", the versions of its domain in which it
holds; an attribute's default is put into the function, where the specification keeps it in the
operator.

usage: extract_onnx.py OUTPUT.cpp
"""

import sys

import onnx
from onnx import defs


def domain_of(schema):
    return "" if schema.domain == "ai.onnx" else schema.domain


def key(schema):
    return domain_of(schema), schema.name, schema.since_version


def last_versions(schemas):
    """(domain, name, since_version) -> the last version before the next schema."""
    history = {}
    for schema in schemas:
        domain, name, version = key(schema)
        history.setdefault((domain, name), []).append(version)
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


def function_bodies(schemas, last):
    model = onnx.ModelProto(ir_version=onnx.IR_VERSION)
    model.opset_import.add(domain="", version=defs.onnx_opset_version())
    # A graph needs an output; this one hands its input through.
    model.graph.name = "function bodies"
    model.graph.input.add(name="x")
    model.graph.output.add(name="x")
    for schema in schemas:
        if schema.has_function:
            model.functions.append(function_of(schema, last[key(schema)]))
    return model.SerializeToString(deterministic=True)


def type_bits(names):
    """Types that are no tensors have no bit: the importer refuses them before."""
    codes = onnx.TensorProto.DataType.items()
    return sum(1 << code for name, code in codes if f"tensor({name.lower()})" in names)


def formal_inputs(schema):
    """One (variable, bits) per formal input, and whether the last one repeats and may mix."""
    variables = {}
    formals = [(variables.setdefault(i.type_str, len(variables)), type_bits(i.types))
               for i in schema.inputs]
    last = schema.inputs[-1] if schema.inputs else None
    repeats = last is not None and last.option == defs.OpSchema.FormalParameterOption.Variadic
    return formals, repeats, repeats and not last.is_homogeneous


def signatures(schemas, last):
    """The texts of the two arrays, and how many rows the second has."""
    formals, rows = [], []
    for schema in schemas:
        inputs, repeats, mixed = formal_inputs(schema)
        counts = [schema.since_version, last[key(schema)], schema.min_input, schema.max_input,
                  schema.max_output, len(formals), len(inputs)]
        numbers = ", ".join(str(min(n, 2**31 - 1)) for n in counts)
        flags = f"{str(repeats).lower()}, {str(mixed).lower()}"
        rows.append(f'    {{"{domain_of(schema)}", "{schema.name}", {numbers}, {flags}}},\n')
        formals += [f"    {{{variable}, {bits}u}},\n" for variable, bits in inputs]
    return "".join(formals), "".join(rows), len(rows)


def main():
    schemas = sorted(defs.get_all_schemas_with_history(), key=key)
    last = last_versions(schemas)
    bodies = function_bodies(schemas, last)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// Made by extract_onnx.py.\n")
        out.write('#include "importer/signature.h"\n\n#include <cstddef>\n\nnamespace svod {\n\n')
        formals, rows, count = signatures(schemas, last)
        out.write("extern const FormalInput kFormalInputs[];\nextern const Signature kSignatures[];\n")
        out.write("extern const size_t kSignatureCount;\n")
        out.write(f"const FormalInput kFormalInputs[] = {{\n{formals}}};\n")
        out.write(f"const Signature kSignatures[] = {{\n{rows}}};\n")
        out.write(f"const size_t kSignatureCount = {count};\n\n")
        out.write("extern const unsigned char kFunctionBodies[];\n")
        out.write("extern const size_t kFunctionBodiesSize;\n")
        out.write("const unsigned char kFunctionBodies[] = {")
        for start in range(0, len(bodies), 20):
            out.write("\n    " + ",".join(str(b) for b in bodies[start : start + 20]) + ",")
        out.write(f"\n}};\nconst size_t kFunctionBodiesSize = {len(bodies)};\n\n}} // namespace svod\n")


if __name__ == "__main__":
    main()
