#!/usr/bin/env python3
"""Who looks at the values of weights and does not say so by the look itself: each file is listed here with what it notes
in place of it. A plan of the cache serves other weights, so a look that nobody notes would be a wrong answer."""
import pathlib
import re
import sys

READERS = {
    "compiler/ir/evaluate/evaluate.cpp": "evaluate_known() notes the value, evaluate_unnoted() is for who notes a fact",
    "compiler/ir/evaluate.h": "declares evaluate_unnoted()",
    "compiler/ir/fold.cpp": "keeps the recipe of what it folds, and notes whether it varies",
    "compiler/ir/fold.h": "declares unnoted_tensor()",
    "compiler/ir/graph.h": "declares Blob::unnoted_bytes()",
    "compiler/ir/parse.cpp": "a text's weights are those of another graph",
    "compiler/ir/print.cpp": "prints",
    "compiler/ir/value_facts.cpp": "keeps constants of recipes",
    "compiler/optimize/short_sums.cpp": "notes which sums fit",
    "compiler/rewrite/integer_contractions.cpp": "notes that weights are bytes, or what they are",
    "compiler/select/magnitudes.cpp": "notes a power of two above all",
    "compiler/select/forms/reading.cpp": "is_accurate() notes that a form is",
    "compiler/stored_plan.cpp": "keeps what depends on no weight of the model",
    "compiler/value_questions.cpp": "asks noted facts of other weights",
    "packager/artefact/weights.cpp": "packs, when all is chosen",
}


def main():
    found = {str(path) for folder in ("compiler", "importer", "packager")
             for path in pathlib.Path(folder).rglob("*") if path.suffix in (".h", ".cpp")
             and re.search(r"unnoted_(bytes|tensor)|evaluate_unnoted", path.read_text())}
    for path in sorted(found - READERS.keys()):
        print(f"{path} looks at values of weights and is not listed with what it notes")
    for path in sorted(READERS.keys() - found):
        print(f"{path} is listed and looks at no values")
    print(f"{len(found)} files look at values of weights")
    return 1 if found != READERS.keys() else 0


if __name__ == "__main__":
    sys.exit(main())
