#!/usr/bin/env python3
"""Writes what the importer takes from the schemas of the `onnx` package, as C++ data.

Signatures: how many inputs and outputs each operator takes, of which element types, and its
attributes. An input or output is a type variable, the same for those that must agree, and a set of
types, one bit each.

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


def formal_values(values, variables):
    """One (variable, bits) per formal input or output."""
    return [(variables.setdefault(v.type_str, len(variables)), type_bits(v.types)) for v in values]


def mixed_last(values):
    """Whether the last one stands for any number of values that may differ in type."""
    variadic = defs.OpSchema.FormalParameterOption.Variadic
    return bool(values) and values[-1].option == variadic and not values[-1].is_homogeneous


def signatures(schemas, last):
    """The texts of the three arrays, and how many rows the last has."""
    formals, attributes, rows = [], [], []
    for schema in schemas:
        numbers = [schema.since_version, last[key(schema)], schema.min_input, schema.max_input,
                   schema.max_output]
        variables, lists = {}, []
        for values in (schema.inputs, schema.outputs):
            lists.append(f"{{{len(formals)}, {len(values)}, {text(mixed_last(values))}}}")
            formals += formal_values(values, variables)
        counts = ", ".join(str(min(n, 2**31 - 1)) for n in numbers)
        rows.append(f'    {{"{domain_of(schema)}", "{schema.name}", {counts}, {", ".join(lists)}, '
                    f"{len(attributes)}, {len(schema.attributes)}}},\n")
        attributes += [(name, a.type.value, a.required) for name, a in sorted(schema.attributes.items())]
    return ("".join(f"    {{{v}, {bits}u}},\n" for v, bits in formals),
            "".join(f'    {{"{name}", {kind}, {text(required)}}},\n' for name, kind, required in attributes),
            "".join(rows), len(rows))


def text(flag):
    return str(flag).lower()


def main():
    schemas = sorted(defs.get_all_schemas_with_history(), key=key)
    last = last_versions(schemas)
    bodies = function_bodies(schemas, last)
    with open(sys.argv[1], "w", encoding="ascii") as out:
        out.write("// Made by extract_onnx.py.\n")
        out.write('#include "importer/operators/signature.h"\n\n#include <cstddef>\n\nnamespace svod::importer {\n\n')
        formals, attributes, rows, count = signatures(schemas, last)
        out.write("extern const FormalValue kFormalValues[];\n")
        out.write("extern const FormalAttribute kFormalAttributes[];\n")
        out.write("extern const Signature kSignatures[];\nextern const size_t kSignatureCount;\n")
        out.write(f"constexpr FormalValue kFormalValues[] = {{\n{formals}}};\n")
        out.write(f"constexpr FormalAttribute kFormalAttributes[] = {{\n{attributes}}};\n")
        out.write(f"constexpr Signature kSignatures[] = {{\n{rows}}};\n")
        out.write(f"const size_t kSignatureCount = {count};\n\n")
        out.write("extern const unsigned char kFunctionBodies[];\n")
        out.write("extern const size_t kFunctionBodiesSize;\n")
        out.write("const unsigned char kFunctionBodies[] = {")
        for start in range(0, len(bodies), 20):
            out.write("\n    " + ",".join(str(b) for b in bodies[start : start + 20]) + ",")
        out.write(f"\n}};\nconst size_t kFunctionBodiesSize = {len(bodies)};\n\n}} // namespace svod::importer\n")


if __name__ == "__main__":
    main()
