# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The host's end of the guest agent (agent.c): commands, files, kernel log.

One reader thread per guest takes frames from the virtio-serial socket and hands
them to the command they belong to.  All methods may be called from any thread.
"""

import os
import shlex
import signal
import socket
import struct
import threading
import time
from dataclasses import dataclass

from .errors import LabError, Timeout

HEADER = struct.Struct("<III")
MAX_FRAME = 32768
STDIN_WINDOW = 256 * 1024
EXEC_PTY = 1

RB_POWER_OFF = 0x4321FEDC
RB_AUTOBOOT = 0x01234567


class _Said:
    """What has `out` and `err`."""

    @property
    def last_words(self):
        """The end of standard error (so far), or else of standard output, for a message."""
        return (self.err.strip() or self.out.strip())[-300:]


@dataclass
class Result(_Said):
    """Outcome of a command: output and error text, exit code (negative: killed by that signal)."""

    out: str
    err: str
    rc: int
    argv: object = ""

    def check(self):
        """Return self, or raise LabError when the command failed."""
        if self.rc:
            tail = (self.err.strip() or self.out.strip() or "no output").splitlines()[-1]
            raise LabError(f"`{_text(self.argv)}` exit code {self.rc}: {tail}")
        return self


def _text(argv):
    return argv if isinstance(argv, str) else shlex.join(argv)


class Command(_Said):
    """A command that runs in the guest."""

    def __init__(self, agent, ident, argv, on_output=None):
        self.argv = argv
        self._agent = agent
        self._id = ident
        self._out = bytearray()
        self._err = bytearray()
        self._on_output = on_output
        self._status = None
        self._unacked = 0
        self._cond = threading.Condition()

    # called by the reader thread
    def _frame(self, kind, data):
        if kind in "ox" and self._on_output:
            self._on_output(kind, data)
            return
        with self._cond:
            if kind == "o":
                self._out += data
            elif kind == "x":
                self._err += data
            elif kind == "a":
                self._unacked -= struct.unpack("<I", data)[0]
            elif kind == "q":
                self._status = struct.unpack("<I", data)[0]
            self._cond.notify_all()
        if kind == "q" and self._on_output:
            self._on_output("q", struct.pack("<i", self.rc))

    def _gone(self):
        with self._cond:
            self._cond.notify_all()
        if self._on_output and self._status is None:
            self._on_output("x", b"lab: the guest is gone\n")
            self._on_output("q", struct.pack("<i", 255))

    @property
    def rc(self):
        """Exit code, minus the signal number when killed, None while it runs."""
        if self._status is None:
            return None
        return os.waitstatus_to_exitcode(self._status)

    @property
    def out(self):
        """Standard output so far, as text."""
        return bytes(self._out).decode(errors="replace")

    @property
    def out_bytes(self):
        """Standard output so far."""
        return bytes(self._out)

    @property
    def err(self):
        """Standard error so far, as text."""
        return bytes(self._err).decode(errors="replace")

    def poll(self):
        """Return the exit code or None."""
        return self.rc

    def write(self, data, timeout=60):
        """Feed standard input, at the pace the command reads it (timeout in s per window)."""
        for pos in range(0, len(data), MAX_FRAME):
            chunk = data[pos:pos + MAX_FRAME]
            with self._cond:
                self._wait_for(lambda n=len(chunk): self._unacked + n <= STDIN_WINDOW
                               or self._status is not None, timeout, "to read its input")
                if self._status is not None:
                    return
                self._unacked += len(chunk)
            self._agent.send("i", self._id, chunk)

    def close_stdin(self):
        """Give the command end of file."""
        self._agent.send("z", self._id)

    def send_signal(self, number):
        """Send a signal to the command's process group."""
        if self._status is None:
            self._agent.send("s", self._id, struct.pack("<I", number))

    def kill(self, number=signal.SIGKILL):
        """Kill the command and what it started."""
        self.send_signal(number)

    def winsize(self, rows, columns):
        """Tell a command on a pty its window size."""
        self._agent.send("w", self._id, struct.pack("<II", rows, columns))

    def _wait_for(self, predicate, timeout, what):
        deadline = None if timeout is None else time.monotonic() + timeout
        while not predicate():
            self._agent.check_alive()
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                raise Timeout(f"{self._agent.name}: `{_text(self.argv)}` did not come "
                              f"{what} in {timeout} s; it said {self.last_words!r}")
            self._cond.wait(left)

    def wait(self, timeout=60):
        """Wait for the end (timeout in s, None: for ever) and return its Result.

        After the timeout the command is killed and Timeout raised.
        """
        with self._cond:
            try:
                self._wait_for(lambda: self._status is not None, timeout, "to an end")
            except Timeout:
                self.kill()
                raise
        return Result(self.out, self.err, self.rc, self.argv)

    def wait_output(self, pattern, timeout=60):
        """Wait until regular expression object `pattern` matches stdout; return the match.

        The way to know that a server listens: by what it prints, not by sleeping.
        """
        with self._cond:
            self._wait_for(lambda: pattern.search(self.out) or self._status is not None,
                           timeout, f"to print {pattern.pattern!r}")
        m = pattern.search(self.out)
        if not m:
            raise LabError(f"`{_text(self.argv)}` ended with {self.rc} before it printed "
                           f"{pattern.pattern!r}: {self.err.strip()[-300:]}")
        return m


