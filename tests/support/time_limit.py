"""What a test may take of a run of tests whose time is bounded, and where its turn begins when it cannot do all."""
import os
import subprocess


def corpus_share(share):
    """Seconds: this part of SVOD_CORPUS_SECONDS; without the variable as many as it takes."""
    return share * float(os.environ.get("SVOD_CORPUS_SECONDS") or "inf")


def commit_number(folder="."):
    """How many commits the checkout has: each begins with another part of what is tested in turns."""
    return int(subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=folder, check=True, capture_output=True).stdout)


def exit_code(good, bad, left_out):
    """Of a test with so many cases that were as they should be, that were not, and for which there was no time. Without any
    good case it has failed, but for one that had no time for the first: that is skipped."""
    if bad or good:
        return 1 if bad else 0
    if not left_out:
        return 1
    print("skipped: no time for any case")
    return 77
