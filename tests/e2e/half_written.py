#!/usr/bin/env python3
"""What goes wrong while a pack writes leaves nothing half-written: a full disk, a cache that cannot be
written, a model that is replaced or cut meanwhile, SIGKILL."""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import small_cnn, small_mlp
from packing import DIGITS, PACKER, check, run, work_folder

FOLDER = work_folder("half_written")
ENVIRONMENT = dict(os.environ, SVOD_CACHE_DIR=str(FOLDER / "cache"))


def start(model, output, *options, environment=None, **more):
    return subprocess.Popen([PACKER, model, "-o", output, "--verify", "off", *options], stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, env=environment or ENVIRONMENT, **more)


def finish(child):
    text = child.communicate(timeout=120)[0].decode(errors="replace")
    return child.returncode, text


def older(place):
    """A folder with an older output, which a pack that fails must leave as it is."""
    place.mkdir()
    output = place / "infer"
    output.write_bytes(b"an older one")
    return output


def untouched(output):
    return output.read_bytes() == b"an older one" and [p.name for p in output.parent.iterdir()] == ["infer"]


def full_disk():
    """In a mount namespace of its own, where the machine allows one."""
    script = (f"mount -t tmpfs -o size=100k none {FOLDER / 'disk'} && cd {FOLDER / 'disk'} && echo older > infer && "
              f"{PACKER} {DIGITS} -o infer --verify off; echo exit $?; ls -A; cat infer")
    (FOLDER / "disk").mkdir()
    done = subprocess.run(["unshare", "-rm", "sh", "-c", script], capture_output=True, env=ENVIRONMENT, timeout=120)
    text = (done.stdout + done.stderr).decode()
    if "exit" not in text:
        print(f"left out: no small disk can be made here: {text.strip()[-100:]}")
        return
    check("exit 4\ninfer\nolder\n" in text and "No space left on device" in text, "a full disk: exit 4 and the reason, an older output stays")


def cache_that_cannot_be_written():
    for name, place in (("no folder", "/proc/cache"), ("a file", str(DIGITS / "cache"))):
        output = FOLDER / f"cache_{name.split()[-1]}"
        code, text = finish(start(DIGITS, output, environment=dict(os.environ, SVOD_CACHE_DIR=place)))
        check(code == 0 and output.stat().st_size > 10_000, f"a cache in {name}: the pack goes on without")


def replaced_model():
    """By rename the old one is packed to its end, or the new one is, never something of both."""
    made = {}
    for name, content in (("cnn", small_cnn()), ("mlp", small_mlp())):
        (FOLDER / f"{name}.onnx").write_bytes(content)
        run(PACKER, FOLDER / f"{name}.onnx", "-o", FOLDER / name, "--verify", "off", "-q", "--no-cache", seconds=120)
        made[name] = (FOLDER / name).read_bytes()
    for wait in (0.0, 0.02, 0.05, 0.2):
        model, new = FOLDER / "model.onnx", FOLDER / "new.onnx"
        shutil.copy(FOLDER / "cnn.onnx", model)
        shutil.copy(FOLDER / "mlp.onnx", new)
        child = start(model, FOLDER / "replaced", "-q", "--no-cache")
        time.sleep(wait)
        os.replace(new, model)
        code, text = finish(child)
        check(code == 0 and (FOLDER / "replaced").read_bytes() in made.values(), f"a model replaced after {wait:.2f} s: one of the two {text}")


def cut_model():
    """Its weights are mapped, so who cuts it takes them away."""
    codes = []
    for wait in (0.0, 0.01, 0.02, 0.05, 0.1, 0.2):
        model, output = FOLDER / "cut.onnx", older(FOLDER / f"cut_{wait}")
        shutil.copy(FOLDER / "cnn.onnx", model)
        child = start(model, output, "-q", "--no-cache")
        time.sleep(wait)
        os.truncate(model, 100)
        codes.append(finish(child)[0])
        if codes[-1] != 0:
            check(untouched(output), f"a model cut after {wait:.2f} s: exit {codes[-1]}, nothing was written")
    check(set(codes) <= {0, 1, 4}, f"a model cut while it is packed is no bug of ours: exit codes {codes}")


def killed():
    output = older(FOLDER / "killed")
    for wait in (0.01, 0.05, 0.1, 0.2, 0.3):
        child = start(FOLDER / "cnn.onnx", output, "-q", "--no-cache")
        time.sleep(wait)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        content = output.read_bytes()
        if child.returncode == 0:
            break
        check(content == b"an older one", f"killed after {wait:.2f} s: the older output is whole")
    code, text = finish(start(FOLDER / "cnn.onnx", output, "-q"))
    check(code == 0 and output.read_bytes() == (FOLDER / "cnn").read_bytes(), f"the next pack is as ever {text}")


def main():
    full_disk()
    cache_that_cannot_be_written()
    replaced_model()
    cut_model()
    killed()


if __name__ == "__main__":
    sys.exit(main())
