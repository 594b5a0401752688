# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The lab: hosts A, B, ... with an adapter each, joined by a wire.

    with Lab(kernel="7.3", driver={"A": "irdma", "B": "intree"}) as lab:
        server = lab["B"].popen("rping -s -a 192.168.77.2 -V -C 10")
        lab["A"].run("rping -c -a 192.168.77.2 -V -C 10").check()
        server.wait().check()
        lab.check_splats()

Leaving the `with` block, for whatever reason, ends every process and removes every
temporary file.  docs/lab.md has the whole story.
"""

import contextlib
import os
import re
import shutil
import string
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass
from pathlib import Path

from . import cache, images, kernels, model, tools, warm
from .errors import LabError
from .qemu import BOOT_ATTEMPTS, Machine, pick_accel

DRIVERS = ("intree", "irdma", "siw", "none")
GUEST_UP = Path(__file__).resolve().parent / "guest-up.sh"
DDP_IN_GUEST = "/lib/firmware/intel/ice/ddp/ice.pkg"
REPOSITORY = Path(__file__).resolve().parents[2]
MAX_HOSTS = 8
WORK_PREFIX = "irdma-lab-"
WARNINGS = ("W=1",)     # as scripts/check-build builds, so that it is not built twice
BRING_UP_TIMEOUT_S = {"kvm": 90, "tcg": 180}
# the load of an out-of-tree module, and what TCG's slowness may draw
HARMLESS = (r"loading out-of-tree module taints kernel", r"module verification failed")


@dataclass
class Port:
    """A port as the guest knows it."""

    netdev: str
    pci: str
    ibdev: str
    ip4: str
    ip6: str


class Host:
    """One guest.  Everything of the agent is here too: run, popen, put, get."""

    def __init__(self, lab, name, number, kernel, driver):
        self.name = name
        self.number = number
        self.kernel = kernel
        self.driver = driver
        self.ports = []
        self.nics = []
        self.machine = None
        self.known_fault = None     # regex: when this is the kernel's first fault, none counts
        self.known_leaks = ()       # adapter objects that the driver is known not to give back
        self._lab = lab

    @property
    def ip4(self):
        """IPv4 address of the first port."""
        return f"192.168.77.{self.number}"

    @property
    def ip6(self):
        """IPv6 address of the first port."""
        return f"fd77::{self.number}"

    @property
    def nic(self):
        """The model of the first port (counters(), control())."""
        return self.nics[0]

    @property
    def agent(self):
        """The agent (agent.Agent) of the running guest."""
        if not self.machine:
            raise LabError(f"{self.name} is not running")
        return self.machine.agent

    def run(self, argv, timeout=60, stdin=b"", env=None):
        """Run a command (list, or string for a shell) to its end; see agent.Agent.run."""
        return self.agent.run(argv, timeout=timeout, stdin=stdin, env=env)

    def popen(self, argv, env=None, pty=False, on_output=None):
        """Start a command in the background; see agent.Agent.popen."""
        return self.agent.popen(argv, env=env, pty=pty, on_output=on_output)

    def put(self, local, remote, mode=None):
        """Copy a local file (path or bytes) into the guest."""
        self.agent.put(local, remote, mode)

    def get(self, remote, local=None):
        """Copy a file of the guest here; returns its bytes."""
        return self.agent.get(remote, local)

    def dmesg(self):
        """Return the kernel log so far, one line an item."""
        return list(self.agent.kmsg)

    def wait_dmesg(self, pattern, timeout=60, start=0):
        """Wait for a kernel message matching the regular expression `pattern` (text)."""
        return self.agent.wait_kmsg(re.compile(pattern), timeout, start)

    def splats(self, allowed=()):
        """Return the lines of the kernel log and the console that report a fault."""
        # lockdep has complaints about both, at the first connection
        if self.kernel == kernels.DEBUG and self.driver in ("intree", "siw"):
            return []
        found = self.machine.splats((*HARMLESS, *allowed)) if self.machine else []
        known = found and self.known_fault and re.search(self.known_fault, found[0])
        return [] if known else found

    def check_splats(self, allowed=()):
        """Raise LabError when the kernel complained."""
        found = self.splats(allowed)
        if found:
            raise LabError(f"{self.name}: kernel fault: {found[0]} ({len(found)} lines; "
                           f"log {self._lab.work}/{self.name}.kmsg)")

    def fault(self, *words):
        """Send a command to the adapter's control socket; returns its answer."""
        return self.nic.control(*words)

    def start(self):
        """Start QEMU; does not wait for the guest."""
        self.machine = Machine(self.name, self._lab.work, self.kernel, self.nics,
                               self._lab.accel, self._lab.image, self._lab.mem_mb,
                               self._lab.cpus, self._lab.cmdline, self._lab.state(self.kernel))

    def wait_ready(self):
        """Wait for the guest's agent, and hand over the DDP package; boots again after a fault of TCG's own."""
        for attempt in range(1, BOOT_ATTEMPTS + 1):
            try:
                self.machine.wait_ready()
                break
            except LabError as e:
                if attempt == BOOT_ATTEMPTS or not self.machine.died_of_tcg():
                    raise
                cache.progress(f"{e}: a fault of TCG, it boots again")
                self.stop()
                self.start()
        self.put(self._lab.ddp, DDP_IN_GUEST)

    def load_driver(self, driver=None, params=()):
        """Load the LAN driver and an RDMA driver, configure addresses, wait until active.

        driver: one of DRIVERS (default: the host's own); params: module parameters.
        """
        driver = driver or self.driver
        check_driver(driver)
        number = str(self.number)
        argv = ["sh", "/tmp/guest-up.sh", driver, number]
        self.put(GUEST_UP, "/tmp/guest-up.sh")
        if driver in ("siw", "irdma"):
            self.put_module(self._lab.module(driver, self.kernel), f"/tmp/{driver}.ko")
            argv.append(f"/tmp/{driver}.ko")
        elif params:
            argv.append("-")
        r = self.run(argv + list(params), timeout=BRING_UP_TIMEOUT_S[self._lab.accel])
        if r.rc:
            tail = (r.err.strip() or "no message").splitlines()[-1]
            raise LabError(f"{self.name}: driver {driver} did not come up on kernel "
                           f"{self.kernel}: {tail}")
        self.driver = driver
        self.ports = []
        for n, line in enumerate(r.out.splitlines()):
            dev, pci, *ib = line.split()
            self.ports.append(Port(dev, pci, ib[0] if ib else "",
                                   f"192.168.{77 + n}.{number}", f"fd{77 + n}::{number}"))
        return self.ports

    def put_module(self, module, remote):
        """Copy a module into the guest without its debug information, and load what it needs."""
        with tempfile.TemporaryDirectory(dir=self._lab.work) as d:
            small = kernels.strip_debug(module, self.kernel, Path(d) / "m.ko")
            self.put(small, remote)
            depends = cache.run([*tools.tool("usr/sbin/modinfo"), "-F", "depends", module],
                                f"reading {module}").strip()
        if depends:
            self.run(["modprobe", "-a", *depends.split(",")]).check()

    def unload_driver(self, lan=False):
        """Remove the RDMA driver (lan: and ice); raises LabError when it does not go."""
        if self.driver == "siw":
            self.run("for d in $(ls /sys/class/infiniband); do rdma link delete $d; done").check()
        if self.driver in ("intree", "irdma"):
            self.run(["rmmod", "irdma"]).check()
        elif self.driver == "siw":
            self.run(["rmmod", "siw"]).check()
        if lan:
            self.run(["rmmod", "ice"]).check()
        self.ports = []

    def restart(self, cmdline=None):
        """Pull the plug and boot again (without loading drivers)."""
        self.stop()
        if cmdline is not None:
            self._lab.cmdline = cmdline
        self.start()
        self.wait_ready()

    def stop(self):
        """Pull the plug."""
        if self.machine:
            self.machine.stop()
            self.machine = None


