# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NVMe over RDMA: a kernel consumer at both ends, with fast registration, remote invalidation,
shared completion queues and drains.
"""
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
ROUNDS = 3


@pytest.mark.not_debug     # nvmet takes a lock of its own and one of rdma_cm in two orders
@pytest.mark.parametrize("target", ["irdma", pytest.param("intree", marks=pytest.mark.ci_kernel("6.12"))])
def test_nvme(labs, target):
    """C23, C25: connects, transfers, disconnects, the last time while busy; no warning about work queues."""
    lab = labs.get({"A": "irdma", "B": target})
    lab["A"].run("modprobe -a nvme-rdma nvmet-rdma").check()
    for host in lab.hosts.values():
        for name in ("nvmet.sh", "nvme_client.py"):
            host.put(HERE / name, f"/tmp/{name}")
    lab["B"].run(f"sh /tmp/nvmet.sh {lab['B'].ip4}").check()
    try:
        done = lab["A"].run(f"python3 /tmp/nvme_client.py {lab['B'].ip4} {ROUNDS}", timeout=120)
        done.check()
        assert len(done.out.splitlines()) == ROUNDS + 1
    finally:
        lab["B"].run("cd /sys/kernel/config/nvmet && rm ports/1/subsystems/test && "
                     "rmdir ports/1 subsystems/test/namespaces/1 subsystems/test").check()
        lab["B"].run("modprobe -r nvmet_rdma").check()
        lab["A"].run("modprobe -r nvme_rdma").check()
