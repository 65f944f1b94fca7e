"""Many packs on many machines: `python -m svod_pack.farm jobs.toml` hands the jobs of a file to a Ray cluster.

    [all]                          # options of every job; a job's own go before
    cache_remote = "grpc://cache.example:8980"
    cpus = 2                       # that Ray keeps free for each

    [[job]]
    model = "mobilenet.onnx"       # from the folder of the file, as all paths
    output = "out/mobilenet"
    shapes = { image = [1, 3, 224, 224] }
    target = "x86-64-v3"

Jobs are those of pack(): `shapes`, `values` and options with _ for -. The model's bytes travel to the worker and the output's
travel back, so machines need no common folder, but each needs this package of the same version. What lies beside a model
(external data) is named by `files`. Nothing is written before its job has gone well; the exit code is that of the first job
of the file that failed.
"""
from __future__ import annotations

import argparse
import os
import socket
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Optional

from svod_pack._errors import PackError
from svod_pack._packer import pack, version

_DONE, _USAGE, _FILE = 0, 2, 4
# Of pack() and of the farm; all other keys are options of the packer.
_OWN = ("model", "output", "files", "cpus", "shapes", "values")
# What names files of the machine that it was written on, or prints instead of packing.
_REFUSED = ("json", "report", "deps", "tuning", "schedule", "custom_op", "replace_kernel", "cache_dir", "dry_run")


class JobsError(Exception):
    """What is wrong with a file of jobs."""

    def __init__(self, text: str, code: int = _USAGE):
        super().__init__(text)
        self.code = code


@dataclass(frozen=True)
class Job:
    model: Path
    output: Path
    files: tuple[Path, ...] = ()
    cpus: float = 1
    shapes: Mapping[str, Any] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, Any] = field(default_factory=dict)


def _toml(path: Path) -> dict[str, Any]:
    try:
        import tomllib
    except ImportError:  # before Python 3.11
        import tomli as tomllib
    try:
        with open(path, "rb") as file:
            return tomllib.load(file)
    except OSError as error:
        raise JobsError(f"{path}: {error.strerror}", _FILE) from error
    except tomllib.TOMLDecodeError as error:
        raise JobsError(f"{path}: {error}") from error


def _job(folder: Path, place: str, facts: Mapping[str, Any]) -> Job:
    for key in ("model", "output"):
        if not isinstance(facts.get(key), str):
            raise JobsError(f"{place}: {key} is missing, or no text")
    for key in ("shapes", "values"):
        if not isinstance(facts.get(key, {}), dict):
            raise JobsError(f"{place}: {key} is no table")
    files, cpus = facts.get("files", []), facts.get("cpus", 1)
    if not isinstance(files, list) or not all(isinstance(file, str) for file in files):
        raise JobsError(f"{place}: files is no list of paths")
    if isinstance(cpus, bool) or not isinstance(cpus, (int, float)) or not cpus > 0:
        raise JobsError(f"{place}: cpus is no number above 0")
    for key in facts:
        if key in _REFUSED:
            raise JobsError(f"{place}: {key} names what other machines have not; pack without the farm for it")
    job = Job(folder / facts["model"], folder / facts["output"], tuple(folder / file for file in files), cpus,
              facts.get("shapes", {}), facts.get("values", {}),
              {key: value for key, value in facts.items() if key not in _OWN})
    for path in (job.model, *job.files):
        if not path.is_file():
            raise JobsError(f"{place}: there is no file {path}", _FILE)
        if path.parent != job.model.parent:
            raise JobsError(f"{place}: {path} does not lie beside the model")
    return job


def read_jobs(path: Path) -> list[Job]:
    """The jobs of a file, each with what [all] says; JobsError names what is wrong."""
    text = _toml(path)
    unknown = [key for key in text if key not in ("all", "job")]
    if unknown:
        raise JobsError(f"{path}: '{unknown[0]}' is unknown; there are [all] and [[job]]")
    every, jobs = text.get("all", {}), text.get("job", [])
    if not isinstance(every, dict) or not isinstance(jobs, list) or not jobs or not all(isinstance(job, dict) for job in jobs):
        raise JobsError(f"{path}: no job is given; each begins with [[job]]")
    out = [_job(path.absolute().parent, f"{path}: job {i + 1}", {**every, **job}) for i, job in enumerate(jobs)]
    outputs = [job.output for job in out]
    for job in out:
        if outputs.count(job.output) > 1:
            raise JobsError(f"{path}: {job.output} is the output of two jobs")
    return out


