"""What the end-to-end tests share: the packager under test, its programs, skipping, .npy files."""
import ast
import os
import pathlib
import platform
import shutil
import struct
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
BUILD = pathlib.Path(os.environ.get("SVOD_BUILD", SOURCE / "build")).resolve()
PACKER = BUILD / "svod-pack"
# What a user's shell says is not for tests: they would write to a cache that others read. They share one of their own.
for name in ("SVOD_CACHE_REMOTE", "SVOD_CACHE_REMOTE_MODE"):
    os.environ.pop(name, None)
os.environ["SVOD_CACHE_DIR"] = str(BUILD / "e2e" / "cache")
DIGITS = SOURCE / "models" / "digits.onnx"
SAMPLES = [line.split() for line in (SOURCE / "models/samples/labels.txt").read_text().splitlines()]


# With --long a test does all that it can, in a folder of its own; without, what tells most.
LONG = "--long" in sys.argv
# A pack for the level whose stub the packer has compiled, as it has for programs of several levels: 0.3 CPU seconds instead of
# the 4 of another level with an empty cache. Quick tests have it (SVOD_ONE_LEVEL, which tests/CMakeLists.txt sets); all others
# pack for all levels, of which a run takes the best.
LEAST_LEVEL = ("--target", "x86-64-v2" if platform.machine() == "x86_64" else "native")
LEVEL = LEAST_LEVEL if os.environ.get("SVOD_ONE_LEVEL") else ()


def work_folder(name):
    """An empty folder of the test's own."""
    name += "_long" if LONG else ""
    folder = BUILD / "e2e" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def need(*tools):
    """Ends the test as skipped, with the reason, when a tool is absent."""
    for tool in tools:
        if not shutil.which(tool):
            print(f"skipped: {tool} is not installed")
            sys.exit(77)


def run(*command, seconds=120, expect=0, **more):
    """Runs a command and checks its exit code; returns what it did."""
    done = subprocess.run([str(c) for c in command], capture_output=True, timeout=seconds,
                          stdin=subprocess.DEVNULL, **more)
    if done.returncode != expect:
        print(f"exit {done.returncode}, expected {expect}: {' '.join(map(str, command))}")
        print(done.stdout.decode(errors="replace")[-2000:])
        print(done.stderr.decode(errors="replace")[-4000:])
        sys.exit(1)
    return done


def level_of(output, options):
    """LEVEL, but where a target is asked for, or source, which has none."""
    source = pathlib.Path(output).suffix in (".c", ".cpp") or "--emit=source" in options
    asked = any(str(option).startswith(("--target", "--cpu")) for option in options)
    return () if asked or source else LEVEL


def pack(model, output, *options, every_level=False, **more):
    """Packs without the test data beside the model; for one level, unless the options say what for, or all are wanted."""
    options = (*(() if every_level else level_of(output, options)), *options)
    return run(PACKER, model, "-o", output, "--verify", "off", "-q", *options, seconds=300, **more)


def check(good, text):
    """One line per fact; a false one ends the test."""
    print(f"{'ok' if good else 'NOT TRUE'}: {text}")
    if not good:
        sys.exit(1)


def raw_answer(program, source, output, file, *words, runner=()):
    """The bytes of an output, which lie in `file` then."""
    run(*runner, program, source, "--output", f"{output}=@{file}", *words)
    return file.read_bytes()


def sample(file):
    return SOURCE / "models" / "samples" / file


def read_npy(path):
    """(shape, values) of a float32 array."""
    raw = pathlib.Path(path).read_bytes()
    size, = struct.unpack_from("<H", raw, 8)
    header = ast.literal_eval(raw[10:10 + size].decode())
    assert header["descr"] == "<f4" and not header["fortran_order"], header
    body = raw[10 + size:]
    return header["shape"], list(struct.unpack(f"<{len(body) // 4}f", body))


def write_npy(path, shape, values):
    text = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {tuple(shape)!r}, }}"
    text += " " * (-(len(text) + 11) % 64) + "\n"
    pathlib.Path(path).write_bytes(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) +
                                   text.encode() + struct.pack(f"<{len(values)}f", *values))


def digits_on(runner, program, folder):
    """The ten samples through a packed program: their scores, one list each."""
    out = []
    for file, _ in SAMPLES:
        target = folder / f"scores_{file}"
        run(*runner, program, "--input", f"image=@{sample(file)}", "--output", f"scores=@{target}")
        out.append(read_npy(target)[1])
    return out


def labels_right(scores):
    return sum(max(range(10), key=s.__getitem__) == int(label)
               for s, (_, label) in zip(scores, SAMPLES))


def largest_difference(a, b):
    return max(abs(x - y) for s, t in zip(a, b) for x, y in zip(s, t))
