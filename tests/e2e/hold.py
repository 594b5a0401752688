# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in a guest: makes connections and holds them until its standard input ends.

usage: hold.py listen|connect ADDRESS PORT COUNT

Each side prints "held" when all its connections are established, and the connecting one, which makes
them one after the other, how many microseconds its connect() took, the median.
"""
import statistics
import sys
import time

import pyverbs.librdmacm_enums as ce
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.qp import QPCap, QPInitAttr
import pyverbs.enums as e


def main():
    role, address, port, count = sys.argv[1:]
    count = int(count)
    attr = QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(8, 8, 1, 1, 0))
    held, took = [], []
    if role == "listen":
        info = AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
        listener = CMID(creator=info, qp_init_attr=attr)
        listener.listen(count)
        while len(held) < count:
            cmid = listener.get_request()
            cmid.accept()
            held.append(cmid)
    else:
        for _ in range(count):
            info = AddrInfo(dst=address, dst_service=port, port_space=ce.RDMA_PS_TCP, flags=0)
            cmid = CMID(creator=info, qp_init_attr=attr)
            start = time.perf_counter()
            cmid.connect()
            took.append((time.perf_counter() - start) * 1e6)
            held.append(cmid)
    print(f"held {statistics.median(took or [0]):.0f}", flush=True)
    sys.stdin.read()


main()
