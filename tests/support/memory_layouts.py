"""Runs the packer on three layouts of memory, for tests that its output depends on none.

Fresh and freed memory holds another byte, the heap grows in other steps, and a longer environment moves the stack; the
addresses of the heap differ from run to run anyway. The first layout leaves freed memory as the allocator has it, with
addresses in it: only so was a kernel seen to depend on a vector that was gone. What reads freed or uninitialised
memory, or sorts by address, gives other kernels then.
"""
import hashlib
import os
import subprocess

LAYOUTS = [{},
           {"MALLOC_PERTURB_": "85", "MALLOC_TOP_PAD_": "0"},
           {"MALLOC_PERTURB_": "201", "MALLOC_TOP_PAD_": "1234567", "MALLOC_MMAP_THRESHOLD_": "65536",
            "SVOD_PADDING": "x" * 50000}]


def kernel_texts(packer, model, options=(), seconds=600):
    """Exit code and SHA-256 of the kernels' text, for each layout; None for one that ran out of time."""
    found = []
    for layout in LAYOUTS:
        try:
            done = subprocess.run([str(packer), str(model), "--emit=cpp", "-q", *map(str, options)], capture_output=True,
                                  stdin=subprocess.DEVNULL, timeout=seconds, env=dict(os.environ, **layout))
        except subprocess.TimeoutExpired:
            return None
        found.append((done.returncode, hashlib.sha256(done.stdout).hexdigest()))
    return found
