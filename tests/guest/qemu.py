# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""One guest: QEMU with a kernel, two read-only disks, the agent's port and adapters."""

import json
import os
import re
import socket
import time
from pathlib import Path

from . import images, kernels, splat, tools
from .agent import Agent
from .errors import LabError, Timeout
from .process import Daemon

# Everything a guest of the lab has no use for and TCG would spend seconds on.
CMDLINE = ("console=ttyS0 loglevel=5 panic=-1 oops=panic mitigations=off audit=0 apparmor=0 "
           "tsc=reliable no_timer_check raid=noautodetect 8250.nr_uarts=1 cryptomgr.notests "
           "random.trust_cpu=on i8042.noaux i8042.nokbd net.ifnames=0 printk.devkmsg=on "
           "log_buf_len=4M")
ACCELS = ("kvm", "tcg")
# The kernel patches itself as it boots, by way of a breakpoint.  TCG was seen to run one that was in memory no more.
TCG_FAULT = re.compile(r"\bint3: 0000 \[#1\]")
BOOT_ATTEMPTS = 3
# files of a saved state
STATE = "state"
KMSG = "kmsg"
BOOT_TIMEOUT_S = {"kvm": 60, "tcg": 120}

# Emulated without what costs the emulator more than it gives the guest: string instructions that
# kernels would use for all copying, byte by byte, and a fifth level of page tables.
TCG_CPU = "max,-erms,-fsrm,-la57"


def pick_accel(wanted=None):
    """Return "kvm" or "tcg": the wanted one, else KVM when this host lets us use it."""
    if wanted not in (None, "auto", *ACCELS):
        raise LabError(f"no accelerator {wanted!r}; there are auto, {', '.join(ACCELS)}")
    usable = os.access("/dev/kvm", os.R_OK | os.W_OK)
    # In some virtual machines /dev/kvm is there although the processor shows no virtualization:
    # such a KVM interprets much of the guest, is slower than TCG and knows too few instructions.
    flags = re.search(r"^flags\s*:.*", Path("/proc/cpuinfo").read_text(), re.M)
    native = flags and re.search(r"\b(vmx|svm)\b", flags.group())
    if wanted == "kvm" and not usable:
        raise LabError("/dev/kvm cannot be opened; use --accel tcg, or load the kvm module "
                       "and join group kvm")
    if wanted in ACCELS:
        return wanted
    return "kvm" if usable and native else "tcg"


class Qmp:
    """QEMU's control socket; one command at a time."""

    def __init__(self, path):
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(20)
        self._sock.connect(str(path))
        self._file = self._sock.makefile("rw")
        self._file.readline()
        self.command("qmp_capabilities")

    def command(self, name, **arguments):
        """Execute a QMP command and return its result; raise LabError on an error."""
        self._file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self._file.flush()
        for line in self._file:
            answer = json.loads(line)
            if "return" in answer:
                return answer["return"]
            if "error" in answer:
                raise LabError(f"QEMU refuses {name}: {answer['error']['desc']}")
        raise LabError(f"QEMU closed its control socket during {name}")

    def close(self):
        """Close the socket."""
        self._sock.close()


def guest_arguments(kernel, accel, image, mem_mb, cpus, cmdline):
    """Return QEMU's arguments for a guest, all but its adapters and how it is reached.

    They refer to the character devices "console" and "agent".
    """
    if kernel == kernels.DEBUG:
        mem_mb *= 2     # half of it for the records of the checks
        cmdline += " kmemleak=on"
    argv = ["-accel", "kvm" if accel == "kvm" else "tcg,thread=multi,tb-size=256",
            "-machine", "q35,memory-backend=ram,vmport=off,hpet=off",
            "-cpu", "host" if accel == "kvm" else TCG_CPU, "-smp", cpus, "-m", mem_mb,
            "-object", f"memory-backend-memfd,id=ram,size={mem_mb}M,share=on",
            "-nodefaults", "-no-user-config", "-no-reboot", "-display", "none",
            "-serial", "chardev:console",
            "-kernel", kernels.vmlinux(kernel), "-initrd", kernels.initramfs(kernel),
            "-append", f"{CMDLINE} {cmdline}".strip(),
            "-device", "virtio-serial-pci,addr=2",
            "-device", "virtserialport,chardev=agent,name=irdma.agent"]
    disks = (images.root_image(image), kernels.modules_image(kernel))
    for n, path in enumerate(disks):
        argv += ["-drive", f"if=none,id=d{n},file={path},format=raw,readonly=on",
                 "-device", f"virtio-blk-pci,drive=d{n},addr=3.{n},multifunction=on"]
    return argv


