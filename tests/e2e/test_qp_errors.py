# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A QP that breaks a rule (C55): both sides learn of it, everything posted completes, in error.

The statuses are those of the stock driver on the same adapter; a write completes when TCP has
delivered it, before it is refused.  The state at the end is not: the stock driver goes on
telling RTS (3), C26 of the field cases.
"""
import json
from pathlib import Path

import pytest

import traffic

pytestmark = pytest.mark.ci_kernel("6.12")

SUCCESS, LOC_LEN_ERR, WR_FLUSH_ERR, REM_ACCESS_ERR = 0, 1, 5, 10
ERR = 6
PROGRAM = Path(__file__).resolve().parent / "qp_errors.py"

# case: statuses of the breaker's send and of the other side's first receive
CASES = {
    "write-key": (SUCCESS, WR_FLUSH_ERR),
    "read-key": (WR_FLUSH_ERR, WR_FLUSH_ERR),
    "write-bounds": (SUCCESS, WR_FLUSH_ERR),
    "local-bounds": (REM_ACCESS_ERR, WR_FLUSH_ERR),
    "send-long": (SUCCESS, LOC_LEN_ERR),
}


@pytest.mark.parametrize("case", CASES)
def test_rule_broken(labs, case):
    lab = labs.get("irdma")
    for host in lab.hosts.values():
        host.put(PROGRAM, "/tmp/qp_errors.py")
    done = traffic.pair(lab["B"], f"python3 /tmp/qp_errors.py listen {lab['B'].ip4} {case}",
                        lab["A"], f"python3 /tmp/qp_errors.py connect {lab['B'].ip4} {case}", 7471)
    theirs, ours = (json.loads(side.out.splitlines()[-1]) for side in done)
    send, recv = CASES[case]
    assert ours == {"sends": [send], "recvs": [SUCCESS] + [WR_FLUSH_ERR] * 3, "state": ERR}
    assert theirs == {"sends": [SUCCESS], "recvs": [recv] + [WR_FLUSH_ERR] * 3, "state": ERR}
