"""The rows of layers.txt: what the files of each folder may include."""
import pathlib
import re

ROW = re.compile(r"([\w/]+) *([:=]) *(.*)")


def rows(path="tests/layers/layers.txt"):
    """{folder: [folders and single files that it sees]}, lists taken apart."""
    lists, sees = {}, {}
    for line in pathlib.Path(path).read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        row = ROW.fullmatch(line)
        if not row:
            raise ValueError(f"{path}: this is no row: {line}")
        name, kind, words = row.groups()
        seen = [place for word in words.split() for place in lists.get(word, [word])]
        (lists if kind == "=" else sees)[name] = list(dict.fromkeys(seen))
    return sees
