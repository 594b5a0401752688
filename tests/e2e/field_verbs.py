# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in a guest: verbs by remote control, on objects that have names.

Each line of the input is a JSON list, the name of a method of Verbs and its arguments; the
answer is a line {"ok": RESULT} or {"errno": N, "why": TEXT}.  QPs are made apart from the
connection (rdma_cm connects them by number), so that the test decides what happens when.
"""
import ctypes
import errno
import fcntl
import json
import mmap
import os
import signal
import struct
import sys
import time

import pyverbs.enums as e
import pyverbs.librdmacm_enums as ce
from pyverbs.cmid import CMID, AddrInfo, CMEvent, CMEventChannel, ConnParam
from pyverbs.cq import CQ
from pyverbs.device import Context
from pyverbs.mr import MR, MW, DmaBufMR, MWBind, MWBindInfo
from pyverbs.pd import PD
from pyverbs.pyverbs_error import PyverbsRDMAError
from pyverbs.qp import QP, QPAttr, QPCap, QPInitAttr
from pyverbs.wr import SGE, RecvWR, SendWR

TIMEOUT_S = 20
LIBC = ctypes.CDLL(None, use_errno=True)
LIBC.mmap.restype = ctypes.c_void_p
LIBC.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long]
MAP_FIXED, MAP_NORESERVE = 0x10, 0x4000

OPCODES = {"send": e.IBV_WR_SEND, "write": e.IBV_WR_RDMA_WRITE, "read": e.IBV_WR_RDMA_READ,
           "local_inv": e.IBV_WR_LOCAL_INV, "send_inv": e.IBV_WR_SEND_WITH_INV,
           "atomic": e.IBV_WR_ATOMIC_FETCH_AND_ADD}

# ioctls of linux/udmabuf.h, linux/dma-heap.h and drm/drm.h
UDMABUF_CREATE = 0x40187542
DMA_HEAP_IOCTL_ALLOC = 0xc0184800
DRM_IOCTL_MODE_CREATE_DUMB = 0xc02064b2
DRM_IOCTL_PRIME_HANDLE_TO_FD = 0xc00c642d


def udmabuf(size):
    memfd = os.memfd_create("dma-buf", os.MFD_ALLOW_SEALING)
    os.ftruncate(memfd, size)
    fcntl.fcntl(memfd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK)
    with open("/dev/udmabuf", "rb", buffering=0) as dev:
        # a mutable argument, or the result would not be returned
        return fcntl.ioctl(dev, UDMABUF_CREATE, bytearray(struct.pack("=IIQQ", memfd, os.O_CLOEXEC, 0, size)))


def dma_heap(size):
    with open("/dev/dma_heap/system", "rb", buffering=0) as dev:
        answer = fcntl.ioctl(dev, DMA_HEAP_IOCTL_ALLOC, struct.pack("=QIIQ", size, 0, os.O_RDWR | os.O_CLOEXEC, 0))
    return struct.unpack("=QIIQ", answer)[1]


def vgem(size):
    with open("/dev/dri/card0", "r+b", buffering=0) as dev:
        answer = fcntl.ioctl(dev, DRM_IOCTL_MODE_CREATE_DUMB,
                             struct.pack("=IIIIIIQ", size // mmap.PAGESIZE, mmap.PAGESIZE, 8, 0, 0, 0, 0))
        handle = struct.unpack("=IIIIIIQ", answer)[4]
        answer = fcntl.ioctl(dev, DRM_IOCTL_PRIME_HANDLE_TO_FD,
                             struct.pack("=IIi", handle, os.O_RDWR | os.O_CLOEXEC, 0))
    return struct.unpack("=IIi", answer)[2]


EXPORTERS = {"udmabuf": udmabuf, "dma_heap": dma_heap, "vgem": vgem}


def map_at(addr, length, flags, fd):
    got = LIBC.mmap(addr, length, mmap.PROT_READ | mmap.PROT_WRITE, flags, fd, 0)
    if got == ctypes.c_void_p(-1).value:
        raise OSError(ctypes.get_errno(), "mmap")
    return got


class Verbs:
    def __init__(self):
        self.clear()

    def clear(self):
        self.ids, self.ctx, self.pd, self.qp = [], None, None, None
        self.cqs, self.mrs, self.mws, self.maps = {}, {}, {}, {}
        self.channel = self.cmid = self.event = self.spare = None
        self.other = {"cmid": None, "qp": None, "cqs": {}}

    # connection

    def swap(self):
        """The other of two connections is meant from now on; memory and windows are common to both."""
        now = {name: getattr(self, name) for name in self.other}
        for name, value in self.other.items():
            setattr(self, name, value)
        self.other = now

    def open(self):
        """A device without a connection."""
        self.ctx = Context(name=os.listdir("/sys/class/infiniband")[0])

    def listen(self, address, port):
        self.channel = CMEventChannel()
        info = AddrInfo(src=address, src_service=str(port), port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
        self.ids = [CMID(creator=self.channel)]
        self.ids[0].bind_addr(info)
        self.ids[0].listen(8)
        self.ctx = self.ids[0].context

    def dial(self, address, port):
        """All of connecting that needs no QP."""
        self.channel = self.channel or CMEventChannel()
        info = AddrInfo(dst=address, dst_service=str(port), port_space=ce.RDMA_PS_TCP)
        self.cmid = CMID(creator=self.channel)
        self.ids.append(self.cmid)
        self.cmid.resolve_addr(info)
        self.expect("RDMA_CM_EVENT_ADDR_RESOLVED")
        self.cmid.resolve_route()
        self.expect("RDMA_CM_EVENT_ROUTE_RESOLVED")
        self.ctx = self.cmid.context

    def param(self, resources, depth):
        return ConnParam(resources=resources, depth=depth, qp_num=self.qp.qp_num)

    def connect(self, resources=16, depth=16):
        self.cmid.connect(self.param(resources, depth))

    def request(self):
        self.expect("RDMA_CM_EVENT_CONNECT_REQUEST", keep=True)
        self.cmid = CMID(creator=self.event, listen_id=self.ids[0])
        self.ids.append(self.cmid)
        self.event.ack_cm_event()

    def accept(self, resources=16, depth=16):
        self.cmid.accept(self.param(resources, depth))

    def reject(self):
        self.cmid.reject()

    def disconnect(self):
        self.cmid.disconnect()

    def next_event(self, keep=False):
        self.event = CMEvent(self.channel)
        name = self.event.event_str()
        if not keep:
            self.event.ack_cm_event()
        return name

    def expect(self, want, keep=False):
        got = self.next_event(keep)
        assert got == want, f"expected {want}, got {got}"

    # objects

    def make_qp(self, wrs=64, sges=1, cqe=256, one_cq=False, pd=True):
        if pd:
            self.pd = PD(self.ctx)
        self.cqs["send"] = CQ(self.ctx, cqe)
        self.cqs["recv"] = self.cqs["send"] if one_cq else CQ(self.ctx, cqe)
        attr = QPInitAttr(qp_type=e.IBV_QPT_RC, scq=self.cqs["send"], rcq=self.cqs["recv"],
                          cap=QPCap(wrs, wrs, sges, sges, 0))
        self.qp = QP(self.pd, attr)
        granted = self.qp.query(e.IBV_QP_CAP)[1].cap
        return {"qpn": self.qp.qp_num, "sends": granted.max_send_wr, "recvs": granted.max_recv_wr}

    def make_pd(self):
        self.pd = PD(self.ctx)

    def close_qp(self):
        self.qp.close()
        self.qp = None

    def limits(self):
        a = self.ctx.query_device()
        return {name: getattr(a, name) for name in ("max_qp_wr", "max_sge", "max_cqe", "max_qp_rd_atom",
                                                    "max_qp_init_rd_atom")}

    def make_cq(self, cqe):
        CQ(self.ctx, cqe).close()

    def resize(self, cq, cqe):
        self.cqs[cq].resize(cqe)
        return self.cqs[cq].cqe

    def modify(self, state):
        attr = QPAttr()
        attr.qp_state = state
        self.qp.modify(attr, e.IBV_QP_STATE)

    def state(self):
        """State and current state."""
        attr = self.qp.query(e.IBV_QP_STATE | e.IBV_QP_CUR_STATE)[0]
        return [attr.qp_state, attr.cur_qp_state]

    def depths(self):
        attr = self.qp.query(e.IBV_QP_MAX_QP_RD_ATOMIC | e.IBV_QP_MAX_DEST_RD_ATOMIC)[0]
        return {"ord": attr.max_rd_atomic, "ird": attr.max_dest_rd_atomic}

    def domain(self, spare):
        if spare and not self.spare:
            self.spare = PD(self.ctx)
        return self.spare if spare else self.pd

    def reg(self, name, length, access, spare_pd=False):
        mr = self.mrs[name] = MR(self.domain(spare_pd), length, access)
        return {"addr": mr.buf, "rkey": mr.rkey}

    def reg_large(self, name, length, access, piece):
        """A region of `length` bytes in which a file of `piece` bytes repeats."""
        fd = os.memfd_create(name)
        os.ftruncate(fd, piece)
        area = map_at(None, length + mmap.PAGESIZE, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE, -1)
        for off in range(0, length, piece):
            map_at(area + off, min(piece, length - off), mmap.MAP_SHARED | MAP_FIXED, fd)
        self.maps[name] = mmap.mmap(fd, piece)
        os.close(fd)
        mr = self.mrs[name] = MR(self.pd, length, access, address=area)
        return {"addr": area, "rkey": mr.rkey}

    def reg_dmabuf(self, name, exporter, size, access, offset=0):
        """The part of a new dma-buf from `offset` on; its descriptor is closed at once."""
        fd = EXPORTERS[exporter](size)
        self.maps[name] = mmap.mmap(fd, size)
        mr = self.mrs[name] = DmaBufMR(self.pd, size - offset, access, dmabuf=fd, offset=offset)
        os.close(fd)
        return {"addr": offset, "rkey": mr.rkey}    # addressed by the offset in the buffer

    def exporters(self):
        paths = {"udmabuf": "/dev/udmabuf", "dma_heap": "/dev/dma_heap/system", "vgem": "/dev/dri/card0"}
        return [name for name, path in paths.items() if os.path.exists(path)]

    def rereg(self, name, flags, length=0, access=0, addr=None, pd=None):
        """pd: "own", which is the QP's, or "spare"."""
        self.mrs[name].rereg(flags, pd and self.domain(pd == "spare"),
                             self.mrs[name].buf if addr is None else addr, length, access)

    def dereg(self, name):
        self.mrs[name].close()
        del self.mrs[name]

    def fill(self, name, text, offset=0):
        if name in self.maps:
            self.maps[name][offset:offset + len(text)] = text.encode()
        else:
            self.mrs[name].write(text, len(text), offset)

    def peek(self, name, length, offset=0):
        if name in self.maps:
            return self.maps[name][offset:offset + length].decode("latin-1")
        return self.mrs[name].read(length, offset).decode("latin-1")

    def alloc_mw(self, name, kind=1):
        self.mws[name] = MW(self.pd, e.IBV_MW_TYPE_1 if kind == 1 else e.IBV_MW_TYPE_2)

    def dealloc_mw(self, name):
        self.mws[name].close()
        del self.mws[name]

    def bind(self, mw, mr, offset, length, access):
        info = MWBindInfo(self.mrs[mr], self.mrs[mr].buf + offset, length, access)
        self.qp.bind_mw(self.mws[mw], MWBind(info, e.IBV_SEND_SIGNALED))
        return self.mws[mw].rkey

    def bind_type_2(self, mw, mr, offset, length, access):
        """A work request; the adapter's library puts the new key into the window when it posts."""
        bind = SendWR(opcode=e.IBV_WR_BIND_MW, send_flags=e.IBV_SEND_SIGNALED)
        bind.set_bind_wr(self.mws[mw], MWBindInfo(self.mrs[mr], self.mrs[mr].buf + offset, length, access))
        self.qp.post_send(bind)
        return self.mws[mw].rkey

    # work requests

    def sges(self, wr):
        """pyverbs wants at least one for each work request."""
        found = []
        if "sges" not in wr and "scratch" not in self.mrs:
            self.reg("scratch", 4096, e.IBV_ACCESS_LOCAL_WRITE)
        for name, offset, length in wr.get("sges", [["scratch", 0, 64]]):
            base = 0 if isinstance(self.mrs[name], DmaBufMR) else self.mrs[name].buf
            found.append(SGE(base + offset, length, self.mrs[name].lkey))
        return found

    def send_wr(self, wr):
        sges = self.sges(wr)
        flags = (0 if wr.get("silent") else e.IBV_SEND_SIGNALED) | (e.IBV_SEND_FENCE if wr.get("fence") else 0)
        made = SendWR(wr_id=wr.get("id", 0), opcode=OPCODES[wr["op"]], num_sge=len(sges), sg=sges, send_flags=flags)
        if "rkey" in wr and wr["op"] in ("write", "read"):
            made.set_wr_rdma(wr["rkey"], wr["addr"])
        elif wr["op"] in ("local_inv", "send_inv"):
            made.imm_data = wr["rkey"]      # one union with the key
        return made

    def post(self, wrs):
        """Post a chain; returns the id of the first that was refused and the errno, or nothing."""
        return self.post_chain([self.send_wr(wr) for wr in wrs], self.qp.post_send, SendWR(num_sge=1, sg=[SGE(0, 0, 0)]))

    def recv(self, wrs):
        made = []
        for wr in wrs:
            sges = self.sges(wr)
            made.append(RecvWR(wr_id=wr.get("id", 0), num_sge=len(sges), sg=sges))
        return self.post_chain(made, self.qp.post_recv, RecvWR(num_sge=1, sg=[SGE(0, 0, 0)]))

    @staticmethod
    def post_chain(chain, post, bad):
        for wr, following in zip(chain, chain[1:]):
            wr.next_wr = following
        try:
            post(chain[0], bad)
        except PyverbsRDMAError as err:
            return [bad.wr_id, err.error_code]
        return None

    def poll(self, cq, count, seconds=2):
        """Up to `count` completions within the time: id, status, opcode."""
        found, deadline = [], time.monotonic() + seconds
        while len(found) < count and time.monotonic() < deadline:
            _, wcs = self.cqs[cq].poll(min(16, count - len(found)))
            found += [[wc.wr_id, wc.status, wc.opcode] for wc in wcs or ()]
        return found

    def single_posts(self, wr, rounds, pause_ms):
        """Posts with idle gaps between them; returns the longest time until a completion, ms."""
        worst = 0
        for _ in range(rounds):
            time.sleep(pause_ms / 1000)
            start = time.monotonic()
            self.qp.post_send(self.send_wr(wr))
            done = self.poll("send", 1, 5)
            assert done and not done[0][1], f"expected a completion, got {done}"
            worst = max(worst, time.monotonic() - start)
        return worst * 1000

    def close(self):
        """Give everything back, users before what they use."""
        for thing in [self.qp, self.other["qp"], *self.mws.values(), *self.mrs.values(), *self.cqs.values(),
                      *self.other["cqs"].values(), self.spare, self.pd, *reversed(self.ids)]:
            if thing is not None:
                thing.close()
        if self.channel:
            self.channel.close()
        elif self.ctx:
            self.ctx.close()
        self.clear()


def answer(verbs, line):
    name, *args = json.loads(line)
    options = args.pop() if args and isinstance(args[-1], dict) else {}
    signal.alarm(TIMEOUT_S + int(options.pop("patience", 0)))
    try:
        return {"ok": getattr(verbs, name)(*args, **options)}
    except PyverbsRDMAError as err:
        return {"errno": err.error_code, "why": str(err)}
    except OSError as err:
        return {"errno": err.errno, "why": str(err)}
    except AssertionError as err:
        return {"errno": errno.EPROTO, "why": str(err)}
    finally:
        signal.alarm(0)


def main():
    verbs = Verbs()
    print(json.dumps({"ok": "ready"}), flush=True)
    while line := sys.stdin.readline():
        print(json.dumps(answer(verbs, line)), flush=True)


main()
