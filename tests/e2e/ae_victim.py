# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Runs in two guests: connections to which asynchronous events happen.

usage: ae_victim.py listen|connect ADDRESS PORT

The listening side accepts for ever.  For each line on its input the connecting side makes a
connection, posts two receives and prints "qp NUMBER"; the next line says what to wait for:
"flush": both receives; "send": a message sent and received by nobody's fault.  Then it prints
JSON: the statuses seen and the QP's state.
"""
import json
import signal
import sys

import pyverbs.enums as e
import pyverbs.librdmacm_enums as ce
from pyverbs.cmid import CMID, AddrInfo
from pyverbs.qp import QPCap, QPInitAttr

SIZE = 256
TIMEOUT_S = 20


def attributes():
    """New ones for each id: librdmacm notes the completion queues that it makes in them."""
    return QPInitAttr(qp_type=e.IBV_QPT_RC, cap=QPCap(8, 8, 1, 1, 0))


def listen(address, port, attr):
    info = AddrInfo(src=address, src_service=port, port_space=ce.RDMA_PS_TCP, flags=ce.RAI_PASSIVE)
    listener = CMID(creator=info, qp_init_attr=attr)
    listener.listen(16)
    held = []
    while True:
        cmid = listener.get_request()
        buffer = cmid.reg_msgs(SIZE)
        for _ in range(2):
            cmid.post_recv(buffer)
        cmid.accept()
        held.append((cmid, buffer))


def main():
    role, address, port = sys.argv[1:]
    if role == "listen":
        listen(address, port, attributes())
    held = []
    while sys.stdin.readline():
        signal.alarm(TIMEOUT_S)
        attr = attributes()
        info = AddrInfo(dst=address, dst_service=port, port_space=ce.RDMA_PS_TCP, flags=0)
        cmid = CMID(creator=info, qp_init_attr=attr)
        buffer = cmid.reg_msgs(SIZE)
        for _ in range(2):
            cmid.post_recv(buffer)
        cmid.connect()
        print("qp", cmid.qpn, flush=True)
        if sys.stdin.readline().strip() == "send":
            cmid.post_send(buffer, e.IBV_SEND_SIGNALED)
            seen = [cmid.get_send_comp().status]
        else:
            seen = [cmid.get_recv_comp().status for _ in range(2)]
        print(json.dumps([seen, cmid.query_qp(e.IBV_QP_STATE)[0].qp_state]), flush=True)
        signal.alarm(0)
        held.append((cmid, buffer))


main()
