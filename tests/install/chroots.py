#!/usr/bin/env python3
"""The packages of `./bootstrap package` on clean systems: installed, a model packed, the result run.

Each system is a minimal one in build/chroots, made by debootstrap once and kept; what is installed there goes again. A
system that cannot be had is named with the reason. SVOD_CHROOTS chooses some by suite. Needs root.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import BUILD, SOURCE, check, need, run

# Suite, name, options of debootstrap. Debian 11 has glibc 2.31, the oldest that is asked for.
UBUNTU = ("--components=main,universe",)
SYSTEMS = [("bullseye", "Debian 11", ()), ("bookworm", "Debian 12", ()), ("jammy", "Ubuntu 22.04", UBUNTU),
           ("noble", "Ubuntu 24.04", UBUNTU)]
SCRIPTS = pathlib.Path("/usr/share/debootstrap/scripts")
# What pip in a chroot is told of the network here.
NETWORK = ["http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "PIP_INDEX_URL", "PIP_CERT",
           "PIP_DEFAULT_TIMEOUT", "SSL_CERT_FILE"]
PYTHON = """
import time
start = time.perf_counter()
import numpy as np, svod_pack
imported = time.perf_counter()
model = svod_pack.compile("/svod/models/digits.onnx")
compiled = time.perf_counter()
scores = model(np.load("/svod/models/samples/digit_7.npy"))
assert scores.argmax() == 7, scores
print(f"import {imported - start:.2f} s, compile {compiled - imported:.2f} s, "
      f"first call {1000 * (time.perf_counter() - compiled):.1f} ms")
"""


def newest(pattern):
    """The package of that name, made from the packer as it is now."""
    found = sorted((BUILD / "packages").glob(pattern))
    fresh = [path for path in found if path.stat().st_mtime >= (BUILD / "svod-pack").stat().st_mtime]
    return fresh[0] if fresh else None


def packages():
    """Wheel, .deb and tarball."""
    patterns = ("*.whl", "*.deb", "*.tar.gz")
    if not all(map(newest, patterns)) and BUILD == SOURCE / "build":
        run(SOURCE / "bootstrap", "package", seconds=1500, cwd=SOURCE)
    if not all(map(newest, patterns)):
        print("skipped: there are no packages of this packer; ./bootstrap package makes them")
        sys.exit(77)
    return [newest(pattern) for pattern in patterns]


def where(suite):
    """More words for debootstrap. A suite younger than it is made as the one before. Without the keyring of a suite it
    trusts TLS, but looks at Debian's mirror only: so it is told its own default, by TLS."""
    script = SCRIPTS / suite if (SCRIPTS / suite).exists() else SCRIPTS / "jammy"
    text = script.read_text() if script.exists() else ""
    keyring = re.search(r"^\s*keyring (\S+)", text, re.M)
    mirrors = [mirror for mirror in re.findall(r"^\s*default_mirror (\S+)", text, re.M)
               if "old-" not in mirror and ("ports" in mirror) == (os.uname().machine != "x86_64")]
    if not keyring or not mirrors:
        return []
    mirror = mirrors[0] if pathlib.Path(keyring[1]).exists() else mirrors[0].replace("http:", "https:")
    return [mirror, str(script)]


def make_system(suite, options):
    """The folder of a system; or None and why it cannot be had."""
    root = BUILD / "chroots" / suite
    if (root / "made").exists():
        return root, ""
    shutil.rmtree(root, ignore_errors=True)
    root.parent.mkdir(exist_ok=True)
    command = ["debootstrap", "--variant=minbase", "--include=python3-venv", *options, suite, str(root),
               *where(suite)]
    try:
        done = subprocess.run(command, capture_output=True, timeout=400)
    except subprocess.TimeoutExpired:
        return None, "debootstrap took longer than 400 s"
    if done.returncode != 0:
        return None, (done.stdout + done.stderr).decode(errors="replace").strip().splitlines()[-1]
    (root / "made").touch()
    return root, ""