def check_driver(driver):
    """Raise LabError when there is no such driver."""
    if driver not in DRIVERS:
        raise LabError(f"no driver {driver!r}; there are {', '.join(DRIVERS)}")


def _per_host(value, names, default):
    """Spread one value, or {host: value}, over the hosts."""
    if isinstance(value, dict):
        unknown = set(value) - set(names)
        if unknown:
            raise LabError(f"no host {sorted(unknown)[0]!r}; hosts are {', '.join(names)}")
        return {n: value.get(n, default) for n in names}
    return {n: value or default for n in names}


class Lab:
    """A set of hosts on one wire.

    kernel, driver: one value for all hosts, or {"A": ..., "B": ...}.
    accel: None (KVM when usable), "kvm" or "tcg".  nics: adapters per host.
    module: {kernel or "*": path of irdma.ko} for driver "irdma"; default: build it.
    trace: trace level of the models (0, 1, 2).  san: the model built with sanitizers.
    keep_logs: directory that receives the logs and captures at the end.
    """

    def __init__(self, kernel=kernels.DEFAULT, driver="intree", hosts=2, accel=None,
                 image=images.DEFAULT, mem_mb=1024, cpus=2, cmdline="", nics=1, module=None,
                 strict=True, trace=0, san=False, seed=1, keep_logs=None):
        if not 1 <= hosts <= MAX_HOSTS:
            raise LabError(f"{hosts} hosts; 1 to {MAX_HOSTS} are allowed")
        self.names = list(string.ascii_uppercase[:hosts])
        kernel_of = _per_host(kernel, self.names, kernels.DEFAULT)
        driver_of = _per_host(driver, self.names, "intree")
        for name in self.names:
            kernels.check_name(kernel_of[name])
            check_driver(driver_of[name])
        self.accel = pick_accel(accel)
        self.image = image
        self.mem_mb = mem_mb
        self.cpus = cpus
        self.cmdline = cmdline
        self.hosts = {n: Host(self, n, i + 1, kernel_of[n], driver_of[n])
                      for i, n in enumerate(self.names)}
        self.work = None
        self._modules = module if isinstance(module, dict) else {"*": module} if module else {}
        self._options = {"nics": nics, "strict": strict, "trace": trace, "san": san,
                         "seed": seed}
        self._keep_logs = keep_logs
        self.wire_process = None
        self.programs = None
        self.ddp = None

    def __getitem__(self, name):
        return self.host(name)

    def host(self, name):
        """Return host `name`."""
        if name not in self.hosts:
            raise LabError(f"no host {name!r}; hosts are {', '.join(self.names)}")
        return self.hosts[name]

    def __enter__(self):
        return self.start()

    def __exit__(self, *exc):
        self.stop()

    def module(self, driver, kernel):
        """Return the module file of driver "irdma" or "siw" for `kernel`, built when needed."""
        if driver == "siw":
            return kernels.siw(kernel)
        path = self._modules.get(kernel) or self._modules.get("*")
        if path:
            if not os.path.exists(path):
                raise LabError(f"no module {path}; build it or leave the option away")
            return path
        # this lab's own: the tree may be built anew while it runs
        mine = self.work / f"irdma-{kernel}.ko"
        if not mine.exists():
            kernels.build_driver(kernel, REPOSITORY, make_args=WARNINGS, quiet=True, copy=mine)
        return mine

    def state(self, kernel):
        """Return the state that guests begin with (see warm.py), or None when they have to boot."""
        if self.accel != "tcg" or self.cmdline or self.image != images.DEFAULT:
            return None
        return warm.state(kernel, self.accel, self.image, self.mem_mb, self.cpus)

    def prepare(self):
        """Have everything a start needs in the cache, and the driver in the work directory."""
        tools.qemu()
        for host in self.hosts.values():
            kernels.initramfs(host.kernel)
            kernels.modules_image(host.kernel)
            self.state(host.kernel)
            if host.driver in ("irdma", "siw"):
                self.module(host.driver, host.kernel)

    def start(self):
        """Start models and guests, load the drivers, wait until the ports are active."""
        try:
            self._start()
        except LabError as e:
            where = f" (logs: {self._save_failure()})" if self.work else ""
            self.stop()
            raise type(e)(f"{e}{where}") from None
        except BaseException:
            self.stop()
            raise
        return self

    def _start(self):
        # short: the paths of UNIX sockets end at 107 bytes
        remove_stale()
        self.work = Path(tempfile.mkdtemp(prefix=f"{WORK_PREFIX}{os.getpid()}-"))
        self.prepare()
        self.programs = model.build(san=self._options["san"])
        self.ddp = model.ddp_package(self.programs, self.work / "ice.pkg")
        self.wire_process = model.Wire(self.programs, self.work, self._options["seed"])
        begin = time.monotonic()
        for host in self.hosts.values():
            self.add_nics(host)
            host.start()
        cache.progress(f"{len(self.hosts)} guests boot ({self.accel})")
        self.each(lambda h: h.wait_ready())
        cache.progress(f"guests are up after {time.monotonic() - begin:.1f} s, loading drivers")
        self.each(lambda h: h.load_driver())
        cache.progress(f"all ports are active after {time.monotonic() - begin:.1f} s")

    def add_nics(self, host):
        """Start the models of a host's adapters."""
        for n in range(self._options["nics"]):
            suffix = str(n) if n else ""
            host.nics.append(model.Nic(
                self.programs, self.work, f"{host.name}{suffix}",
                f"02:e8:10:00:{n:02x}:{host.number:02x}", self.wire_process,
                strict=self._options["strict"], trace=self._options["trace"]))

    def each(self, act):
        """Run `act(host)` on all hosts at once; raises the first failure."""
        failures = []

        def guarded(host):
            try:
                act(host)
            except Exception as e:
                failures.append(e)

        threads = [threading.Thread(target=guarded, args=(h,), daemon=True)
                   for h in self.hosts.values()]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        if failures:
            raise failures[0]

    def wire(self, *words):
        """Send a command to the wire's control socket; returns its answer."""
        return self.wire_process.control(*words)

    @contextlib.contextmanager
    def wire_fault(self, rule):
        """A fault of the wire as "drop rate=10"; it ends with the block, with all others."""
        self.wire("fault", "add", *rule.split())
        try:
            yield
        finally:
            self.wire("fault", "clear")

    def pcaps(self):
        """Return the capture files, complete up to now."""
        if self.wire_process:
            self.wire("pcap", "flush")
        return sorted((self.work / "pcap").glob("*.pcap*"))

    def check_splats(self, allowed=()):
        """Raise LabError when any kernel complained."""
        for host in self.hosts.values():
            host.check_splats(allowed)

    def stop(self):
        """End all processes and remove all temporary files; keeps logs where asked to."""
        for host in self.hosts.values():
            host.stop()
        for host in self.hosts.values():
            for nic in host.nics:
                nic.stop()
            host.nics = []
        if self.wire_process:
            self.wire_process.stop()
            self.wire_process = None
        if self.work:
            if self._keep_logs:
                self._save_logs(Path(self._keep_logs))
            shutil.rmtree(self.work, ignore_errors=True)
            self.work = None

    def _save_failure(self):
        """Keep the logs of the last start that failed; returns their directory."""
        into = cache.root() / "failed"
        cache.remove(into)
        self._save_logs(into)
        return into

    def _save_logs(self, into):
        into.mkdir(parents=True, exist_ok=True)
        for path in self.work.iterdir():
            if path.suffix in (".log", ".kmsg", ".console", ".qemu", ".trace"):
                shutil.copy(path, into)
        for path in self.pcaps():
            shutil.copy(path, into)


