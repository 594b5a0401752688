# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the guest tests share: labs, and what must hold after each test.

A lab is shared by the tests of a module that ask for the same drivers, since most of a
test's time would be booting.  After every test the kernels must not have complained and
the adapters must not have refused anything; when a lab is given up its RDMA driver must
unload and leave nothing allocated on the adapter.
"""
import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from guest import Lab, kernels  # noqa: E402  (needs the path above)
from guest.lab import check_capture  # noqa: E402

TOP = Path(__file__).resolve().parents[2]
# after large regions the in-tree driver unloads without the last segment of its page lists
IN_TREE_LEAKS = ("hmc_pages", "sd")


def pytest_addoption(parser):
    parser.addoption("--kernel", choices=kernels.ALL, default="7.3", help="kernel of the guests")
    parser.addoption("--accel", choices=("kvm", "tcg"), help="how QEMU runs the guests")
    parser.addoption("--long", action="store_true", help="run the soak tests too")


def pytest_configure(config):
    config.addinivalue_line("markers", "long: takes long, or not yet seen to pass everywhere; only with --long")
    config.addinivalue_line("markers", "ci_kernel(name): without --long on this kernel and on debug only")
    config.addinivalue_line("markers", "not_debug: says nothing on the debug kernel, which is slow and has few options")


def pytest_collection_modifyitems(config, items):
    kernel = config.getoption("--kernel")
    long = config.getoption("--long")

    def wanted(item):
        if kernel == kernels.DEBUG and item.get_closest_marker("not_debug"):
            return False
        if long:
            return True
        only = item.get_closest_marker("ci_kernel")
        return not item.get_closest_marker("long") and (not only or kernel in (only.args[0], kernels.DEBUG))

    keep = [i for i in items if wanted(i)]
    config.hook.pytest_deselected(items=[i for i in items if i not in keep])
    items[:] = keep


@pytest.fixture(scope="session")
def kernel(request):
    return request.config.getoption("--kernel")


@pytest.fixture(scope="session")
def accel(request):
    return request.config.getoption("--accel")


def refusals(lab):
    """What the strict model refused, as log lines, which come a moment later than its answers."""
    found = []
    for host in lab.hosts.values():
        for nic in host.nics:
            found += nic.daemon.wait_lines("STRICT:", nic.counters()["strict"])
    return found


def check_no_lost_memory(host):
    """No memory that is five seconds old has been lost sight of (second scan: what changes is in use)."""
    log = "/sys/kernel/debug/kmemleak"
    lost = host.run(f"echo scan > {log} && echo scan > {log} && cat {log}", timeout=120).check().out
    assert not lost.strip(), f"host {host.name}: expected no memory leak, got: {lost[:2000]}"


def check_clean_unload(lab):
    """The RDMA drivers must go, and take all they had allocated on the adapters; gives the seconds that they took."""
    took = 0
    for host in lab.hosts.values():
        if not host.machine or host.driver in ("none", "siw"):
            continue
        ours = host.driver == "irdma"
        start = time.monotonic()
        host.unload_driver()
        took += time.monotonic() - start
        if ours and host.kernel == kernels.DEBUG:
            check_no_lost_memory(host)
        for nic in host.nics:
            left = {k: v for k, v in nic.counters(objects=True).items() if v and k not in host.known_leaks}
            assert not left, f"host {host.name}: expected nothing allocated after unload, got {left}"
    return took


class Labs:
    """The labs of one test module, started when first asked for."""

    def __init__(self, kernel, accel, name):
        self.kernel, self.accel, self.name = kernel, accel, name
        self.running = {}
        self.used = []          # by the test that runs
        self.refused = {}
        self.capture_filter = None      # which frames tshark judges (display filter); None: all

    def get(self, driver, **options):
        key = (str(driver), str(sorted(options.items())))
        if key not in self.running:
            logs = TOP / "build" / "check" / f"{self.name}-{self.kernel}-{len(self.running)}"
            lab = Lab(kernel=self.kernel, accel=self.accel, driver=driver, keep_logs=logs, **options)
            lab.start()
            self.running[key] = lab
        self.used.append(self.running[key])
        return self.running[key]

    def check(self):
        """Blame a fault on the test that used the lab, or on every one if none asked for it."""
        for lab in self.used or self.running.values():
            # what a test that failed has armed would meet the next one
            for nic in [nic for host in lab.hosts.values() for nic in host.nics]:
                nic.control("cqp", "release")
            lab.check_splats()
            seen = self.refused.setdefault(id(lab), 0)
            lines = refusals(lab)
            self.refused[id(lab)] = len(lines)
            assert len(lines) == seen, f"expected no refusal by the adapter, got: {lines[seen]}"

    def forgive(self, lab):
        """What the adapter refused so far was provoked by the test."""
        self.refused[id(lab)] = len(refusals(lab))

    def close(self):
        try:
            for lab in self.running.values():
                check_clean_unload(lab)
                lab.check_splats()
                # siw was seen to send a wrong CRC, and tshark cannot read what is said of that
                siw = any(host.driver == "siw" for host in lab.hosts.values())
                only = "!iwarp_rdma.terminate" if siw else self.capture_filter
                for pcap in lab.pcaps():
                    bad = check_capture(pcap, only, crc=not siw)
                    assert not bad, f"tshark on {pcap.name}: expected nothing malformed, got {bad[0]}"
        finally:
            for lab in self.running.values():
                lab.stop()
            self.running.clear()


@pytest.fixture(scope="module")
def module_labs(request, kernel, accel):
    labs = Labs(kernel, accel, request.module.__name__)
    yield labs
    labs.close()


@pytest.fixture
def labs(module_labs):
    """Labs shared by this module's tests; checked after each test."""
    module_labs.used = []
    yield module_labs
    module_labs.check()


@pytest.fixture
def own_lab(kernel, accel, request):
    """A function that starts a lab for this test alone; faults may be injected in it."""
    started = []

    def start(driver, **options):
        name = re.sub(r"\W+", "-", request.node.name)
        lab = Lab(kernel=kernel, accel=accel, driver=driver,
                  keep_logs=TOP / "build" / "check" / f"{name}-{kernel}", **options)
        started.append(lab)
        return lab.start()

    yield start
    try:
        for lab in started:
            if lab.work:
                lab.check_splats()
    finally:
        for lab in started:
            lab.stop()
