# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What becomes of each asynchronous event: completions, state, terminate message (C26, C55).

The table is that of the hardware specification, 01, section 5.5: layer and type, error code
(without the offending frame, since the events come out of nowhere), and the flush code of the
receive queue when that is the source.
"""
import json
import re
from pathlib import Path

import pytest

import traffic
from guest.lab import tshark

pytestmark = pytest.mark.ci_kernel("6.12")

HERE = Path(__file__).resolve().parent
PORT = 7471
SRC_RQ = 1
RTS, ERR = 3, 6
SUCCESS, LOC_LEN, LOC_QP_OP, FLUSHED, MW_BIND, REM_ACCESS, REM_OP, FATAL = 0, 1, 2, 5, 6, 10, 11, 19
NO_TERM = None

EVENTS = {
    0x0102: (0x01, 0x00, REM_ACCESS), 0x0103: (0x01, 0x00, REM_ACCESS), 0x0104: (0x12, 0x01, LOC_QP_OP),
    0x0105: (0x01, 0x03, REM_ACCESS), 0x0106: (0x02, 0x00, REM_ACCESS), 0x0107: (0x02, 0x00, REM_ACCESS),
    0x0108: (0x01, 0x01, REM_ACCESS), 0x0109: (0x01, 0x02, REM_ACCESS), 0x010a: (0x01, 0x04, REM_ACCESS),
    0x010c: (0x02, 0xff, FATAL), 0x010d: (0x02, 0xff, FATAL), 0x010e: (0x02, 0xff, FATAL),
    0x0110: (0x02, 0xff, FATAL), 0x0111: (0x02, 0xff, FATAL), 0x0112: (0x01, 0x02, REM_ACCESS),
    0x0113: (0x02, 0xff, FATAL), 0x0114: (0x02, 0xff, MW_BIND), 0x0115: (0x02, 0xff, MW_BIND),
    0x0116: (0x02, 0xff, MW_BIND), 0x0117: (0x02, 0xff, MW_BIND), 0x0118: (0x02, 0xff, MW_BIND),
    0x0119: (0x02, 0xff, MW_BIND), 0x011a: (0x02, 0xff, MW_BIND), 0x011b: (0x02, 0xff, MW_BIND),
    0x011c: (0x01, 0x02, REM_ACCESS), 0x0205: (0x02, 0xff, FATAL), 0x0206: (0x02, 0xff, FATAL),
    0x0207: (0x02, 0xff, FATAL), 0x020a: (0x02, 0xff, FATAL), 0x020b: (0x02, 0xff, FATAL),
    0x020c: (0x02, 0xff, FATAL), 0x0223: (0x02, 0xff, FATAL), 0x0301: (0x12, 0x03, FLUSHED),
    0x0303: (0x12, 0x05, LOC_LEN), 0x0304: (0x12, 0x06, FLUSHED), 0x0305: (0x12, 0x04, FLUSHED),
    0x0306: (0x12, 0x02, REM_OP), 0x0307: (0x12, 0x01, FLUSHED), 0x0308: (0x10, 0x00, FATAL),
    0x0311: (0x02, 0x05, FLUSHED), 0x0312: (0x02, 0xff, FATAL), 0x0313: (0x02, 0xff, FATAL),
    0x0314: (0x02, 0xff, FATAL), 0x0401: (0x02, 0xff, FATAL), 0x0402: (0x02, 0xff, FATAL),
    0x0504: (0x02, 0xff, FATAL), 0x0505: (0x23, 0x02, FLUSHED), 0x0507: (0x10, 0x00, LOC_LEN),
    0x050a: (0x02, 0xff, FATAL), 0x050b: (0x02, 0xff, FATAL), 0x0700: (0x10, 0x00, FATAL),
    # no terminate: the connection is closed or reset, or has ended
    0x0201: (NO_TERM, 0, FLUSHED), 0x0501: (NO_TERM, 0, FLUSHED), 0x0502: (NO_TERM, 0, FLUSHED),
    0x0601: (NO_TERM, 0, FLUSHED),
}
# the connection lives on
IGNORED = (0x050c, 0x0520, 0x0603)


def terminates(lab, source):
    """(layer and type, error code) of each terminate message that an address sent."""
    pcap = next(path for path in lab.pcaps() if path.name == "A.pcap")
    fields = ["term_layer", "term_etype_rdma", "term_etype_ddp", "term_etype_llp", "term_etype",
              "term_errcode_rdma", "term_errcode_ddp_tagged", "term_errcode_ddp_untagged", "term_errcode_llp",
              "term_errcode"]
    argv = ["-Y", f"iwarp_rdma.terminate && ip.src == {source}", "-T", "fields", "-E", "separator=;"]
    for field in fields:
        argv += ["-e", f"iwarp_rdma.{field}"]
    found = []
    for line in tshark(pcap, *argv):
        layer, *rest = [int(v, 0) if v else None for v in line.split(";")]
        etype = next(v for v in rest[:4] if v is not None)
        found.append((layer << 4 | etype, next(v for v in rest[4:] if v is not None)))
    return found


class Victim:
    """The connecting program; each event gets a connection of its own."""

    def __init__(self, host, peer):
        self.host = host
        self.command = host.popen(f"python3 /tmp/ae_victim.py connect {peer.ip4} {PORT}")
        self.lines = 0

    def line(self):
        self.lines += 1
        self.command.wait_output(re.compile(rf"\A(?:.*\n){{{self.lines}}}"), timeout=30)
        assert self.command.poll() is None, f"ae_victim.py ended: {self.command.err[-300:]}"
        return self.command.out.splitlines()[self.lines - 1]

    def suffer(self, code, then):
        """Raise the event on a new connection; returns [statuses, state of the QP]."""
        self.command.write(b"connect\n")
        qp = self.line().split()[1]
        self.host.fault("ae", "raise", hex(code), "qp", qp, "src", str(SRC_RQ))
        self.command.write(f"{then}\n".encode())
        return json.loads(self.line())


@pytest.fixture
def victim(labs):
    lab = labs.get("irdma")
    for host in lab.hosts.values():
        host.put(HERE / "ae_victim.py", "/tmp/ae_victim.py")
    server = lab["B"].popen(f"python3 /tmp/ae_victim.py listen {lab['B'].ip4} {PORT}")
    traffic.wait_listening(lab["B"], PORT, server)
    victim = Victim(lab["A"], lab["B"])
    victim.lab = lab
    yield victim
    for command in (victim.command, server):
        traffic.end(command)


def test_every_event(victim):
    """C55, C26: statuses of the receives, state of the QP and terminate message, by the table."""
    wrong = []
    before = len(terminates(victim.lab, victim.host.ip4))
    for code, (_, _, status) in EVENTS.items():
        got = victim.suffer(code, "flush")
        want = [[status, FLUSHED], ERR]
        if got != want:
            wrong.append(f"event {code:#06x}: expected {want}, got {got}")
    sent = terminates(victim.lab, victim.host.ip4)[before:]
    expected = [(layer, code) for layer, code, _ in EVENTS.values() if layer is not NO_TERM]
    wrong += [f"terminate of event {event:#06x}: expected {want}, got {got}"
              for event, want, got in zip(EVENTS, expected, sent) if want != got]
    assert len(sent) == len(expected), f"expected {len(expected)} terminate messages, got {len(sent)}; {wrong[:4]}"
    assert not wrong, "; ".join(wrong[:6])


@pytest.mark.parametrize("code", IGNORED, ids=hex)
def test_ignored(victim, code):
    """C55: events that are no errors."""
    got = victim.suffer(code, "send")
    assert got == [[SUCCESS], RTS], f"event {code:#06x}: expected the connection to live on, got {got}"
