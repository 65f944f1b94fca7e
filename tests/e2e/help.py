#!/usr/bin/env python3
"""Help of every verb, the man page and the completions hold every option, and bash completes with them."""
import pathlib
import re
import shutil
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import DIGITS, PACKER, check, run, work_folder

VERBS = ("pack", "check", "ops", "cache", "doctor", "key", "tune", "report", "swap-weights")


def out(*words):
    return run(PACKER, *words).stdout.decode()


def options_of(help_text):
    """Long names, and short ones, as help lists them."""
    rows = re.findall(r"^  (-\S+)", help_text, re.M)
    return [name.split("[")[0] for row in rows for name in row.split(",")]


def complete(script, line):
    """What bash offers after `line`."""
    words = re.split(r"(=)|\s+", line)
    words = [word for word in words if word is not None]
    listing = " ".join(f"'{word}'" for word in words)
    code = (f"source {script}; COMP_WORDS=({listing}); COMP_CWORD={len(words) - 1}; _svod_pack; "
            "printf '%s\\n' \"${COMPREPLY[@]}\"")
    return subprocess.run(["bash", "-c", code], capture_output=True, check=True).stdout.decode().split()


def main():
    folder = work_folder("help")
    every = out("--help")
    check(all(re.search(rf"^  {verb}\b", every, re.M) for verb in VERBS), "--help lists the verbs")
    man = out("--man").replace("\\-", "-")
    scripts = {shell: out(f"--completion={shell}") for shell in ("bash", "zsh", "fish")}
    for verb in VERBS:
        text = out(verb, "--help")
        names = options_of(text)
        usage = "svod-pack" if verb == "pack" else f"svod-pack {verb}"
        check(f"Usage: {usage}" in text and "--json" in names, f"{verb} --help: {len(names)} names")
        section = re.search(rf"^\.SH OPTIONS OF {re.escape(verb.upper())}\n(.*?)(?=^\.SH )", man, re.M | re.S)[1]
        lacking = [name for name in names if not re.search(rf"{name}(?![\w-])", section)]
        check(not lacking, f"the man page has all of {verb} {lacking or ''}")
        for shell, script in scripts.items():
            lacking = [name for name in names if not (
                re.search(rf"{name}(?![\w-])", script) if shell != "fish" else
                re.search(rf" -(l {name[2:]}|s {name[1:]}) ", script))]
            check(not lacking, f"{shell} completes all of {verb} {lacking or ''}")
    licences = out("--licenses")
    check(all(name in licences for name in ("LLVM", "CLI11", "zstd", "Apache-2.0 WITH LLVM-exception")),
          "--licenses names what is inside of svod-pack")
    check("--limit-rank" not in options_of(out("cache", "--help")), "a verb's help has its own options only")
    check(all(f'"{number} ' not in man for number in range(9)) and "EXIT STATUS" in man, "the man page has exit codes")
    script = folder / "svod-pack.bash"
    script.write_text(scripts["bash"])
    check(complete(script, "svod-pack --emi") == ["--emit"], "bash completes an option")
    check(complete(script, "svod-pack m.onnx --emit=sh") == ["shared"], "a value after =")
    check(sorted(complete(script, "svod-pack m.onnx --target cortex-m3")) ==
          ["cortex-m3", "cortex-m33", "cortex-m33-soft", "cortex-m33-softfp"], "a target")
    check(complete(script, "svod-pack cache c")[:1] == ["clear"], "what a verb does")
    check("check" in complete(script, "svod-pack ch"), "a verb")
    check("--limit-rank" not in complete(script, "svod-pack cache --"), "options of a verb")
    for shell, words in (("zsh", ["-n"]), ("fish", ["--no-execute"])):
        if shutil.which(shell):
            (folder / shell).write_text(scripts[shell])
            run(shell, *words, folder / shell)
    if shutil.which("groff"):
        (folder / "svod-pack.1").write_text(out("--man"))
        done = run("groff", "-man", "-Tascii", "-ww", folder / "svod-pack.1")
        check(done.stderr == b"" and b"--max-ram" in re.sub(rb".\x08|\x1b\[\d+m", b"", done.stdout), "groff formats the page")


if __name__ == "__main__":
    sys.exit(main())
