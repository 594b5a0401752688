# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the tests of costs share: kernel memory, and the table "in-tree : ours"."""
import re
import statistics
from pathlib import Path

REPORTS = Path(__file__).resolve().parents[2] / "build" / "check"


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
