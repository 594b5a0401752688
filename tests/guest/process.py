# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Background programs of the lab (QEMU, rnicsim): started, watched, always ended.

A program dies with the lab, even when the lab is killed: it gets SIGKILL when its
parent thread ends (prctl PR_SET_PDEATHSIG), which is why one thread that lives as
long as the lab starts them all.
"""

import ctypes
import queue
import signal
import subprocess
import threading
import time

from .errors import LabError, Timeout

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None)
_requests = queue.Queue()
_spawner_lock = threading.Lock()
_spawner_pid = None


def _die_with_parent():
    _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _spawner():
    while True:
        argv, kw, answer = _requests.get()
        try:
            answer.put(subprocess.Popen(argv, preexec_fn=_die_with_parent, **kw))
        except OSError as e:
            answer.put(e)


def _spawn(argv, **kw):
    global _spawner_pid
    with _spawner_lock:
        # a fork (the supervisor of scripts/lab) has not inherited the thread
        if _spawner_pid is None or not _spawner_pid.is_alive():
            _spawner_pid = threading.Thread(target=_spawner, name="spawner", daemon=True)
            _spawner_pid.start()
    answer = queue.Queue()
    _requests.put((argv, kw, answer))
    result = answer.get()
    if isinstance(result, OSError):
        raise LabError(f"cannot start {argv[0]}: {result.strerror}")
    return result


class Daemon:
    """A background program; its standard error is kept line by line, and in a log file."""

    def __init__(self, name, argv, log, env=None):
        self.name = name
        self.lines = []
        self._cond = threading.Condition()
        self._ended = False
        self._log = log
        # a session of its own: Ctrl-C is for the lab, which then ends its programs in order
        self._proc = _spawn([str(a) for a in argv], env=env, stdin=subprocess.DEVNULL,
                            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                            start_new_session=True, text=True, errors="replace")
        self._reader_thread = threading.Thread(target=self._reader, name=name, daemon=True)
        self._reader_thread.start()

    def _reader(self):
        with open(self._log, "a", buffering=1) as log:
            for line in self._proc.stderr:
                log.write(line)
                with self._cond:
                    self.lines.append(line.rstrip("\n"))
                    self._cond.notify_all()
        self._proc.wait()
        with self._cond:
            self._ended = True
            self._cond.notify_all()

    @property
    def rc(self):
        """Exit code, or None while it runs."""
        return self._proc.poll()

    @property
    def pid(self):
        """Process id."""
        return self._proc.pid

    def wait_line(self, pattern, timeout=10, start=0):
        """Wait for a line of output that matches regular expression object `pattern`."""
        deadline = time.monotonic() + timeout
        with self._cond:
            while True:
                for line in self.lines[start:]:
                    if pattern.search(line):
                        return line
                if self._ended:
                    last = self.lines[-1] if self.lines else f"exit code {self.rc}"
                    raise LabError(f"{self.name} ended: {last}")
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Timeout(f"{self.name}: no line {pattern.pattern!r} in {timeout} s; "
                                  f"see {self._log}")
                self._cond.wait(left)

    def wait_lines(self, text, count, timeout=10):
        """Wait until `count` lines of output have the text; returns all that have it."""
        def found():
            return [line for line in self.lines if text in line]
        with self._cond:
            if not self._cond.wait_for(lambda: self._ended or len(found()) >= count, timeout):
                raise Timeout(f"{self.name}: no {count} lines with {text!r} in {timeout} s; see {self._log}")
            return found()

    def wait(self, timeout):
        """Wait for its end; returns the exit code, raises Timeout."""
        try:
            rc = self._proc.wait(timeout)
        except subprocess.TimeoutExpired:
            raise Timeout(f"{self.name} did not end in {timeout} s") from None
        self._reader_thread.join(5)
        return rc

    def signal(self, number):
        """Send it a signal."""
        if self.rc is None:
            self._proc.send_signal(number)

    def stop(self, timeout=5):
        """End it: SIGTERM, then SIGKILL after the timeout (s).  Returns the exit code."""
        if self.rc is None:
            self._proc.terminate()
            try:
                self._proc.wait(timeout)
            except subprocess.TimeoutExpired:
                self._proc.kill()
                self._proc.wait()
        self._reader_thread.join(5)
        return self.rc
