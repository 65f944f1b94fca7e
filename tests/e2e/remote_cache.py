#!/usr/bin/env python3
"""--cache-remote: two machines (two cache folders) and a server between them. One compiles, the other compiles nothing;
whatever the server does, a pack has the bytes of one without a cache, and ends in bounded time.

The server is ours (tests/tools/cache_server.cpp); its folder is looked at and damaged from here. With --buildgrid it is
BuildGrid's, from PyPI. --long waits for servers that never answer, and kills at more calls.
"""
import json
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from onnx_writer import BOOL, INT64, graph as onnx_graph, model as onnx_model, node as onnx_node, random_tensor, small_cnn, small_mlp
from onnx_writer import tensor, value as onnx_value
from packing import BUILD, PACKER, check, run, work_folder

LONG = "--long" in sys.argv
SERVER = BUILD / "tests" / "cache_server"
# One level's kernels, soon compiled: what is in them is no matter here.
SHORT = ["--verify", "off", "-O1", "--search-budget", "0"]
# Of a server that takes little in one message.
BATCH = 70000
# A proxy of the machine's network is not for servers on the machine itself.
CLEAN = {name: value for name, value in os.environ.items() if not name.startswith("SVOD_CACHE")} | {
    "no_grpc_proxy": "127.0.0.1,localhost", "no_proxy": "127.0.0.1,localhost"}


class Server:
    """Runs while the object lives in a with statement."""

    def __init__(self, folder, *options):
        self.folder = folder
        self.process = subprocess.Popen([SERVER, folder, *options], stdout=subprocess.PIPE)
        self.port = int(self.process.stdout.readline())
        self.url = f"grpc://127.0.0.1:{self.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()

    def blobs(self):
        return sorted((self.folder / "blobs").iterdir())

    def actions(self):
        return sorted((self.folder / "actions").iterdir())


class Machine:
    """A cache folder of its own, and what packs with it said."""

    def __init__(self, folder, name):
        self.folder = folder / name
        self.count = 0

    def pack(self, model, url, *options, suffix="", environment=None, seconds=100):
        """(what --json says of the cache, the bytes, what was said on stderr)"""
        self.count += 1
        self.folder.mkdir(exist_ok=True)
        output, summary = self.folder / f"out{self.count}{suffix}", self.folder / f"{self.count}.json"
        where = ["--cache-remote", url] if url else []
        begin = time.monotonic()
        done = run(PACKER, model, "-o", output, *SHORT, f"--json={summary}", "--cache-dir", self.folder / "cache",
                   *where, *options, seconds=seconds, env=CLEAN | (environment or {}))
        self.seconds = time.monotonic() - begin
        return json.loads(summary.read_text())["cache"], output.read_bytes(), done.stderr.decode()

    def stats(self):
        return json.loads(run(PACKER, "cache", "stats", "--json", "--cache-dir", self.folder / "cache").stdout)


def warnings(said):
    return [line for line in said.splitlines() if "warning: " in line]


def shared(folder, model, want, url):
    """What every server of the API has to do; returns the first machine's facts."""
    one, two, three = (Machine(folder, name) for name in ("one", "two", "three"))
    first, bytes_first, said = one.pack(model, url)
    check(first["plan"] == "miss" and first["kernels_compiled"] > 0, f"the first machine compiles: {first}")
    check(first["remote"]["uploads"] > first["kernels_compiled"] and first["remote"]["left"] == 0,
          "and gives plan, program and all objects")
    second, bytes_second, said = two.pack(model, url)
    check(second["plan"] == "hit" and second["kernels_compiled"] == 0, f"the second one compiles nothing: {second}")
    check(second["remote"]["hits"] == 2 and second["remote"]["misses"] == 0, "it takes the plan and the program")
    check(bytes_first == want and bytes_second == want, "both have the bytes of a pack without a cache")
    check(not warnings(said), "and no warning")
    library, bytes_library, _ = three.pack(model, url, suffix=".a")
    check(library["kernels_compiled"] == 0 and library["remote"]["hits"] > 2, f"a library takes the objects: {library}")
    run(PACKER, model, "-o", folder / "plain.a", *SHORT, "--no-cache", "-q", seconds=300)
    check(bytes_library == (folder / "plain.a").read_bytes(), "and has its bytes, too")
    again, _, _ = two.pack(model, url)
    check(again["remote"]["state"] == "unused", f"what the folder has nobody is asked for: {again['remote']}")
    totals = two.stats()["remote"]
    check(totals["hits"] == 2 and totals["hit_bytes"] == second["remote"]["hit_bytes"], f"cache stats: {totals}")
    return first


