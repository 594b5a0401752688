# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a connection costs in time and memory, against the in-tree driver in the same run."""
import pytest

import cost
import traffic

DRIVERS = ("intree", "irdma")
COUNTS = (1, 100)
LONG_COUNTS = (1, 100, 1000)
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "cm connect", "full connect", "disconnect",
         "destroy qp", "destroy id")
FEW, MORE = 100, 400     # what the first connections fetch for all is not counted
PORT = 7471


def held(lab):
    """KiB of host A's kernel for each connection of MORE to host B, when there are FEW already; and the time of one."""
    a, b = lab["A"], lab["B"]
    with traffic.held_connections(b, a, FEW, PORT):
        before = cost.kernel_kib(a)
        with traffic.held_connections(b, a, MORE, PORT + 1) as connect_us:
            return {"connect, one after the other": connect_us,
                    "memory, KiB": (cost.kernel_kib(a) - before) / MORE}


def times(lab, counts):
    """cmtime's table for each number of connections: {step: microseconds}."""
    found = {}
    for count in counts:
        table = traffic.cmtime(lab["B"], lab["A"], connections=count, timeout=300)
        found.update({f"{step}, {count}": table[step][0] for step in STEPS if step in table})
    return found


@pytest.mark.not_debug
@pytest.mark.ci_kernel("6.12")
def test_cost_of_connections(own_lab, kernel, request):
    """cmtime's table, microseconds a step, and the kernel memory of an established connection."""
    # one for each, since a port mapper that the other driver's connections have used answers late
    labs = {driver: own_lab(driver) for driver in DRIVERS}
    long = request.config.getoption("--long")
    # before times(), since the port mapper has a socket for each connection, and takes longer than all else
    one_by_one = {driver: held(labs[driver]) for driver in DRIVERS}
    rounds = {driver: [] for driver in DRIVERS}
    for _ in range(3 if long else 1):
        for driver in DRIVERS:
            rounds[driver].append(times(labs[driver], LONG_COUNTS if long else COUNTS))
    theirs, ours = (cost.medians(rounds[driver]) | one_by_one[driver] for driver in DRIVERS)
    cost.write_table("cm-cost", kernel, theirs, ours)
    # most of it belongs to the RDMA core, with either driver
    memory = "memory, KiB"
    assert ours[memory] <= theirs[memory], (
        f"memory of a connection: expected at most the in-tree driver's {theirs[memory]:.2f} KiB, "
        f"got {ours[memory]:.2f}")
