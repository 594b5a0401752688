# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Keeps a lab alive between commands of scripts/lab.

`lab up` forks a supervisor that owns the Lab and serves a UNIX socket in the run
directory (<cache>/run/NAME); each later command is one connection.  A request is
one line of JSON; the answer is frames {u32 length, u8 kind}: "o" and "x" output,
"q" exit code (i32).  For a guest command the client may send frames "i", "z", "s"
and "w" (agent.py), which are passed on.
"""

import json
import os
import select
import shutil
import signal
import socket
import struct
import sys
import threading
import traceback
from pathlib import Path

from . import cache
from .errors import LabError
from .lab import Lab

FRAME = struct.Struct("<IB")
WINDOW = struct.Struct("<II")


def run_dir(name):
    """Return the run directory of lab `name`."""
    return cache.root() / "run" / name


def recv_exactly(sock, n):
    """Return n bytes of the socket; raises EOFError at its end."""
    data = bytearray()
    while len(data) < n:
        part = sock.recv(n - len(data))
        if not part:
            raise EOFError
        data += part
    return bytes(data)


def recv_frame(sock):
    """Return (kind, data) of the next frame."""
    length, kind = FRAME.unpack(recv_exactly(sock, FRAME.size))
    return chr(kind), recv_exactly(sock, length)


def send_frame(sock, kind, data=b""):
    """Send one frame."""
    sock.sendall(FRAME.pack(len(data), ord(kind)) + data)


def connect(name):
    """Return a socket to the supervisor of lab `name`."""
    sock = socket.socket(socket.AF_UNIX)
    try:
        sock.connect(str(run_dir(name) / "socket"))
    except OSError:
        sock.close()
        raise LabError(f"no lab {name!r} is up; start one with scripts/lab up") from None
    return sock


class Supervisor:
    """Serves the commands that act on one running lab."""

    def __init__(self, lab, directory):
        self._lab = lab
        self._dir = directory
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(directory / "socket"))
        self._listener.listen(16)
        self._down = threading.Event()

    def serve(self):
        """Serve until `down` or SIGTERM."""
        self._listener.settimeout(0.5)
        while not self._down.is_set():
            try:
                sock, _ = self._listener.accept()
            except socket.timeout:
                continue
            sock.setblocking(True)
            threading.Thread(target=self._client, args=(sock,), daemon=True).start()

    def _client(self, sock):
        try:
            request = json.loads(self._line(sock))
            self._handle(sock, request)
        except (OSError, EOFError):
            pass
        finally:
            sock.close()

    @staticmethod
    def _line(sock):
        data = bytearray()
        while not data.endswith(b"\n"):
            data += recv_exactly(sock, 1)
        return data.decode()

    def _handle(self, sock, request):
        try:
            act = getattr(self, "_do_" + request["op"])
            text = act(sock, request)
        except LabError as e:
            send_frame(sock, "x", f"lab: {e}\n".encode())
            send_frame(sock, "q", struct.pack("<i", 1))
            return
        except (OSError, EOFError):
            raise
        except Exception as e:
            traceback.print_exc()
            send_frame(sock, "x", f"lab: {type(e).__name__}: {e} (details: {self._dir}/log)\n"
                       .encode())
            send_frame(sock, "q", struct.pack("<i", 1))
            return
        if text is not None:
            send_frame(sock, "o", text.encode())
            send_frame(sock, "q", struct.pack("<i", 0))

    def _do_exec(self, sock, request):
        """Run a command in a guest, its streams joined to the client's."""
        lock = threading.Lock()
        ended = threading.Event()

        def forward(kind, data):
            with lock:
                try:
                    send_frame(sock, kind, data)
                except OSError:
                    pass
            if kind == "q":
                ended.set()

        command = self._lab.host(request["host"]).popen(
            request["argv"], env=request.get("env"), pty=request.get("pty", False),
            on_output=forward)
        try:
            while not ended.is_set():
                kind, data = recv_frame(sock)
                if kind == "i":
                    command.write(data, timeout=None)
                elif kind == "z":
                    command.close_stdin()
                elif kind == "s":
                    command.kill(struct.unpack("<I", data)[0])
                elif kind == "w":
                    command.winsize(*WINDOW.unpack(data))
        except (EOFError, OSError):
            # the client is gone: so is its command
            if not ended.is_set():
                command.kill(signal.SIGKILL)

    def _do_put(self, _sock, request):
        self._lab.host(request["host"]).put(request["local"], request["remote"])
        return ""

    def _do_get(self, _sock, request):
        self._lab.host(request["host"]).get(request["remote"], request["local"])
        return ""

    def _do_wire(self, _sock, request):
        return self._lab.wire(*request["argv"])

    def _do_fault(self, _sock, request):
        return self._lab.host(request["host"]).fault(*request["argv"])

    def _do_dmesg(self, _sock, request):
        return "".join(line + "\n" for line in self._lab.host(request["host"]).dmesg())

    def _do_restart(self, _sock, request):
        host = self._lab.host(request["host"])
        host.restart()
        host.load_driver()
        return ""

    def _do_status(self, _sock, _request):
        out = [f"logs and captures: {self._lab.work}"]
        for host in self._lab.hosts.values():
            if not host.machine or not host.machine.running():
                out.append(f"{host.name}: ended, kernel {host.kernel}; scripts/lab restart "
                           f"{host.name} boots it again")
                continue
            ports = ", ".join(f"{p.netdev} {p.ibdev} {p.ip4} {p.ip6}" for p in host.ports)
            out.append(f"{host.name}: up, kernel {host.machine.agent.release}, driver "
                       f"{host.driver}, {ports or 'no port'}, "
                       f"{len(host.splats())} lines of kernel faults")
        return "\n".join(out) + "\n"

    def _do_down(self, _sock, _request):
        self._down.set()
        return ""


