# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a connection costs in time and memory, against the in-tree driver in the same run."""
import re
import statistics
from pathlib import Path

import pytest

import traffic
from conftest import TOP

HERE = Path(__file__).resolve().parent
DRIVERS = ("intree", "irdma")
COUNTS = (1, 100)
LONG_COUNTS = (1, 100, 1000)
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "cm connect", "full connect", "disconnect",
         "destroy qp", "destroy id")
ROUNDS = 2
HELD = 300
PORT = 7471


def kernel_kib(host):
    """Memory that the kernel holds for itself, KiB: neither free nor a cache nor a process's."""
    host.run("sync; echo 3 > /proc/sys/vm/drop_caches").check()
    info = dict(re.findall(r"^(\w+):\s+(\d+)", host.run("cat /proc/meminfo").check().out, re.M))
    lists = re.findall(r"^\s+count:\s+(\d+)", host.run("cat /proc/zoneinfo").check().out, re.M)
    used = ("MemFree", "Cached", "Buffers", "SReclaimable", "AnonPages", "PageTables", "SecPageTables")
    return int(info["MemTotal"]) - sum(int(info.get(k, 0)) for k in used) - 4 * sum(map(int, lists))


def memory_per_connection(lab):
    """KiB of host A's kernel for each of HELD established connections to host B."""
    a, b = lab["A"], lab["B"]
    for host in (a, b):
        host.put(HERE / "hold.py", "/tmp/hold.py")
    held = re.compile("^held", re.M)
    before = kernel_kib(a)
    server = b.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py listen {b.ip4} {PORT} {HELD}")
    client = None
    try:
        traffic.wait_listening(b, PORT, server)
        client = a.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py connect {b.ip4} {PORT} {HELD}")
        client.wait_output(held, timeout=120)
        server.wait_output(held, timeout=60)
        return (kernel_kib(a) - before) / HELD
    finally:
        for end in filter(None, (client, server)):
            end.kill()
            end.wait(60)


def measure(lab, driver, counts):
    """One round: load, measure, unload; returns {what: cost}."""
    lab.each(lambda host: host.load_driver(driver))
    found = {}
    for count in counts:
        table = traffic.cmtime(lab["B"], lab["A"], connections=count, timeout=300)
        found.update({f"{step}, {count}": table[step][0] for step in STEPS if step in table})
    found["memory of a connection, KiB"] = memory_per_connection(lab)
    lab.each(lambda host: host.unload_driver())
    return found


@pytest.mark.ci_kernel("6.12")
def test_cost_of_connections(own_lab, kernel, request):
    """cmtime's table, microseconds a step, and the kernel memory of an established connection."""
    lab = own_lab("none")
    counts = LONG_COUNTS if request.config.getoption("--long") else COUNTS
    runs = {driver: [] for driver in DRIVERS}
    for _ in range(ROUNDS):
        for driver in DRIVERS:
            runs[driver].append(measure(lab, driver, counts))
    theirs, ours = ({k: statistics.median(r[k] for r in runs[d]) for k in runs[d][0]} for d in DRIVERS)
    rows = [f"| {k} | {theirs[k]:.4g} | {ours[k]:.4g} | {ours[k] / max(theirs[k], 1e-9):.2f} |" for k in theirs]
    table = "\n".join([f"| kernel {kernel} | in-tree | ours | ratio |", "| --- | --- | --- | --- |"] + rows)
    (TOP / "build" / "check" / f"cm-cost-{kernel}.md").write_text(table + "\n")
    print(table)
    # with noise: a pool grows by 2 MiB at a time, and half of it is the RDMA core's own
    memory = "memory of a connection, KiB"
    assert ours[memory] <= theirs[memory], (
        f"{memory}: expected at most the in-tree driver's {theirs[memory]:.2f}, got {ours[memory]:.2f}")