def told(folder, model, want):
    with Server(folder / "told") as server:
        Machine(folder, "told_one").pack(model, server.url)
        machine = Machine(folder, "told_two")
        _, _, said = machine.pack(model, "", "-v", environment={"SVOD_CACHE_REMOTE": server.url})
        check("remote cache: 2 hits (" in said and "connected in " in said, "-v tells, and the environment names it")
        doctor = run(PACKER, "doctor", "--cache-remote", server.url, env=CLEAN).stdout.decode()
        check(f"remote cache: {server.url}, works\n" in doctor, "doctor says that it works")
        off, got, _ = Machine(folder, "told_off").pack(model, server.url, "--no-cache")
        check("remote" not in off and got == want, "--no-cache is no remote cache, too")
        several = ["--entry", "one:a=4x24,b=4x16", "--entry", "two:a=8x24,b=8x16"]
        mlp = folder / "mlp.onnx"
        mlp.write_bytes(small_mlp())
        first = Machine(folder, "sets_one").pack(mlp, server.url, *several)
        second = Machine(folder, "sets_two").pack(mlp, server.url, *several)
        check(second[0]["plan"] == "hit" and second[0]["kernels_compiled"] == 0 and first[1] == second[1],
              f"several sets of shapes: {second[0]}")


def streams(folder, model, want):
    """A server whose messages hold little: larger blobs come and go as streams."""
    with Server(folder / "streams", f"batch={BATCH}", "instance=a/b") as server:
        shared(folder / "small", model, want, server.url + "/a/b")
        largest = max(server.blobs(), key=lambda file: file.stat().st_size)
        check(largest.stat().st_size > BATCH, f"streams of up to {largest.stat().st_size} bytes")
        raw = largest.read_bytes()
        for how, text in (("cut", raw[:-1]), ("too long", raw + b"x"), ("another", raw[:-1] + bytes([raw[-1] ^ 1]))):
            largest.write_bytes(text)
            machine = Machine(folder, f"stream_{how[:3]}")
            facts, got, said = machine.pack(model, server.url + "/a/b")
            check(got == want and facts["remote"]["damaged"] == 1 and len(warnings(said)) == 1,
                  f"a stream that is {how}: {warnings(said)[0]}")
        largest.write_bytes(raw)
        facts, got, said = Machine(folder, "nobody").pack(model, server.url + "/other")
        check(got == want and facts["remote"]["state"] == "failed" and "no instance" in said, warnings(said)[0])
        check("\x1b" not in said, "what a server says goes to no terminal as it is")


def damaged(folder, model, want):
    """Never a wrong byte out: a wrong size, a wrong bit, another entry's bytes, a blob that is gone."""
    with Server(folder / "damaged") as server:
        Machine(folder, "source").pack(model, server.url)
        blobs = {file: file.read_bytes() for file in server.blobs()}
        actions = {file: file.read_bytes() for file in server.actions()}

        def restore():
            for file, raw in (blobs | actions).items():
                file.write_bytes(raw)

        def with_all(name, change):
            for i, (file, raw) in enumerate(blobs.items()):
                file.write_bytes(change(raw, i))
            facts, got, said = Machine(folder, f"damaged_{name}").pack(model, server.url)
            check(got == want, f"every blob {name}: the right bytes")
            check(facts["remote"]["hits"] == 0 and facts["remote"]["damaged"] > 2 and facts["kernels_compiled"] > 0,
                  f"and none is used: {facts}")
            check(len(warnings(said)) == 1 and "damaged entry" in said, warnings(said)[0])
            restore()

        with_all("cut", lambda raw, i: raw[:-1])
        with_all("longer", lambda raw, i: raw + b"\0")
        with_all("empty", lambda raw, i: b"")
        with_all("flipped", lambda raw, i: raw[:i * 7 % len(raw)] + bytes([raw[i * 7 % len(raw)] ^ 4]) +
                 raw[i * 7 % len(raw) + 1:])
        # The right digest of what is no entry: the server has recorded it so.
        import hashlib
        for file, raw in blobs.items():
            other = bytes(len(raw))
            name = hashlib.sha256(other).hexdigest()
            (file.parent / name).write_bytes(other)
            for action, text in actions.items():
                if file.name.encode() in text:
                    action.write_bytes(text.replace(file.name.encode(), name.encode()))
        facts, got, said = Machine(folder, "zeros").pack(model, server.url)
        check(got == want and facts["remote"]["hits"] == 0 and "it is no entry of svod-pack/" in said,
              f"a blob that is no entry: {warnings(said)[0]}")
        check(facts["remote"]["hit_bytes"] == 0 and facts["remote"]["damaged"] == facts["remote"]["misses"],
              "is asked for once, and is no hit")
        restore()
        # Each entry's result is that of the next one.
        texts = list(actions.values())
        for file, text in zip(actions, texts[1:] + texts[:1]):
            file.write_bytes(text)
        facts, got, said = Machine(folder, "shifted").pack(model, server.url)
        check(got == want and facts["remote"]["hits"] == 0, f"results of other entries: {facts}")
        for file, text in zip(actions, texts):
            file.write_bytes(b"\xff" + text)
        facts, got, said = Machine(folder, "no_message").pack(model, server.url)
        check(got == want and len(warnings(said)) == 1, f"no message at all: {warnings(said)[0]}")
        restore()
        for file in blobs:
            file.unlink()
        machine = Machine(folder, "gone")
        facts, got, said = machine.pack(model, server.url)
        check(got == want and facts["kernels_compiled"] > 0 and not warnings(said), "blobs that are gone are misses")
        facts, got, said = Machine(folder, "after").pack(model, server.url)
        check(got == want and facts["kernels_compiled"] == 0, "and were brought again")


