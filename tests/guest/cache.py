# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the lab keeps between runs: ~/.cache/irdma (or $IRDMA_CACHE).

Every entry is a directory or file named after what it holds and its version.
It is built in a temporary neighbour and renamed into place, so an entry that
exists is complete, and an interrupted build leaves nothing.  One lock file per
entry keeps two labs from building the same thing twice.
"""

import contextlib
import errno
import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from .errors import LabError

_quiet = False


def set_quiet(quiet):
    """Silence progress lines (tests that only want results)."""
    global _quiet
    _quiet = quiet


def progress(text):
    """Print one progress line on stderr."""
    if not _quiet:
        print(f"lab: {text}", file=sys.stderr, flush=True)


def root():
    """Return the cache directory, created if missing."""
    path = Path(os.environ.get("IRDMA_CACHE") or Path.home() / ".cache" / "irdma")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as e:
        raise LabError(f"cannot create the cache {path}: {e.strerror}; "
                       "set IRDMA_CACHE to a writable directory") from None
    return path.resolve()


def need_space(path, mbytes):
    """Fail now, not half-way, when the file system of `path` is too full."""
    free = shutil.disk_usage(path).free >> 20
    if free < mbytes:
        raise LabError(f"{path} has {free} MB free, {mbytes} MB are needed; "
                       "free some space or set IRDMA_CACHE to another disk")


@contextlib.contextmanager
def lock(name):
    """Hold the lock of cache entry `name` while it is looked at or built."""
    lock_dir = root() / "locks"
    lock_dir.mkdir(exist_ok=True)
    with open(lock_dir / name.replace("/", "_"), "w") as f:
        try:
            fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress(f"waiting for another lab that prepares {name}")
            fcntl.flock(f, fcntl.LOCK_EX)
        yield


def remove(path):
    """Delete a file or tree whatever the modes of its directories are."""
    path = Path(path)
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def entry(name, build, what=None, mbytes=300):
    """Return cache entry `name`; when missing, have `build(tmp)` make it.

    build gets a fresh directory and leaves the entry's content in it, or
    returns the path of a file inside it, which then becomes the entry.
    what: text for the progress line; mbytes: disk space wanted beforehand.
    """
    path = root() / name
    if path.exists():
        return path
    with lock(name):
        if path.exists():
            return path
        path.parent.mkdir(parents=True, exist_ok=True)
        need_space(path.parent, mbytes)
        if what:
            progress(what)
        start = time.monotonic()
        tmp = Path(tempfile.mkdtemp(prefix=".new-", dir=path.parent))
        try:
            made = build(tmp) or tmp
            os.chmod(made, 0o755 if made == tmp else 0o644)
            os.rename(made, path)
        except OSError as e:
            if e.errno == errno.ENOSPC:
                raise LabError(f"no space left on {path.parent}; free some "
                               "or set IRDMA_CACHE to another disk") from None
            raise
        finally:
            if tmp.exists():
                remove(tmp)
        if what and time.monotonic() - start > 5:
            progress(f"{what}: done in {time.monotonic() - start:.0f} s")
    return path


def run(argv, what, **kw):
    """Run a command of the host; on failure raise a LabError with its last line.

    what: the act in words, for the message.  Returns its stdout as text.
    """
    kw.setdefault("stdin", subprocess.DEVNULL)
    kw.setdefault("stdout", subprocess.PIPE)
    kw.setdefault("env", dict(os.environ, LC_ALL="C"))
    try:
        r = subprocess.run([str(a) for a in argv], stderr=subprocess.PIPE,
                           check=False, text=True, errors="replace", **kw)
    except FileNotFoundError:
        raise LabError(f"{what}: {argv[0]} is not installed; run scripts/lab setup") from None
    if r.returncode:
        if "No space left" in r.stderr:
            raise LabError(f"{what}: no space left on the disk; free some or set IRDMA_CACHE")
        lines = [s for s in r.stderr.splitlines() if s.strip()] or ["no message"]
        errors = [s for s in lines if s.startswith(("E:", "error", "make: ***"))] or lines
        raise LabError(f"{what} failed ({argv[0]} exit code {r.returncode}): {errors[-1]}")
    return r.stdout
