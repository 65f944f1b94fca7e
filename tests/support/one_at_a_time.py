"""Tests that run side by side share what is made once: who makes it holds its lock, the others wait and find it made."""
import contextlib
import fcntl


@contextlib.contextmanager
def alone(folder):
    """While this process alone holds `folder`, which need not exist. The lock ends with the process, however that ends."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    with open(folder.with_name(folder.name + ".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