def bad_servers(folder, model, want):
    """One warning, the folder alone, and in bounded time."""
    def tried(name, url, said_once, limit, *options, **more):
        machine = Machine(folder, f"bad_{name}")
        facts, got, said = machine.pack(model, url, *options, **more)
        check(got == want and facts["kernels_compiled"] > 0, f"{name}: the pack goes on")
        check(len(warnings(said)) == 1 and said_once in said, f"with one warning: {warnings(said)}")
        check(machine.seconds < limit, f"and took {machine.seconds:.1f} s")

    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        tried("closed", f"grpc://127.0.0.1:{closed.getsockname()[1]}", "cannot be reached", 30)
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        tried("mute", f"grpc://127.0.0.1:{mute.getsockname()[1]}", "cannot be reached", 30)
    tried("unknown", "grpc://no-such-machine.invalid:8980", "cannot be reached", 30)
    for call in ("capabilities", "find") if LONG else ():
        with Server(folder / f"hang_{call}", f"hang={call}") as server:
            tried(f"hang_{call}", server.url, "does not answer in time", 40)
    with Server(folder / "other", "digests=other") as server:
        tried("digests", server.url, "no cache with SHA-256", 30)
    with Server(folder / "slow", "slow=2100") as server:
        tried("slow", server.url, "more than 2 s", 40)
    with Server(folder / "refused", "updates=refused") as server:
        tried("refused", server.url, "results are not yours to write", 30)
    with Server(folder / "tls") as server:
        tried("no_tls", server.url.replace("grpc:", "grpcs:"), "cannot be reached", 30,
              environment={"SVOD_CACHE_CA": str(folder / "cert.pem")})


def streams_that_hang(folder, model, want):
    with Server(folder / "hang_stream", f"batch={BATCH}") as server:
        Machine(folder, "hang_source").pack(model, server.url)
    with Server(folder / "hang_stream", f"batch={BATCH}", "hang=stream") as server:
        machine = Machine(folder, "hang_stream_two")
        facts, got, said = machine.pack(model, server.url)
        check(got == want and len(warnings(said)) == 1 and machine.seconds < 40,
              f"a stream that does not begin, {machine.seconds:.1f} s: {warnings(said)[0]}")


def killed(folder, model, want):
    """A server that ends at its Nth call, while entries come and while they go."""
    for name, before in (("empty", False), ("full", True)):
        for number in range(1, 21) if LONG else (1, 2, 3, 5, 8):
            where = folder / f"killed_{name}_{number}"
            if before:
                with Server(where) as server:
                    Machine(folder, f"{where.name}_source").pack(model, server.url)
            with Server(where, f"exit={number}") as server:
                machine = Machine(folder, where.name + "_pack")
                facts, got, said = machine.pack(model, server.url, suffix="")
                check(got == want and len(warnings(said)) <= 1, f"{name} server that ends at call {number}: right bytes, "
                      f"{facts['remote']['state']}, {len(warnings(said))} warnings")
            with Server(where) as server:
                facts, got, said = Machine(folder, where.name + "_next").pack(model, server.url)
                check(got == want and not warnings(said), "and what it has kept is right")


