# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in a guest: creates and destroys verbs objects and says how long that took.

usage: verbs_cost.py DEVICE KIND COUNT

KIND: cq, qp, or mr:BYTES[:PAGE] (PAGE 4K or 2M).  Prints one line of JSON: the least
microseconds of a create and of a destroy.  Memory larger than the guest's is a small file
that is mapped again and again.
"""
import ctypes
import json
import mmap
import os
import sys
import time

from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.enums import IBV_ACCESS_LOCAL_WRITE, IBV_ACCESS_REMOTE_WRITE, IBV_QPT_RC
from pyverbs.mr import MR
from pyverbs.pd import PD
from pyverbs.qp import QP, QPCap, QPInitAttr

PAGES = {"4K": 4096, "2M": 2 << 20}
FILE_BYTES = 64 << 20
MAP_FIXED = 0x10
MAP_NORESERVE = 0x4000
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int,
                      ctypes.c_int, ctypes.c_long]


def checked_mmap(addr, length, flags, fd):
    got = LIBC.mmap(addr, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if got == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return got


def memory(length, page):
    """Map `length` bytes of which at most FILE_BYTES are real; returns the address."""
    huge = page != 4096
    fd = os.memfd_create("mr", os.MFD_HUGETLB if huge else 0)
    size = max(page, min(FILE_BYTES, length))
    os.ftruncate(fd, size)
    if huge:
        with open("/proc/sys/vm/nr_hugepages", "w", encoding="ascii") as f:
            f.write(str(FILE_BYTES // page + 4))
    area = checked_mmap(None, length + page, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS |
                        MAP_NORESERVE, -1)
    start = (area + page - 1) // page * page
    for off in range(0, length, size):
        checked_mmap(start + off, min(size, length - off), mmap.MAP_SHARED | MAP_FIXED, fd)
    return start


def factory(ctx, kind):
    """Return a function that creates one object of `kind`."""
    pd = PD(ctx)
    if kind == "cq":
        return lambda: CQ(ctx, 255)
    if kind == "qp":
        cq = CQ(ctx, 255)
        init = QPInitAttr(qp_type=IBV_QPT_RC, scq=cq, rcq=cq, cap=QPCap(64, 64, 2, 2, 0))
        return lambda: QP(pd, init)
    _, length, *page = kind.split(":")
    length = int(length)
    addr = memory(length, PAGES[page[0] if page else "4K"])
    access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE
    return lambda: MR(pd, length, access, address=addr)


def main():
    device, kind, count = sys.argv[1:]
    create = factory(Context(name=device), kind)
    created, destroyed = [], []
    for _ in range(int(count)):
        t0 = time.perf_counter_ns()
        obj = create()
        t1 = time.perf_counter_ns()
        obj.close()
        t2 = time.perf_counter_ns()
        created.append(t1 - t0)
        destroyed.append(t2 - t1)
    print(json.dumps({"create_us": min(created) / 1e3, "destroy_us": min(destroyed) / 1e3}))


main()