def _child(options, directory, status_fd):
    """Body of the supervisor process: start the lab, report, serve, clean up."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)

    def terminate(*_):
        raise SystemExit(0)

    signal.signal(signal.SIGTERM, terminate)
    lab = None
    try:
        lab = Lab(**options)
        lab.start()
        server = Supervisor(lab, directory)
        os.write(status_fd, b"ok")
        os.close(status_fd)
        null = os.open(os.devnull, os.O_RDWR)
        log = os.open(directory / "log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.dup2(null, 0)
        os.dup2(log, 1)
        os.dup2(log, 2)
        server.serve()
    except LabError as e:
        os.write(status_fd, str(e).encode())
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if lab:
            lab.stop()
        shutil.rmtree(directory, ignore_errors=True)


def _alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass
    return True


def start(name, options):
    """Fork the supervisor of lab `name` and wait until the lab is up."""
    directory = run_dir(name)
    pid_file = directory / "pid"
    if pid_file.exists() and _alive(int(pid_file.read_text() or 0)):
        raise LabError(f"lab {name!r} is up already; scripts/lab down first, "
                       "or give another --name")
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        code = 1
        try:
            _child(options, directory, writer)
            code = 0
        except SystemExit:
            pass
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(writer)
    pid_file.write_text(str(pid))
    try:
        message = b""
        while part := os.read(reader, 4096):
            message += part
    except KeyboardInterrupt:
        os.kill(pid, signal.SIGTERM)
        os.waitpid(pid, 0)
        raise
    if message != b"ok":
        os.waitpid(pid, 0)
        raise LabError(message.decode() or "the lab's supervisor ended; its reason is above")


def stop(name):
    """End lab `name` and wait until nothing of it is left."""
    directory = run_dir(name)
    pid_file = Path(directory / "pid")
    if not pid_file.exists():
        raise LabError(f"no lab {name!r} is up")
    pid = int(pid_file.read_text() or 0)
    if pid and _alive(pid):
        fd = os.pidfd_open(pid)
        os.kill(pid, signal.SIGTERM)
        if not select.select([fd], [], [], 30)[0]:
            os.kill(pid, signal.SIGKILL)
        os.close(fd)
    shutil.rmtree(directory, ignore_errors=True)