def read_only(folder, model, want):
    with Server(folder / "read") as server:
        ro = ["--cache-remote-mode=ro"]
        facts, got, _ = Machine(folder, "read_one").pack(model, server.url, *ro)
        check(facts["remote"]["uploads"] == 0 and not server.blobs() and got == want, "read only: nothing goes")
        facts, _, _ = Machine(folder, "read_env").pack(model, server.url, environment={"SVOD_CACHE_REMOTE_MODE": "ro"})
        check(not server.blobs(), "and by the environment")
        Machine(folder, "read_dry").pack(model, server.url)
        count = len(server.blobs())
        facts, got, _ = Machine(folder, "read_two").pack(model, server.url, *ro)
        check(facts["kernels_compiled"] == 0 and len(server.blobs()) == count > 0 and got == want, "but comes")
    with Server(folder / "no_updates", "updates=no") as server:
        facts, got, said = Machine(folder, "no_updates_one").pack(model, server.url, "-v")
        check(not server.blobs() and not warnings(said) and "takes no results" in said,
              "a server that says so gets nothing, without a warning")


def tls(folder, model, want):
    if not shutil.which("openssl"):
        print("left out: openssl is not installed, which makes a certificate")
        return
    key, cert = folder / "key.pem", folder / "cert.pem"
    run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
        "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert)
    with Server(folder / "tls_server", f"cert={cert}", f"key={key}") as server:
        url = f"grpcs://localhost:{server.port}"
        trusted = {"SVOD_CACHE_CA": str(cert)}
        Machine(folder, "tls_one").pack(model, url, environment=trusted)
        facts, got, said = Machine(folder, "tls_two").pack(model, url, environment=trusted)
        check(got == want and facts["kernels_compiled"] == 0 and not warnings(said), f"TLS: {facts['remote']}")
        facts, got, said = Machine(folder, "tls_three").pack(model, url)
        check(got == want and facts["remote"]["state"] == "failed", f"who does not trust it: {warnings(said)[0]}")
        facts, got, said = Machine(folder, "tls_four").pack(model, url, environment={"SVOD_CACHE_CA": "/no/file"})
        check(got == want and "SVOD_CACHE_CA names /no/file" in said, warnings(said)[0])


def refused(folder, model):
    """Wrong words are wrong on the command line; from the environment they stop nobody."""
    for words, reason in ((["--cache-remote", "http://a:1"], "begins with neither grpc:// nor grpcs://"),
                          (["--cache-remote", "grpc://a"], "names no port"),
                          (["--cache-remote", "grpc://a:0"], "has a port that is none"),
                          (["--cache-remote", "grpc://:1"], "names no host"),
                          (["--cache-remote", "grpc://user@a:1"], "holds what is no host"),
                          (["--cache-remote-mode", "wo"], "is none of rw|ro")):
        said = run(PACKER, model, "-o", folder / "refused", *words, expect=2, env=CLEAN).stderr.decode()
        check(reason in said and not (folder / "refused").exists(), said.splitlines()[0])
    for name, value in (("SVOD_CACHE_REMOTE", "http://a:1"), ("SVOD_CACHE_REMOTE_MODE", "wo")):
        variables = {"SVOD_CACHE_REMOTE": "grpc://a:1", name: value}
        facts, _, said = Machine(folder, f"refused_{name}").pack(model, "", environment=variables)
        check("remote" not in facts and len(warnings(said)) == 1 and name in said, warnings(said)[0])


def not_built(folder):
    model, want = packed_plainly(folder)
    said = run(PACKER, model, "-o", folder / "x", "--cache-remote", "grpc://a:1", expect=2, env=CLEAN).stderr.decode()
    check("built without the remote cache" in said and not (folder / "x").exists(), said.splitlines()[0])
    _, got, said = Machine(folder, "one").pack(model, "", environment={"SVOD_CACHE_REMOTE": "grpc://a:1"})
    check(got == want and len(warnings(said)) == 1, warnings(said)[0])


