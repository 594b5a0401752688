# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""NFS over RDMA: the kernel's client and server, data compared, a connection cut while busy."""
from pathlib import Path

import pytest

from conftest import IN_TREE_LEAKS

pytestmark = [pytest.mark.ci_kernel("7.3"), pytest.mark.not_debug]

HERE = Path(__file__).resolve().parent
MIB = 16
MOUNT_TIMEOUT_S = 60


@pytest.fixture(params=["irdma", pytest.param("intree", marks=pytest.mark.long)])
def mounted(labs, request):
    """(client, server, directory); the server is ours or the in-tree driver's."""
    lab = labs.get({"A": "irdma", "B": request.param})
    client, server = lab["A"], lab["B"]
    if server.driver == "intree":
        server.known_leaks = IN_TREE_LEAKS
    server.put(HERE / "nfsd.sh", "/tmp/nfsd.sh")
    server.run("sh /tmp/nfsd.sh start", timeout=MOUNT_TIMEOUT_S).check()
    try:
        client.run(f"mount -t nfs4 -o rdma,port=20049,vers=4.2 {server.ip4}:/ /mnt", timeout=MOUNT_TIMEOUT_S).check()
        yield client, server, "/mnt"
    finally:
        client.run("umount /mnt", timeout=MOUNT_TIMEOUT_S)
        server.run("sh /tmp/nfsd.sh stop", timeout=MOUNT_TIMEOUT_S)


def test_data(mounted):
    """What was written is what is there, and what is read back past the client's cache."""
    client, server, where = mounted
    client.run(f"head -c {MIB}M /dev/urandom > /tmp/data && cp /tmp/data {where}/data && sync {where}/data").check()
    here, there = (host.run(f"sha256sum < {path}").check().out
                   for host, path in ((client, "/tmp/data"), (server, "/srv/data")))
    assert there == here, "expected the server to hold what the client wrote"
    client.run("echo 3 > /proc/sys/vm/drop_caches").check()
    back = client.run(f"sha256sum < {where}/data").check().out
    assert back == here, "expected to read back what was written"
    assert "proto=rdma" in client.run("cat /proc/mounts").out, "expected the mount to use RDMA"
