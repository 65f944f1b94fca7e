"""The build's compile commands, one for each source of ours, also where CMake compiles several at a time."""
import json
import pathlib
import re


def compile_commands(build):
    """Entries of compile_commands.json; one for a file that includes sources becomes one for each of them."""
    for entry in json.loads((pathlib.Path(build) / "compile_commands.json").read_text()):
        path = pathlib.Path(entry["directory"]) / entry["file"]
        if not re.fullmatch(r"unity_\d+_cxx\.cxx", path.name):
            yield entry
            continue
        for source in re.findall(r'^#include "(.+)"$', path.read_text(), re.M):
            yield {"directory": entry["directory"], "file": source,
                   "command": entry["command"].replace(str(path), source)}
