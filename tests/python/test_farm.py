#!/usr/bin/env python3
"""python -m svod_pack.farm: what a file of jobs may say, and with --ray jobs on Ray, which is one machine's here.

Without --ray nothing but this Python and NumPy is needed. With it Ray comes from PyPI into a venv of the build folder.
"""
import os
import pathlib
import subprocess
import sys

SOURCE = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(SOURCE / "tests" / "support"))
from onnx_writer import model, node, small_mlp, value
from packing import BUILD, DIGITS, PACKER, check, run, work_folder

RAY = ["ray==2.60.0", "numpy"]
ENVIRONMENT = dict(os.environ, PYTHONPATH=os.pathsep.join(
    [str(SOURCE / "packager/python"), os.environ.get("SVOD_ONNX_PYTHON") or str(BUILD / "onnx-python")]),
    SVOD_PACK_EXECUTABLE=str(PACKER), RAY_USAGE_STATS_ENABLED="0", RAY_DISABLE_IMPORT_WARNING="1")


def farm(python, jobs, expect=0):
    """What it prints on stdout and stderr."""
    done = run(python, "-m", "svod_pack.farm", jobs, expect=expect, env=ENVIRONMENT, seconds=300)
    return done.stdout.decode(), done.stderr.decode()


def refused(folder):
    jobs, job = folder / "jobs.toml", '[[job]]\nmodel = "net.onnx"\noutput = "out/net"\n'
    (folder / "net.onnx").write_bytes(small_mlp())
    (folder / "elsewhere").mkdir()
    (folder / "elsewhere" / "weights").write_text("")
    for text, reason, code in (
            ("[[job]\n", "jobs.toml: ", 2), ("", "no job is given", 2), ("job = [1]\n", "no job is given", 2), ("[jobs]\n", "'jobs' is unknown", 2),
            ('[[job]]\nmodel = "net.onnx"\n', "job 1: output is missing", 2),
            ("[[job]]\nmodel = 1\noutput = 'x'\n", "job 1: model is missing, or no text", 2),
            (job + "cpus = 0\n", "cpus is no number above 0", 2), (job + "shapes = 3\n", "shapes is no table", 2),
            (job + "files = 'x'\n", "files is no list", 2), (job + job, "is the output of two jobs", 2),
            (job + 'files = ["gone"]\n', "there is no file", 4), (job.replace("net.onnx", "gone.onnx"), "gone.onnx", 4),
            (job + 'files = ["elsewhere/weights"]\n', "does not lie beside the model", 2),
            (job + 'tuning = "x"\n', "tuning names what other machines have not", 2)):
        jobs.write_text(text)
        said = farm(sys.executable, jobs, expect=code)[1]
        check(reason in said and "Traceback" not in said, said.strip())
    check("Traceback" not in farm(sys.executable, folder / "nowhere.toml", expect=4)[1], "a file that is not there")
    check(not (folder / "out").exists(), "nothing was written")
    jobs.write_text(job)
    if subprocess.run([sys.executable, "-c", "import ray"], env=ENVIRONMENT, capture_output=True).returncode != 0:
        said = farm(sys.executable, jobs, expect=2)[1]
        check("Ray is not installed" in said and "svod-pack[farm]" in said, said.strip())


def ray_python():
    """A Python with Ray, or the test is skipped."""
    python = BUILD / "venv-ray" / "bin" / "python"
    for command in ([sys.executable, "-m", "venv", BUILD / "venv-ray"],
                    [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *RAY]):
        if python.exists() and subprocess.run([python, "-c", "import ray, numpy"], capture_output=True).returncode == 0:
            break
        done = subprocess.run(command, capture_output=True, timeout=600, stdin=subprocess.DEVNULL)
        if done.returncode != 0:
            print(f"skipped: {RAY[0]} cannot be installed ({done.stderr.decode().strip().splitlines()[-1:]})")
            sys.exit(77)
    return python


def on_ray(folder):
    python = ray_python()
    (folder / "mlp.onnx").write_bytes(small_mlp())
    (folder / "bad.onnx").write_bytes(model([node("Nothing", ["x"], ["y"])], [value("x", [2])], [value("y", [2])]))
    (folder / "digits.onnx").write_bytes(DIGITS.read_bytes())
    jobs = folder / "jobs.toml"
    good = f"""
[all]
verify = "off"
no_cache = true
[[job]]
model = "digits.onnx"
output = "out/digits"
target = "x86-64-v3"
[[job]]
model = "digits.onnx"
output = "out/libdigits.a"
target = "aarch64"
name = "digits"
[[job]]
model = "mlp.onnx"
output = "out/mlp.so"
cpus = 2
shapes = {{ a = [8, 24], b = [8, 16] }}
"""
    jobs.write_text(good)
    told, _ = farm(python, jobs)
    check("3 of 3 jobs done" in told, told.strip().splitlines())
    (folder / "plain").mkdir()
    for name, words in (("digits", ["digits.onnx", "--target", "x86-64-v3"]),
                        ("libdigits.a", ["digits.onnx", "--target", "aarch64", "--name", "digits"]),
                        ("mlp.so", ["mlp.onnx", "--shape", "a=8x24", "--shape", "b=8x16"])):
        run(PACKER, *words, "-o", f"plain/{name}", "--verify", "off", "--no-cache", "-q", cwd=folder, seconds=300)
        check((folder / "out" / name).read_bytes() == (folder / "plain" / name).read_bytes(), f"{name} is that of a pack here")
    check((folder / "out/libdigits.h").read_bytes() == (folder / "plain/libdigits.h").read_bytes(), "and so is its header")
    check(os.access(folder / "out/digits", os.X_OK), "a program may be run")
    before = (folder / "out/digits").read_bytes()
    jobs.write_text(good.replace('target = "x86-64-v3"', 'target = "x86-64-v9"') +
                    '[[job]]\nmodel = "bad.onnx"\noutput = "out/bad"\n')
    told, said = farm(python, jobs, expect=2)
    check("2 of 4 jobs done" in told, "two of four jobs fail")
    check("digits: failed with exit code 2" in said and "'x86-64-v9' is unknown" in said, "one by its options")
    check("bad: failed with exit code 3" in said and "Nothing" in said, "and one by its model")
    check((folder / "out/digits").read_bytes() == before and not (folder / "out/bad").exists(), "which write nothing")
    check(not list((folder / "out").glob(".*")), "and leave nothing")


def main():
    with_ray = "--ray" in sys.argv
    if not with_ray and subprocess.run([sys.executable, "-c", "import numpy, svod_pack"], env=ENVIRONMENT,
                                       capture_output=True).returncode != 0:
        print("skipped: this python has no NumPy, which svod_pack imports")
        sys.exit(77)
    folder = work_folder("farm_ray" if with_ray else "farm")
    (on_ray if with_ray else refused)(folder)


if __name__ == "__main__":
    sys.exit(main())
