# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What a connection costs in time and memory, against the in-tree driver in the same run."""
import pytest

import cost
import traffic

DRIVERS = ("intree", "irdma")
COUNTS = (1, 100)
# at once, which the in-tree driver refuses for want of memory unless the port mapper slows them down
MANY = 1000
STEPS = ("create id", "resolve addr", "resolve route", "create qp", "cm connect", "full connect", "disconnect",
         "destroy qp", "destroy id")


def times(labs, counts):
    """cmtime's tables, driver by driver, medians of three rounds: {driver: {step and connections: microseconds}}."""
    rounds = {driver: [] for driver in DRIVERS}
    for _ in range(3):
        for driver, lab in labs.items():
            found = {}
            for count in counts:
                table = traffic.cmtime(lab["B"], lab["A"], connections=count, timeout=300)
                found.update({f"{step}, {count}": table[step][0] for step in STEPS if step in table})
            rounds[driver].append(found)
    return {driver: cost.medians(rounds[driver]) for driver in DRIVERS}


@pytest.mark.not_debug
@pytest.mark.ci_kernel("6.12")
def test_cost_of_connections(own_lab, kernel, request):
    """cmtime's table, microseconds a step, and the kernel memory of an established connection."""
    labs = {driver: own_lab(driver) for driver in DRIVERS}
    found = {driver: cost.of_held_connections(labs[driver]) for driver in DRIVERS}
    tables = [times(labs, COUNTS)]
    if request.config.getoption("--long"):
        for host in (host for lab in labs.values() for host in lab.hosts.values()):
            traffic.start_port_mapper(host)
        tables.append(times(labs, (MANY,)))
    for table in tables:
        for driver in DRIVERS:
            found[driver].update(table[driver])
    theirs, ours = (found[driver] for driver in DRIVERS)
    cost.write_table("cm-cost", kernel, theirs, ours)
    for what in cost.MEMORY:
        assert ours[what] <= theirs[what], (
            f"{what}: expected at most the in-tree driver's {theirs[what]:.2f}, got {ours[what]:.2f}")
