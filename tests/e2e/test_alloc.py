# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Memory runs out at any place of bring-up, teardown and the first verbs."""
import re
import shutil
import subprocess
import time

import pytest

from conftest import TOP
from guest import kernels

pytestmark = pytest.mark.ci_kernel("6.12")

WRAPPER = TOP / "tests/e2e/alloc_fail/alloc_fail.c"
# what fails by returning NULL, under the names of all kernels, and by an errno
# (not kmemdup of 6.1, of whose wrapper's name a kernel header makes use)
ALLOCATOR = re.compile(r"__kmalloc(_cache)?(_noprof)?|kmalloc_trace|(__)?kvmalloc_node(_noprof)?|kmemdup_noprof|"
                       r"__alloc_percpu|pcpu_alloc_noprof|dma_alloc_attrs|dma_pool_alloc|alloc_workqueue(_noprof)?|"
                       r"_ib_alloc_device|request_threaded_irq|ida_alloc_range|__xa_insert")
ERRNO = ("request_threaded_irq", "ida_alloc_range", "__xa_insert")
DEADLINE_S = 20
PARAMS = "/sys/module/irdma/parameters"
# Context, region, CQ, QP; then it tells their address and waits for a peer that never comes.
VERBS = ("timeout -s KILL 5 stdbuf -oL ibv_rc_pingpong -d irdma0 -g 0 2> /dev/null | "
         "{ grep -m1 -q 'local address'; pkill -KILL ibv_rc_pingpong; }; true")


@pytest.fixture(scope="module")
def module(kernel, tmp_path_factory):
    """irdma.ko whose allocations fail on command."""
    imports = subprocess.run(["nm", "-u", kernels.build_driver(kernel, TOP, quiet=True)], check=True,
                             capture_output=True, text=True).stdout.split()
    wraps = {name: "-ENOMEM" if name in ERRNO else "0" for name in imports if ALLOCATOR.fullmatch(name)}
    source = tmp_path_factory.mktemp("source")
    for path in TOP.iterdir():
        if path.suffix in (".c", ".h") or path.name in ("Makefile", "Kbuild", "dkms.conf"):
            shutil.copy2(path, source)
    shutil.copytree(TOP / "scripts", source / "scripts")
    shutil.copy2(WRAPPER, source)
    (source / "wraps.h").write_text("".join(f"WRAP({name}, {failure})\n" for name, failure in wraps.items()))
    wrap = " ".join(f"--wrap={name}" for name in wraps)
    with open(source / "Kbuild", "a", encoding="ascii") as f:
        f.write(f"irdma-y += alloc_fail.o\nLDFLAGS_irdma.o := {wrap}\n")
    out = tmp_path_factory.mktemp("build")
    return kernels.build_driver(kernel, source, out=out, quiet=True)


@pytest.fixture(scope="module")
def lab(module_labs, module):
    lab = module_labs.get("none")
    lab.each(lambda host: host.put_module(module, "/tmp/irdma-alloc.ko"))
    return lab


def number(host, name):
    return int(host.run(f"cat {PARAMS}/{name}").check().out)


def one_round(host, site, nth):
    """Load, use and unload while one call fails; returns how many calls failed."""
    start = time.monotonic()
    host.run(["insmod", "/tmp/irdma-alloc.ko", f"fail_site={site}", f"fail_round={nth}"], timeout=DEADLINE_S)
    failed = sites = 0
    if host.run("test -d /sys/module/irdma").rc == 0:
        if host.run("test -d /sys/class/infiniband/irdma0").rc == 0:
            host.run(["sh", "-c", VERBS], timeout=DEADLINE_S)
        failed, sites = number(host, "num_failed"), number(host, "num_sites")
        host.run("rmmod irdma", timeout=DEADLINE_S).check()
    took = time.monotonic() - start
    assert took < DEADLINE_S, f"allocation site {site}, call {nth}: expected an end within {DEADLINE_S} s, took {took:.0f} s"
    left = {k: v for k, v in host.nic.counters(objects=True).items() if v}
    assert not left, f"allocation site {site}, call {nth}: expected nothing left on the adapter, got {left}"
    return failed, sites


def test_every_allocation_may_fail(lab, request):
    """The first call from each place that allocates; with --long the third one too (C57).  Each host takes its share."""
    rounds = (1, 3) if request.config.getoption("--long") else (1,)
    _, sites = one_round(lab["A"], 0, 1)
    assert sites > 20, f"expected more than 20 places that allocate, saw {sites}"
    hits = []

    def share(host):
        for site in range(host.number, sites + 1, len(lab.hosts)):
            hits.extend(one_round(host, site, nth)[0] for nth in rounds)

    lab.each(share)
    assert sum(hits) >= sites // 2, f"expected most of {sites} sites to fail when asked to, {sum(hits)} calls did"
    lab.each(lambda host: one_round(host, 0, 1))
