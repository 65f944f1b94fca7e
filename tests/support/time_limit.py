"""What a test may take of a run of tests whose time is bounded, and where its turn begins when it cannot do all."""
import os
import subprocess


def corpus_share(share):
    """Seconds: this part of SVOD_CORPUS_SECONDS; without the variable as many as it takes."""
    return share * float(os.environ.get("SVOD_CORPUS_SECONDS") or "inf")


def commit_number(folder="."):
    """How many commits the checkout has: each begins with another part of what is tested in turns."""
    return int(subprocess.run(["git", "rev-list", "--count", "HEAD"], cwd=folder, check=True, capture_output=True).stdout)