@dataclass
class Outcome:
    """What a worker sends back: files by their names, or why there are none."""
    host: str
    seconds: float
    files: dict[str, tuple[bytes, int]] = field(default_factory=dict)  # with their modes
    exit_code: int = _DONE
    text: str = ""


def work(model: str, beside: Mapping[str, bytes], output: str, wanted: str, shapes: Mapping[str, Any],
         values: Mapping[str, Any], options: Mapping[str, Any]) -> Outcome:
    """On a worker: packs in a folder of its own, and returns all that lies there afterwards."""
    begin = time.monotonic()

    def outcome(**facts: Any) -> Outcome:
        return Outcome(socket.gethostname(), time.monotonic() - begin, **facts)

    if version() != wanted:
        return outcome(exit_code=_USAGE, text=f"this machine has svod-pack {version()}, the farm {wanted}")
    with tempfile.TemporaryDirectory(prefix="svod-farm-") as folder:
        place, made = Path(folder) / "in", Path(folder) / "out"
        for path in (place, made):
            path.mkdir()
        for name, content in beside.items():
            (place / name).write_bytes(content)
        try:
            pack(place / model, made / output, shapes=shapes, values=values, **options)
        except PackError as error:
            return outcome(exit_code=error.exit_code, text=str(error))
        return outcome(files={str(file.relative_to(made)): (file.read_bytes(), file.stat().st_mode)
                              for file in made.rglob("*") if file.is_file()})


def _store(job: Job, outcome: Outcome) -> int:
    """Under their names at last, the output as the last one; the bytes of all."""
    folder = job.output.parent
    for name in sorted(outcome.files, key=lambda name: name == job.output.name):
        content, mode = outcome.files[name]
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
        try:
            temporary.write_bytes(content)
            temporary.chmod(mode & 0o777)
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    return sum(len(content) for content, _ in outcome.files.values())


def _outcomes(ray: Any, jobs: Sequence[Job]) -> Iterator[tuple[int, Outcome]]:
    """Each job's, as they end. A job whose machine dies begins again elsewhere, as Ray does it."""
    remote = ray.remote(work)
    running = {}
    for number, job in enumerate(jobs):
        beside = {path.name: path.read_bytes() for path in (job.model, *job.files)}
        running[remote.options(num_cpus=job.cpus, name=job.output.name).remote(
            job.model.name, beside, job.output.name, version(), job.shapes, job.values, job.options)] = number
    while running:
        for done in ray.wait(list(running), num_returns=1)[0]:
            number = running.pop(done)
            try:
                yield number, ray.get(done)
            except ray.exceptions.RayError as error:
                yield number, Outcome("?", 0, exit_code=_FILE, text=f"Ray: {str(error).strip().splitlines()[-1]}")


def run(jobs: Sequence[Job], address: Optional[str] = None) -> int:
    """Packs all jobs and says a line for each; the exit code of the first one of the list that failed."""
    try:
        import ray
    except ImportError:
        raise JobsError("Ray is not installed: pip install 'svod-pack[farm]'") from None
    ray.init(address=address, log_to_driver=False, logging_level="ERROR")
    codes = [_DONE] * len(jobs)
    try:
        for number, outcome in _outcomes(ray, jobs):
            job = jobs[number]
            codes[number] = outcome.exit_code
            if outcome.exit_code == _DONE:
                try:
                    size = _store(job, outcome)
                except OSError as error:
                    codes[number], outcome.text = _FILE, f"{error.filename}: {error.strerror}"
            if codes[number] == _DONE:
                print(f"{job.output.name}: {size} bytes, {outcome.seconds:.1f} s on {outcome.host}", flush=True)
            else:
                print(f"{job.output.name}: failed with exit code {codes[number]} on {outcome.host}\n{outcome.text}",
                      file=sys.stderr, flush=True)
    finally:
        ray.shutdown()
    failed = sum(code != _DONE for code in codes)
    print(f"{len(jobs) - failed} of {len(jobs)} jobs done")
    return next((code for code in codes if code != _DONE), _DONE)


def main(words: Optional[Sequence[str]] = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m svod_pack.farm", description="Packs the jobs of a file on a Ray cluster.")
    parser.add_argument("jobs", type=Path, help="a TOML file: [all] and [[job]]s")
    parser.add_argument("--address", help="of the cluster, as ray.init takes it (auto: the one that runs here); "
                        "without it Ray starts on this machine alone")
    arguments = parser.parse_args(words)
    try:
        return run(read_jobs(arguments.jobs), arguments.address)
    except JobsError as error:
        print(f"svod-farm: error: {error}", file=sys.stderr)
        return error.code


if __name__ == "__main__":
    sys.exit(main())
