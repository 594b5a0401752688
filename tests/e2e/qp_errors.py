# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in two guests: connects a QP, breaks a rule, and says what became of it.

usage: qp_errors.py listen|connect ADDRESS CASE

The connecting side breaks the rule that CASE names, see break_rule().  Each side prints one
line of JSON: the statuses of its send and receive completions in order, and the state of the
QP at the end.
"""
import json
import signal
import struct
import sys

import pyverbs.enums as e
import pyverbs.librdmacm_enums as ce
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.qp import QPCap, QPInitAttr

SIZE = 4096
RECVS = 4
PORT = "7471"
TIMEOUT_S = 20


def break_rule(case, cmid, mr, addr, rkey):
    signaled = e.IBV_SEND_SIGNALED
    if case == "write-key":
        cmid.post_write(mr, 64, addr, rkey ^ 0x5500, signaled)
    elif case == "read-key":
        cmid.post_read(mr, 64, addr, rkey ^ 0x5500, signaled)
    elif case == "write-bounds":
        cmid.post_write(mr, 64, addr + SIZE - 32, rkey, signaled)
    elif case == "local-bounds":
        cmid.post_write(mr, 2 * SIZE, addr, rkey, signaled)
    elif case == "send-long":
        cmid.post_send(mr, signaled, SIZE)
    else:
        sys.exit(f"unknown case '{case}'")


def main():
    role, address, case = sys.argv[1:]
    signal.alarm(TIMEOUT_S)
    attr = QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(16, 16, 1, 1, 0))
    if role == "listen":
        info = AddrInfo(src=address, src_service=PORT, port_space=ce.RDMA_PS_TCP,
                        flags=ce.RAI_PASSIVE)
        listener = CMID(creator=info, qp_init_attr=attr)
        listener.listen()
        print("listening", flush=True)
        cmid = listener.get_request()
    else:
        info = AddrInfo(dst=address, dst_service=PORT, port_space=ce.RDMA_PS_TCP, flags=0)
        cmid = CMID(creator=info, qp_init_attr=attr)
    mr = cmid.reg_write(SIZE)
    small = cmid.reg_msgs(SIZE)
    for _ in range(RECVS):
        cmid.post_recv(small, length=256)

    sends, recvs = [], []
    if role == "listen":
        cmid.accept()
        small.write(struct.pack("<QQ", mr.buf, mr.rkey), 16)
        cmid.post_send(small, e.IBV_SEND_SIGNALED, 16)
        sends.append(cmid.get_send_comp().status)
    else:
        cmid.connect()
        recvs.append(cmid.get_recv_comp().status)
        addr, rkey = struct.unpack("<QQ", small.read(16, 0))
        break_rule(case, cmid, mr, addr, rkey)
        sends.append(cmid.get_send_comp().status)
    while len(recvs) < RECVS:
        recvs.append(cmid.get_recv_comp().status)
    state = cmid.query_qp(e.IBV_QP_STATE)[0].qp_state
    print(json.dumps({"sends": sends, "recvs": recvs, "state": state}), flush=True)


main()
