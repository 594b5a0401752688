# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a connection costs in time and memory, against the in-tree driver in the same run."""
import contextlib
import re
from pathlib import Path

import pytest

import cost
import traffic

HERE = Path(__file__).resolve().parent
DRIVERS = ("intree", "irdma")
COUNTS = (1, 100)
LONG_COUNTS = (1, 100, 1000)
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "cm connect", "full connect", "disconnect",
         "destroy qp", "destroy id")
FEW, MORE = 100, 400     # what the first connections fetch for all is not counted
PORT = 7471


@contextlib.contextmanager
def held_connections(lab, port, count):
    """Connections from host A to host B that are established and do nothing."""
    a, b = lab["A"], lab["B"]
    held = re.compile("^held", re.M)
    with contextlib.ExitStack() as ends:
        server = b.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py listen {b.ip4} {port} {count}")
        ends.callback(traffic.end, server, 60)
        traffic.wait_listening(b, port, server)
        client = a.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py connect {b.ip4} {port} {count}")
        ends.callback(traffic.end, client, 60)
        client.wait_output(held, timeout=120)
        server.wait_output(held, timeout=60)
        yield


def memory_per_connection(lab):
    """KiB of host A's kernel for each connection of MORE to host B, when there are FEW already."""
    for host in lab.hosts.values():
        host.put(HERE / "hold.py", "/tmp/hold.py")
    with held_connections(lab, PORT, FEW):
        before = cost.kernel_kib(lab["A"])
        with held_connections(lab, PORT + 1, MORE):
            return (cost.kernel_kib(lab["A"]) - before) / MORE


def times(lab, counts):
    """cmtime's table for each number of connections: {step: microseconds}."""
    found = {}
    for count in counts:
        table = traffic.cmtime(lab["B"], lab["A"], connections=count, timeout=300)
        found.update({f"{step}, {count}": table[step][0] for step in STEPS if step in table})
    return found


@pytest.mark.ci_kernel("6.12")
def test_cost_of_connections(own_lab, kernel, request):
    """cmtime's table, microseconds a step, and the kernel memory of an established connection."""
    lab = own_lab("none")
    long = request.config.getoption("--long")

    def with_driver(driver, measure):
        lab.each(lambda host: host.load_driver(driver))
        found = measure()
        lab.each(lambda host: host.unload_driver())
        return found

    # before times(), since the port mapper has a socket for each connection
    memory = {driver: with_driver(driver, lambda: memory_per_connection(lab)) for driver in DRIVERS}
    rounds = {driver: [] for driver in DRIVERS}
    for _ in range(3 if long else 1):
        for driver in DRIVERS:
            rounds[driver].append(with_driver(driver, lambda: times(lab, LONG_COUNTS if long else COUNTS)))
    theirs, ours = (cost.medians(rounds[driver]) | {"memory, KiB": memory[driver]} for driver in DRIVERS)
    cost.write_table("cm-cost", kernel, theirs, ours)
    # most of it belongs to the RDMA core, with either driver
    assert memory["irdma"] <= memory["intree"], (
        f"memory of a connection: expected at most the in-tree driver's {memory['intree']:.2f} KiB, "
        f"got {memory['irdma']:.2f}")
