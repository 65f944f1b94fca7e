#!/usr/bin/env python3
"""A packed program makes the system calls that it was written with and no others: whatever asks for more is stopped.
--unsecure is for those who want it otherwise. What is linked has no memory that
can be written and executed, and its relocations, where it has any, are done before it runs."""
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "support"))
from packing import BUILD, DIGITS, check, need, pack, run, sample, work_folder

# Of x86-64: name -> number and arguments that do no harm where they are let through.
FORBIDDEN = {"getppid": (110, 0, 0, 0), "socket": (41, 1, 1, 0), "fork": (57, 0, 0, 0), "execve": (59, 0, 0, 0),
             "ptrace": (101, 0, 0, 0), "unlink": (87, 0, 0, 0), "kill of nobody": (62, 2**30, 0, 0),
             "memory that is executable": (9, 0, 4096, 5), "mprotect": (10, 0, 4096, 4), "opening to append": (257, -100, 0, 1025),
             "opening to write": (257, -100, 0, 0o2000000 | 0o1101), "a folder": (258, -100, 0, 0),
             "a call of 32-bit x32": (0x40000000 + 39, 0, 0, 0), "a register of addresses": (158, 0x1004, 0, 0)}
WRITES = {"opening to write", "a folder"}
ALLOWED = {"memory": (9, 0, 4096, 1), "registers for tiles": (158, 0x1023, 18, 0),
           "opening to read": (257, -100, 0, 0o2000000), "time": (228, 1, 0, 0)}


def outcome(program, *words):
    return subprocess.run([str(program), *map(str, words)], capture_output=True, stdin=subprocess.DEVNULL,
                          timeout=60).returncode


def asks(where, files, call):
    return outcome(BUILD / "tests" / "ask_kernel", where, files, *call)


def stopped():
    wrong = [name for name, call in FORBIDDEN.items() if asks("here", "reads", call) != -signal.SIGSYS]
    check(not wrong, f"{len(FORBIDDEN)} calls that it was not written with end the program {wrong or ''}")
    wrong = [name for name, call in ALLOWED.items() if asks("here", "reads", call) != 0]
    check(not wrong, f"those that it makes itself are let through {wrong or ''}")
    wrong = [name for name, call in FORBIDDEN.items() if asks("here", "writes", call) != (0 if name in WRITES else -signal.SIGSYS)]
    check(not wrong, f"where an output is a file it is written, and the others are as before {wrong or ''}")
    check(asks("thread", "reads", FORBIDDEN["socket"]) == -signal.SIGSYS and asks("thread", "reads", ALLOWED["time"]) == 0,
          "the same in threads")
    check(asks("free", "reads", FORBIDDEN["getppid"]) == 0, "without the filter any call comes back")


def filter_of(program, *words):
    """What the kernel says of a program that waits for its first record: 2 is a filter."""
    child = subprocess.Popen([str(program), "--stream", *words], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
    status = pathlib.Path(f"/proc/{child.pid}/status")
    found, end = None, time.monotonic() + 10
    while time.monotonic() < end and found != "2":
        told = status.read_text()  # once: between two reads a program sets its filter and waits
        found = re.search(r"^Seccomp:\s+(\d)", told, re.M)[1]
        if re.search(r"^State:\s+S", told, re.M):
            break
        time.sleep(0.01)
    child.communicate(b"")
    return found


def in_programs(folder):
    program = folder / "digits"
    check(filter_of(program) == "2" and filter_of(program, "--unsecure") == "0",
          "a packed program has the filter, and has none with --unsecure")


def all_modes(folder):
    """Nothing that a program does is stopped."""
    program, image = folder / "digits", sample("digit_4.npy")
    pack(DIGITS, program, "--with", "batch,jsonl,trace")
    inputs = folder / "inputs"
    inputs.mkdir()
    for name in ("a.npy", "b.npy"):
        (inputs / name).write_bytes(image.read_bytes())
    labels = folder / "labels.txt"
    labels.write_text("".join(f"class {i}\n" for i in range(10)))
    raw = image.read_bytes()[-28 * 28 * 4:]
    for words, given in ((["--info"], None), (["--info=json"], None), (["--self-check"], None), (["--cpu-check"], None),
                         (["--licenses"], None), (["--version"], None), (["--bench", "--min-time", "0.05", "--threads", "2"], None),
                         (["--profile", "--min-time", "0.05"], None), (["--profile=trace.json"], None),
                         ([image, "--labels", labels], None), (["--stream"], raw * 3), (["--stream=jsonl"], b"\n"),
                         (["--batch-dir", inputs, "--output-dir", folder / "answers"], None),
                         (["--batch-dir", inputs], None), ([image, "--output", f"scores=@{folder / 's.npz'}"], None),
                         (["--verify", DIGITS.parent], None)):
        done = subprocess.run([str(program), *map(str, words)], input=given or b"", capture_output=True, timeout=60)
        if done.returncode < 0:
            check(False, f"{words}: signal {-done.returncode}")
    check((folder / "answers" / "a.npy").exists() and (folder / "s.npz").exists(), "every mode runs under the filter")
    weights = folder / "apart"
    pack(DIGITS, weights, "--weights=file")
    check(outcome(weights, str(image)) == 0, "weights in a file of their own are found")


def hardened(folder):
    need("readelf")
    program, library = folder / "plain", folder / "libplain.so"
    pack(DIGITS, program)
    pack(DIGITS, library)
    for path in (program, library):
        segments = run("readelf", "-lW", path).stdout.decode()
        flags = re.findall(r"^ +(\w+) +0x\S+ 0x\S+ 0x\S+ 0x\S+ 0x\S+ ([RWE ]{3}) ", segments, re.M)
        check(flags and not any("W" in flag and "E" in flag for _, flag in flags),
              f"{path.name}: no segment is both written and executed: {flags}")
        check(("GNU_STACK", "RW ") in flags, f"{path.name}: nor is the stack")
        dynamic = run("readelf", "-dW", path).stdout.decode()
        check("TEXTREL" not in dynamic and "RPATH" not in dynamic and "RUNPATH" not in dynamic,
              f"{path.name}: no relocation of code, no path of libraries")
        relocations = run("readelf", "-rW", path).stdout.decode()
        lazy = "JUMP_SLO" in relocations and "NOW" not in dynamic
        written = any("W" in flag for kind, flag in flags if kind == "LOAD")
        check(not lazy and (not written or ("GNU_RELRO" in segments and "NOW" in dynamic) or
                            "There are no relocations" in relocations),
              f"{path.name}: what the linker fills in is read-only when it runs")


def main():
    folder = work_folder("own_calls")
    hardened(folder)
    all_modes(folder)
    if pathlib.Path("/proc/version").exists() and run("uname", "-m").stdout.strip() != b"x86_64":
        print("skipped: the calls of the test are those of x86-64")
        return 77
    if asks("here", "reads", FORBIDDEN["getppid"]) == 0:
        print("skipped: this kernel takes no filters of system calls")
        return 77
    in_programs(folder)
    stopped()
    return 0


if __name__ == "__main__":
    sys.exit(main())