def remove_stale():
    """Remove the work directories of labs that were killed."""
    for path in Path(tempfile.gettempdir()).glob(f"{WORK_PREFIX}*-*"):
        pid = path.name[len(WORK_PREFIX):].split("-")[0]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(path, ignore_errors=True)


def tshark(path, *argv):
    """Return the lines that tshark prints about a capture."""
    tools.need("tshark")
    # MPA is found by its content; a port that some other protocol has once in a while must not come first
    r = subprocess.run(["tshark", "-r", str(path), "-o", "tcp.try_heuristic_first:TRUE",
                        "--disable-protocol", "rpcordma", "--disable-protocol", "smb_direct", *argv],
                       capture_output=True, text=True, check=False)
    if r.returncode:
        raise LabError(f"tshark cannot read {path}: {(r.stderr.strip() or '?').splitlines()[-1]}")
    return r.stdout.splitlines()


def check_capture(path, only=None, crc=True):
    """Return tshark's complaints (malformed packets, bad iWARP CRC) about a capture.

    only: display filter of the frames that count; crc: whether CRCs do.
    """
    only = f"({only}) && " if only else ""
    # tshark takes ports that come again for the old connection, and its MPA request for an FPDU
    found = tshark(path, "-Y", f'{only}_ws.malformed && !(iwarp_mpa.fpdu && tcp.payload contains "MPA ID Re")')
    frame = ""
    for line in tshark(path, "-Y", f"{only}iwarp_mpa", "-O", "iwarp_mpa") if crc else ():
        if line.startswith("Frame "):
            frame = line.split(":")[0]
        elif "Bad CRC32" in line:
            found.append(f"{frame}: {line.strip()}")
    return found
