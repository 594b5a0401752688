# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the tests of costs share: kernel memory, and the table "in-tree : ours"."""
import re
import statistics
from pathlib import Path

import traffic

REPORTS = Path(__file__).resolve().parents[2] / "build" / "check"
FEW, MORE = 100, 400     # connections; what the first ones fetch for all is not counted
PORT = 7471
# most of it belongs to the RDMA core, with either driver
MEMORY = {"memory of a connection, connecting host, KiB": "A", "memory of a connection, accepting host, KiB": "B"}


def kernel_kib(host):
    """Memory that the kernel holds for itself, KiB: neither free nor a cache nor a process's.

    MemFree and MemAvailable leave out pages that lie in the processors' free lists, which
    since Linux 5.13 hold freed 2 MiB blocks as well: 10 MiB come and go between two looks.
    """
    host.run("sync; echo 3 > /proc/sys/vm/drop_caches").check()
    info = dict(re.findall(r"^(\w+):\s+(\d+)", host.run("cat /proc/meminfo").check().out, re.M))
    lists = re.findall(r"^\s+count:\s+(\d+)", host.run("cat /proc/zoneinfo").check().out, re.M)
    used = ("MemFree", "Cached", "Buffers", "SReclaimable", "AnonPages", "PageTables", "SecPageTables")
    return int(info["MemTotal"]) - sum(int(info.get(k, 0)) for k in used) - 4 * sum(map(int, lists))


def of_held_connections(lab):
    """What each of MORE connections from host A to host B costs when there are FEW already: {what: cost}."""
    hosts = {what: lab[name] for what, name in MEMORY.items()}
    with traffic.held_connections(lab["B"], lab["A"], FEW, PORT):
        before = {what: kernel_kib(host) for what, host in hosts.items()}
        with traffic.held_connections(lab["B"], lab["A"], MORE, PORT + 1) as connect_us:
            found = {what: (kernel_kib(host) - before[what]) / MORE for what, host in hosts.items()}
    return {"connect, one after the other, us": connect_us} | found


def medians(rounds):
    """[{what: cost}] of several rounds to {what: median}."""
    return {what: statistics.median(r[what] for r in rounds) for what in rounds[0]}


def write_table(name, kernel, theirs, ours):
    """Write {what: cost} of both drivers to a report, and print it."""
    rows = [f"| {what} | {theirs[what]:.4g} | {ours[what]:.4g} | {ours[what] / max(theirs[what], 1e-9):.2f} |"
            for what in theirs]
    table = "\n".join([f"| kernel {kernel} | in-tree | ours | ratio |", "| --- | --- | --- | --- |"] + rows)
    REPORTS.mkdir(parents=True, exist_ok=True)
    (REPORTS / f"{name}-{kernel}.md").write_text(table + "\n")
    print(table)