class Agent:
    """Connection to the agent of guest `name`."""

    def __init__(self, name):
        self.name = name
        self._sock = None
        self._send_lock = threading.Lock()
        self._commands = {}
        self._next = 1
        self._lock = threading.Lock()
        self._ready = threading.Event()
        self._closed = None
        self.release = None
        self.kmsg = []
        self._kmsg_cond = threading.Condition()

    def start(self, sock, log=None, kmsg=()):
        """Serve the connected socket; append the kernel's log to the file `log`.

        kmsg: what the kernel logged before.
        """
        self._sock = sock
        self._log = open(log, "a", buffering=1) if log else None
        for line in kmsg:
            self._add_kmsg(line)
        threading.Thread(target=self._reader, name=f"agent-{self.name}", daemon=True).start()

    def _read_exactly(self, n):
        data = bytearray()
        while len(data) < n:
            part = self._sock.recv(n - len(data))
            if not part:
                raise ConnectionError("connection closed")
            data += part
        return bytes(data)

    def _reader(self):
        try:
            while True:
                length, ident, kind = HEADER.unpack(self._read_exactly(HEADER.size))
                self._dispatch(chr(kind), ident, self._read_exactly(length))
        except (OSError, ConnectionError):
            pass
        self.close("the guest has ended")

    def _dispatch(self, kind, ident, data):
        if kind == "r":
            self.release = data.decode()
            self._ready.set()
        elif kind == "k":
            self._kernel_message(data)
        else:
            with self._lock:
                command = self._commands.get(ident)
                if kind == "q":
                    self._commands.pop(ident, None)
            if command:
                command._frame(kind, data)

    def _kernel_message(self, record):
        prefix, _, rest = record.decode(errors="replace").partition(";")
        fields = prefix.split(",")
        text = rest.split("\n", 1)[0]
        stamp = int(fields[2]) / 1e6 if len(fields) > 2 and fields[2].isdigit() else 0.0
        self._add_kmsg(f"[{stamp:12.6f}] {text}")

    def _add_kmsg(self, line):
        if self._log:
            self._log.write(line + "\n")
        with self._kmsg_cond:
            self.kmsg.append(line)
            self._kmsg_cond.notify_all()

    def close(self, reason):
        """End the connection; whoever waits on it is told `reason`."""
        with self._lock:
            if self._closed:
                return
            self._closed = reason
            commands = list(self._commands.values())
        self._ready.set()
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        for command in commands:
            command._gone()
        with self._kmsg_cond:
            self._kmsg_cond.notify_all()
        if self._log:
            self._log.close()

    def check_alive(self):
        """Raise LabError when the guest is gone."""
        if self._closed:
            raise LabError(f"{self.name}: {self._closed}; see its console log")

    def ready(self, timeout):
        """Wait up to `timeout` s for the agent's first word; True when it came."""
        came = self._ready.wait(timeout)
        self.check_alive()
        return came

    def identify(self):
        """Give the guest its name, the time and a random seed, and have it find its adapters.

        What it answers ends a wait in ready().
        """
        self._ready.clear()
        self.send("h", 0, struct.pack("<Q", int(time.time())) + os.urandom(32) + self.name.encode())

    def send(self, kind, ident, data=b""):
        """Send one frame."""
        self.check_alive()
        try:
            with self._send_lock:
                self._sock.sendall(HEADER.pack(len(data), ident, ord(kind)) + data)
        except OSError as e:
            raise LabError(f"{self.name}: the guest is gone ({e.strerror})") from None

    def popen(self, argv, env=None, pty=False, on_output=None):
        """Start a command; a string runs in a shell.  Returns a Command.

        on_output: called as on_output(kind, data) from the reader thread instead of
        collecting output; kind is "o", "x", and "q" (exit code, packed int) at the end.
        """
        words = ["/bin/sh", "-c", argv] if isinstance(argv, str) else [str(a) for a in argv]
        strings = words + [f"{k}={v}" for k, v in (env or {}).items()]
        data = struct.pack("<II", EXEC_PTY if pty else 0, len(words))
        data += b"".join(s.encode() + b"\0" for s in strings)
        if len(data) > MAX_FRAME:
            raise LabError(f"command line of {len(data)} bytes; at most {MAX_FRAME} are allowed")
        with self._lock:
            ident = self._next
            self._next += 1
            command = Command(self, ident, argv, on_output)
            self._commands[ident] = command
        self.send("e", ident, data)
        return command

    def run(self, argv, timeout=60, stdin=b"", env=None):
        """Run a command to its end and return its Result."""
        command = self.popen(argv, env=env)
        if stdin:
            command.write(stdin.encode() if isinstance(stdin, str) else stdin)
        command.close_stdin()
        return command.wait(timeout)

    def put(self, local, remote, mode=None, timeout=120):
        """Copy file `local` (a path, or bytes) to the guest."""
        if isinstance(local, (bytes, bytearray)):
            data = bytes(local)
        else:
            try:
                with open(local, "rb") as f:
                    data = f.read()
                    mode = os.fstat(f.fileno()).st_mode & 0o777 if mode is None else mode
            except OSError as e:
                raise LabError(f"cannot read {local}: {e.strerror}") from None
        q = shlex.quote(remote)
        script = f'mkdir -p "$(dirname {q})" && cat >{q} && chmod {mode or 0o644:o} {q}'
        r = self.run(script, timeout=timeout, stdin=data)
        if r.rc:
            raise LabError(f"{self.name}: cannot write {remote}: {r.err.strip()}")

    def get(self, remote, local=None, timeout=120):
        """Return the content of the guest's file; write it to `local` when given."""
        command = self.popen(["cat", "--", remote])
        command.close_stdin()
        r = command.wait(timeout)
        if r.rc:
            raise LabError(f"{self.name}: cannot read {remote}: {r.err.strip()}")
        data = command.out_bytes
        if local:
            try:
                with open(local, "wb") as f:
                    f.write(data)
            except OSError as e:
                raise LabError(f"cannot write {local}: {e.strerror}") from None
        return data

    def wait_kmsg(self, pattern, timeout=60, start=0):
        """Wait for a kernel message that matches regular expression object `pattern`.

        start: index into kmsg to look from.  Returns the line.
        """
        deadline = time.monotonic() + timeout
        with self._kmsg_cond:
            while True:
                for line in self.kmsg[start:]:
                    if pattern.search(line):
                        return line
                self.check_alive()
                left = deadline - time.monotonic()
                if left <= 0:
                    raise Timeout(f"{self.name}: no kernel message {pattern.pattern!r} "
                                  f"in {timeout} s")
                self._kmsg_cond.wait(left)

    def poweroff(self, reboot=False):
        """Power the guest off (or restart it) through the kernel's shutdown path."""
        self.send("p", 0, struct.pack("<I", RB_AUTOBOOT if reboot else RB_POWER_OFF))