def prepare(root):
    """The models, and the network of this machine."""
    shutil.rmtree(root / "svod", ignore_errors=True)
    shutil.copytree(SOURCE / "models", root / "svod" / "models")
    shutil.copy("/etc/resolv.conf", root / "etc" / "resolv.conf")
    for name in ("PIP_CERT", "SSL_CERT_FILE"):
        certificates = os.environ.get(name)
        if certificates:
            target = root / certificates.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(certificates, target)


def inside(root, *command, seconds=300):
    """Runs a command in the system, with a /proc of its own that is gone afterwards."""
    env = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LC_ALL": "C.UTF-8"}
    env.update({name: os.environ[name] for name in NETWORK if name in os.environ})
    return run("unshare", "--mount", "--pid", "--fork", f"--mount-proc={root}/proc", "chroot", root, *command,
               seconds=seconds, env=env)


def pack_and_run(root, program, what):
    """With no cache and no compiler on the system."""
    done = inside(root, program, "/svod/models/digits.onnx", "-o", "/svod/digits", "--no-cache")
    check(b"cosine 1" in done.stderr, f"{what}: packs and verifies")
    done = inside(root, "/svod/digits", "/svod/models/samples/digit_7.npy")
    check(b"0.999" in done.stdout, f"{what}: the packed program answers")


def try_python(root, wheel, name):
    shutil.copy(wheel, root / "svod")
    shutil.rmtree(root / "root" / ".cache", ignore_errors=True)
    inside(root, "python3", "-m", "venv", "--clear", "/svod/venv")
    start = time.monotonic()
    inside(root, "/svod/venv/bin/pip", "install", "--quiet", "--disable-pip-version-check", f"/svod/{wheel.name}")
    installed = time.monotonic()
    done = inside(root, "/svod/venv/bin/python", "-c", PYTHON)
    seconds = time.monotonic() - start
    print(f"{name}: pip install {installed - start:.1f} s; {done.stdout.decode().strip()}; "
          f"from pip install to the answer {seconds:.1f} s")
    done = inside(root, "/svod/venv/bin/svod-pack", "--version")
    check(done.stdout.startswith(b"svod-pack "), f"{name}, wheel: the program is on the path of its environment")


def try_system(root, name, wheel, deb, tarball):
    prepare(root)
    shutil.copy(deb, root / "svod")
    inside(root, "dpkg", "--install", f"/svod/{deb.name}")
    check(not list((root / "usr/lib").glob("llvm*")), f"{name}: no LLVM")
    check((root / "usr/share/zsh/vendor-completions/_svod-pack").exists(), f"{name}: zsh's completions where it looks")
    pack_and_run(root, "svod-pack", f"{name}, {deb.suffix}")
    inside(root, "dpkg", "--purge", "svod-pack")
    run("tar", "-C", root / "svod", "-xf", tarball)
    pack_and_run(root, f"/svod/{tarball.name.removesuffix('.tar.gz')}/bin/svod-pack", f"{name}, tarball")
    try_python(root, wheel, name)
    shutil.rmtree(root / "svod")


def main():
    need("debootstrap", "unshare")
    if os.geteuid() != 0:
        print("skipped: only root can make a chroot")
        return 77
    made = packages()
    tried = 0
    wanted = os.environ.get("SVOD_CHROOTS", " ".join(suite for suite, _, _ in SYSTEMS)).split()
    for suite, name, options in SYSTEMS:
        if suite not in wanted:
            print(f"not tried: {name}: SVOD_CHROOTS names {' '.join(wanted)}")
            continue
        root, why = make_system(suite, options)
        if root is None:
            print(f"not tried: {name}: {why}")
            continue
        try_system(root, name, *made)
        tried += 1
    if tried == 0:
        print("skipped: no clean system could be had")
        return 77
    return 0


if __name__ == "__main__":
    sys.exit(main())
