# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Partial FPDUs: something between the hosts cuts segments, as RFC 5044 (section 5) says a middlebox may."""
import pytest

import traffic

pytestmark = pytest.mark.ci_kernel("6.12")
BOTH_ROLES = (("B", "A", False), ("A", "B", True))     # server, client, IPv6


@pytest.fixture(scope="module", autouse=True)
def captures(module_labs):
    """tshark does not put cut FPDUs together, and takes repeated ones that are cut elsewhere for an error."""
    module_labs.capture_filter = "!iwarp_mpa.fpdu && !tcp.analysis.flags"


@pytest.fixture
def ours(labs):
    return labs.get({"A": "irdma", "B": "irdma"})


def counted(lab, what):
    """A counter of each host's adapter."""
    return {host.name: host.nic.counters()[what] for host in lab.hosts.values()}


def ping_with_cut_segments(lab, rule):
    """rping while something between the hosts cuts segments."""
    before = counted(lab, "rdma_exception_segs")
    with lab.wire_fault(f"split rate=300 payload=2 tcp=ack {rule}"):
        for server, client, ip6 in BOTH_ROLES:
            traffic.rping(lab[server], lab[client], 8000, count=50, ip6=ip6)
    after = counted(lab, "rdma_exception_segs")
    assert all(after[h] > before[h] for h in after), f"expected partial FPDUs on both hosts, got {before} to {after}"


@pytest.mark.parametrize("cut", ["", "offset=1"], ids=["anywhere", "length"])
def test_cut_segments(ours, cut):
    """At any place, and within the MPA length: the exception queue puts the FPDUs together again."""
    ping_with_cut_segments(ours, cut)


def test_cut_segments_with_stock_peer(labs):
    """Not within the MPA length, of which the in-tree driver makes an MPA CRC error."""
    ping_with_cut_segments(labs.get({"A": "irdma", "B": "intree"}), "offset=7")


def test_shredded_segments(ours):
    """An FPDU in more segments than a stream may keep buffers."""
    ping_with_cut_segments(ours, "every=16 rate=50")


def test_late_arm(ours):
    """The adapter looks late at requests for an event, of which a queue has one under way at most.

    Of four more it sees none, since they are told apart by two bits, and the queue stands still.
    """
    before = counted(ours, "rdma_arms_unseen")
    with (traffic.late_events("arm", 20, *ours.hosts.values()),
          ours.wire_fault("split rate=1000 payload=1000 tcp=ack")):
        traffic.rping(ours["B"], ours["A"], 60000, count=20)
    after = counted(ours, "rdma_arms_unseen")
    assert after == before, f"expected no request before the last one was seen, got {before} to {after}"


def test_cut_and_lost_segments(ours):
    ours.wire("fault", "add", "drop", "rate=10", "tcp=ack", "payload=2")
    ping_with_cut_segments(ours, "")


def test_cut_and_corrupted_segments(ours):
    """The exception queue finds the wrong CRC, and the connection ends with a terminate message."""
    a, b = ours["A"], ours["B"]
    with ours.wire_fault("split rate=1000 payload=1000"), traffic.endless_rping(b, a, 8000) as commands:
        ours.wire("fault", "add", "corrupt", "nth=1", "payload=1000", "offset=400", "checksum=fix")
        traffic.is_told(*commands)
    assert any("FPDU at sequence number" in s for host in (a, b) for s in host.dmesg()), "expected a complaint"
    traffic.rping(b, a)


def test_killed_with_partial_fpdus(ours):
    """A QP goes while the exception queue holds segments of it."""
    with ours.wire_fault("split rate=1000 payload=1000"):
        with traffic.endless_rping(ours["B"], ours["A"], 60000) as (server, client):
            traffic.end(client)
            traffic.is_told(server)
    traffic.rping(ours["B"], ours["A"])