def large_model():
    """What passes fold is in the plan of a graph with regions: weights of layers with their normalisation, which no
    compression makes smaller. A plan without regions has recipes in their place."""
    count, channels = 40, 64
    weights, nodes, last = [], [], "x"
    for i in range(count):
        weights.append(random_tensor(f"w{i}", [channels, channels, 3, 3], i, 0.05))
        weights += [random_tensor(f"{name}{i}", [channels], 1000 * k + i) for k, name in enumerate("sbm")]
        weights.append(tensor(f"v{i}", [channels], [1.0] * channels))
        nodes += [onnx_node("Conv", [last, f"w{i}"], [f"c{i}"], pads=[1, 1, 1, 1]),
                  onnx_node("BatchNormalization", [f"c{i}", f"s{i}", f"b{i}", f"m{i}", f"v{i}"], [f"n{i}"]),
                  onnx_node("Relu", [f"n{i}"], [f"r{i}"])]
        last = f"r{i}"
    shape = [1, channels, 8, 8]
    body = onnx_graph([onnx_node("Identity", ["on"], ["still"]), onnx_node("Tanh", ["v"], ["w"])],
                      [onnx_value("i", [], INT64), onnx_value("on", [], BOOL), onnx_value("v", shape)],
                      [onnx_value("still", [], BOOL), onnx_value("w", shape)])
    nodes.append(onnx_node("Loop", ["n", "", last], ["y"], body=body))
    inputs = [onnx_value("x", shape), onnx_value("n", [], INT64)]
    return onnx_model(nodes, inputs, [onnx_value("y", shape)], weights)


def packed_plainly(folder):
    model = folder / "cnn.onnx"
    model.write_bytes(small_cnn())
    run(PACKER, model, "-o", folder / "plain", *SHORT, "--no-cache", "-q", seconds=300)
    return model, (folder / "plain").read_bytes()


CONFIG = """
server:
  - !channel
    address: 127.0.0.1:{port}
    insecure-mode: true
authorization:
  method: none
monitoring:
  enabled: false
instances:
  - name: 'main'
    storages:
      - !lru-storage &cas
        size: 512M
    caches:
      - !lru-action-cache &actions
        storage: *cas
        max-cached-refs: 10000
        allow-updates: true
    services:
      - !action-cache
        cache: *actions
      - !cas
        storage: *cas
      - !bytestream
        storage: *cas
thread-pool-size: 20
"""


def buildgrid():
    """Somebody else's server, from PyPI, in a venv of the build folder."""
    venv = BUILD / "venv-buildgrid"
    program = venv / "bin" / "bgd"
    if not program.exists():
        for command in ([sys.executable, "-m", "venv", venv],
                        [venv / "bin/python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", BUILDGRID]):
            done = subprocess.run(command, capture_output=True, timeout=500, stdin=subprocess.DEVNULL)
            if done.returncode != 0:
                print(f"skipped: {BUILDGRID} cannot be installed ({done.stderr.decode().strip().splitlines()[-1:]})")
                sys.exit(77)
    folder = work_folder("remote_cache_buildgrid")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "config.yml").write_text(CONFIG.format(port=port))
    with open(folder / "log", "w") as log:
        server = subprocess.Popen([program, "server", "start", folder / "config.yml"], stdout=log, stderr=log)
    try:
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            check(server.poll() is None, "BuildGrid's server runs")
            time.sleep(0.1)
        model, want = packed_plainly(folder)
        shared(folder, model, want, f"grpc://127.0.0.1:{port}/main")
        # A plan of more than the 4 MiB that one message holds.
        large = folder / "large.onnx"
        large.write_bytes(large_model())
        first = Machine(folder, "large_one").pack(large, f"grpc://127.0.0.1:{port}/main")
        second = Machine(folder, "large_two").pack(large, f"grpc://127.0.0.1:{port}/main")
        check(second[0]["kernels_compiled"] == 0 and first[1] == second[1] and second[0]["remote"]["hit_bytes"] > 4 << 20,
              f"entries that come as streams: {second[0]}")
    finally:
        server.send_signal(signal.SIGTERM)
        server.wait(30)


def main():
    if b"not in this build" in run(PACKER, "doctor").stdout:
        not_built(work_folder("remote_cache"))
        print("skipped: this svod-pack was built without gRPC")
        sys.exit(77)
    if "--buildgrid" in sys.argv:
        return buildgrid()
    folder = work_folder("remote_cache_long" if LONG else "remote_cache")
    (folder / "small").mkdir()
    model, want = packed_plainly(folder)
    with Server(folder / "server") as server:
        shared(folder, model, want, server.url)
    told(folder, model, want)
    streams(folder, model, want)
    damaged(folder, model, want)
    read_only(folder, model, want)
    tls(folder, model, want)
    refused(folder, model)
    killed(folder, model, want)
    bad_servers(folder, model, want)
    if LONG:
        streams_that_hang(folder, model, want)
    return 0


BUILDGRID = "buildgrid==0.4.4"

if __name__ == "__main__":
    sys.exit(main())
