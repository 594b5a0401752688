# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Starts the device model: one `rnicsim nic` a port, one `rnicsim wire` between them."""

import os
import re
import subprocess
from pathlib import Path

from . import cache, tools
from .errors import LabError
from .process import Daemon

SOURCE = Path(__file__).resolve().parents[1] / "model"
LISTENING = re.compile("listening on")


def build(directory=SOURCE, san=False):
    """Compile the model when something changed; return the directory of its programs.

    san: the build with AddressSanitizer and UndefinedBehaviorSanitizer.
    """
    tools.need("make", "gcc")
    with cache.lock("model"):
        cache.run(["make", "-s", "-C", directory] + (["SAN=1"] if san else []),
                  "building the device model")
    return Path(directory) / "build-san" if san else Path(directory)


def ddp_package(programs, into):
    """Have the model's own DDP package (firmware for ice) written to file `into`."""
    cache.run([programs / "mkddp", into], "making the DDP package")
    return into


def control(programs, sock, words):
    """Send one command to a control socket; return its answer, raise LabError when refused."""
    r = subprocess.run([programs / "rnicctl", sock, *map(str, words)], capture_output=True,
                       text=True, check=False, stdin=subprocess.DEVNULL)
    if r.returncode:
        raise LabError((r.stderr or r.stdout).strip() or f"rnicctl exit code {r.returncode}")
    return r.stdout


class _Controlled:
    """A process of rnicsim with a control socket."""

    def __init__(self, programs, name, argv, work, ready):
        self.name = name
        self.log = work / f"{name}.log"
        self.control_socket = work / f"{name}.ctl"
        self._programs = programs
        # the sanitizers write to standard error: into the log
        env = dict(os.environ, ASAN_OPTIONS="detect_leaks=0")
        self.daemon = Daemon(f"rnicsim {name}", [programs / "rnicsim", *argv,
                                                 "--control", self.control_socket],
                             self.log, env)
        self.daemon.wait_line(ready)

    def control(self, *words):
        """Send a command through rnicctl; return its answer."""
        return control(self._programs, self.control_socket, words)

    def stop(self):
        """End the process; returns its exit code."""
        return self.daemon.stop()


class Wire(_Controlled):
    """The switch between the ports; writes one pcap a port to `work`/pcap."""

    def __init__(self, programs, work, seed=1):
        self.socket = work / "wire.sock"
        self.pcap_dir = work / "pcap"
        self.pcap_dir.mkdir(exist_ok=True)
        super().__init__(programs, "wire", ["wire", "--listen", self.socket, "--pcap-dir",
                                            self.pcap_dir, "--seed", seed], work, LISTENING)


class Nic(_Controlled):
    """One adapter port."""

    def __init__(self, programs, work, name, mac, wire, kind="e810", strict=True, trace=None,
                 args=()):
        self.mac = mac
        self.socket = work / f"{name}.vfio"
        argv = ["nic", "--type", kind, "--name", name, "--socket", self.socket, "--mac", mac,
                "--wire", wire.socket, "--strict" if strict else "--lenient", "--keep", *args]
        if trace:
            argv += ["--trace", work / f"{name}.trace", "--trace-level", trace]
        super().__init__(programs, name, argv, work, LISTENING)

    def counters(self, objects=False):
        """Return {name: value}; objects: only what is allocated on the adapter now."""
        text = self.control("counters", *(["objects"] if objects else []))
        return {line.split()[0]: int(line.split()[1]) for line in text.splitlines()
                if len(line.split()) == 2 and line.split()[1].isdigit()}