class Machine:
    """A running guest.

    nics: model.Nic objects, which get PCI addresses 00:04.0, 00:05.0, ...  They sit on the root
    bus: QEMU 11.1 dies of an assertion when a vfio-user device below a root port is unplugged.
    state: directory that save() has filled; the guest begins with it and need not boot.  It was
    another's, of the same parameters but for the adapters.
    """

    def __init__(self, name, work, kernel, nics, accel, image=images.DEFAULT, mem_mb=1024, cpus=2,
                 cmdline="", state=None):
        self.name = name
        self._state = state
        self.agent = Agent(name)
        self.console_log = work / f"{name}.console"
        self._qmp_path = work / f"{name}.qmp"
        self._accel = accel
        listener = socket.socket(socket.AF_UNIX)
        agent_path = work / f"{name}.agent"
        # of the guest's life before a restart
        agent_path.unlink(missing_ok=True)
        listener.bind(str(agent_path))
        listener.listen(1)
        prefix, env = tools.qemu()
        argv = prefix + guest_arguments(kernel, accel, image, mem_mb, cpus, cmdline)
        argv += self._connections(agent_path, nics)
        self._daemon = Daemon(f"QEMU of {name}", argv, work / f"{name}.qemu",
                              dict(os.environ, **env))
        try:
            self._accept(listener, work)
            if state:
                self._load()
        except BaseException:
            self._daemon.stop()
            raise
        finally:
            listener.close()

    def _connections(self, agent_path, nics):
        argv = ["-chardev", f"file,id=console,path={self.console_log}",
                "-qmp", f"unix:{self._qmp_path},server=on,wait=off",
                "-chardev", f"socket,id=agent,path={agent_path}"]
        for n, nic in enumerate(nics):
            device = {"driver": "vfio-user-pci", "id": f"nic{n}", "addr": f"{4 + n:x}",
                      "socket": {"type": "unix", "path": str(nic.socket)}}
            argv += ["-device", json.dumps(device)]
        return argv + ["-incoming", "defer"] * bool(self._state)

    def _accept(self, listener, work):
        """Take the agent's connection, which QEMU makes as it starts."""
        listener.settimeout(0.2)
        while True:
            try:
                sock, _ = listener.accept()
            except socket.timeout:
                if self._daemon.rc is None:
                    continue
                self._daemon.wait(5)
                last = self._daemon.lines[-1] if self._daemon.lines else "no message"
                raise LabError(f"QEMU of {self.name} did not start: {last}") from None
            sock.setblocking(True)
            kmsg = (self._state / KMSG).read_text().splitlines() if self._state else ()
            self.agent.start(sock, work / f"{self.name}.kmsg", kmsg)
            return

    def _migrate(self, command, path):
        q = Qmp(self._qmp_path)
        try:
            # pages at fixed places of the file, none where memory is empty
            q.command("migrate-set-capabilities", capabilities=[{"capability": "mapped-ram", "state": True}])
            q.command(command, uri=f"file:{path}")
            while (status := q.command("query-migrate").get("status")) not in ("completed", "failed"):
                time.sleep(0.01)
            if status == "failed":
                raise LabError(f"QEMU of {self.name}: {command} of {path} failed: {self._last_word()}")
        finally:
            q.close()

    def save(self, into):
        """Stop the guest, which must have no adapter and run no command, and save its state in a directory."""
        self.qmp("stop")
        self._migrate("migrate", into / STATE)
        (into / KMSG).write_text("".join(f"{line}\n" for line in self.agent.kmsg))

    def _load(self):
        self._migrate("migrate-incoming", self._state / STATE)
        self.qmp("cont")

    def _wait_word(self, deadline):
        """Wait for the next word of the agent about itself."""
        while not self.agent.ready(min(1.0, max(0.0, deadline - time.monotonic()))):
            self._check_kvm()
            if time.monotonic() >= deadline:
                raise Timeout("no word from the guest")

    def wait_ready(self, timeout=None):
        """Wait for the agent in the guest to answer, and tell it which host it is."""
        timeout = timeout or BOOT_TIMEOUT_S[self._accel]
        deadline = time.monotonic() + timeout
        try:
            if not self._state:
                self._wait_word(deadline)
            self.agent.identify()
            self._wait_word(deadline)
        except LabError as e:
            said = [s for s in self.console_lines() if s.strip()]
            reason = next((s for s in reversed(said) if s.startswith("agent:")),
                          said[-1] if said else self._last_word())
            if "KVM" in str(e):
                raise LabError(f"guest {self.name} did not boot: {e}") from None
            when = f" in {timeout} s" if isinstance(e, Timeout) else ""
            if when and self._accel == "kvm":
                reason += "; if this host's KVM is itself emulated, use --accel tcg"
            raise type(e)(f"guest {self.name} did not boot{when}: {reason}") from None

    def _check_kvm(self):
        """Notice a guest that KVM has stopped; QEMU itself would wait for ever."""
        if any("KVM internal error" in s for s in self._daemon.lines):
            raise LabError("this host's KVM cannot run it; use --accel tcg")

    def _last_word(self):
        # vfio-user has no such interrupt; QEMU says so about every adapter
        said = [s for s in self._daemon.lines if "Could not enable error recovery" not in s]
        return said[-1] if said else "nothing on its console"

    def console_lines(self):
        """Return the console output so far."""
        if not Path(self.console_log).exists():
            return []
        text = Path(self.console_log).read_bytes().decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]|\x1bc|\r", "", text).splitlines()

    def died_of_tcg(self):
        """True when the console shows a fault of the emulator, which another boot will hardly meet."""
        return any(map(TCG_FAULT.search, self.console_lines()))

    def splats(self, allowed=()):
        """Return kernel faults seen in the kernel log or on the console."""
        found = splat.find(self.agent.kmsg, allowed)
        # after a panic the console may hold more than the agent could still send
        return found or splat.find(self.console_lines(), allowed)

    def qmp(self, name, **arguments):
        """Send one QMP command to QEMU."""
        q = Qmp(self._qmp_path)
        try:
            return q.command(name, **arguments)
        finally:
            q.close()

    def running(self):
        """True while QEMU lives."""
        return self._daemon.rc is None

    @property
    def pid(self):
        """Process id of QEMU."""
        return self._daemon.pid

    def wait_exit(self, timeout):
        """Wait until QEMU has ended, e.g. after a power-off."""
        return self._daemon.wait(timeout)

    def stop(self):
        """End the guest at once, like pulling the plug."""
        self.agent.close("stopped")
        self._daemon.stop()
