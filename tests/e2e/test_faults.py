# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What the wire and the adapter may do while connections are made and live."""
import time

import pytest

import traffic
from conftest import check_clean_unload, refusals
from guest.lab import tshark
from test_field_verbs import LOCAL_WRITE, Pair

ETH_HLEN = 14

pytestmark = pytest.mark.ci_kernel("6.12")


def rping_both_ways(lab):
    traffic.rping(lab["B"], lab["A"], 4096)
    traffic.rping(lab["A"], lab["B"], 4096, ip6=True)


@pytest.mark.parametrize("rule", ["dup rate=200", "reorder rate=200", "delay rate=200 ms=20"])
def test_wire(labs, rule):
    lab = labs.get("irdma")
    with lab.wire_fault(rule):
        rping_both_ways(lab)


def test_corruption(own_lab):
    """Single bits of TCP segments: checksums find them, and retransmission mends them."""
    lab = own_lab("irdma")
    rping_both_ways(lab)
    lab.wire("fault", "add", "corrupt", "rate=20", "proto=6")
    rping_both_ways(lab)


def test_crc_error(own_lab):
    """A bit that only the CRC of MPA finds ends the connection at both ends, and that one alone."""
    lab = own_lab("irdma")
    a, b = lab["A"], lab["B"]
    with traffic.endless_rping(b, a, 4096) as (server, client):
        lab.wire("fault", "add", "corrupt", "nth=1", "from=A", "payload=1000", "offset=600", "checksum=fix")
        traffic.is_told(client, server)
    rping_both_ways(lab)


@pytest.mark.parametrize("queue", ["ceq", "aeq", "arm"])
def test_late_events(labs, queue):
    lab = labs.get("irdma")
    with traffic.late_events(queue, 50, lab["A"]):
        rping_both_ways(lab)


def wait_held(host, timeout=10):
    """Wait until the adapter holds the control queue at the command that it was told of."""
    deadline = time.monotonic() + timeout
    while not (status := host.fault("cqp", "status")).startswith("held"):
        assert time.monotonic() < deadline, f"expected a command to be held, got {status!r}"


def test_held_command(labs):
    """The control queue pauses: whoever needs it waits, and goes on."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    server = b.popen(f"rping -s -a {b.ip4} -C 5")
    traffic.wait_listening(b, 7174, server)
    a.fault("cqp", "hold", "1")
    client = a.popen(f"rping -c -a {b.ip4} -C 5")
    wait_held(a)
    a.fault("cqp", "release")
    for end in (client, server):
        end.wait(20).check()


INVALID_STATE = "0xffff8002"


def fail_next(host, command, number=1):
    """The adapter refuses a control command, the number-th of its kind from now on."""
    host.fault("cqp", "fail", str(number), command, INVALID_STATE)


def wait_refused(host, timeout=10):
    """Wait until the commands of fail_next() were there."""
    deadline = time.monotonic() + timeout
    while "fail" in (status := host.fault("cqp", "status")):
        assert time.monotonic() < deadline, f"expected the command to come, the adapter says {status!r}"


def test_port_that_comes_back(labs):
    """A listener is made again while its port is being removed: it is one when the port is back, and none otherwise."""
    lab = labs.get("irdma")
    host, command = lab["B"], f"rping -s -a {lab['B'].ip4} -C 1"
    first = host.popen(command)
    traffic.wait_listening(host, 7174, first)
    host.fault("cqp", "hold", "1", "MANAGE_APBVT")
    fail_next(host, "MANAGE_APBVT", 2)
    traffic.end(first)
    wait_held(host)
    second = host.popen(f"{command} 2>&1")
    host.run("until grep -q irdma_ /proc/$(pgrep -n rping)/wchan; do :; done", timeout=20).check()
    host.fault("cqp", "continue")
    said = second.wait(20).out
    assert "rdma_listen" in said, f"expected the listener to be refused, rping says {said!r}"
    wait_refused(host)
    rping_both_ways(lab)


def test_warnings_of_the_engine(labs):
    """An HMC error, and the one critical error that is none: they are told, and nothing ends."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    faults = {"hmc error 5 7": "HMC error: info 0x00000005 data 0x00000007",
              "critical 0x1024d": "critical error 0x0001024d"}
    with traffic.endless_rping(b, a, 1000) as (_, client):
        for fault, message in faults.items():
            seen = len(a.dmesg())
            a.fault(*fault.split())
            a.wait_dmesg(message, 10, seen)
            traffic.still_flows(client)


@pytest.mark.parametrize("fault", ["reset pf", "reset core", "reset global", "critical 0x10000001"])
def test_reset_under_load(labs, fault):
    """Connections end, the device comes back, and new ones work."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    device = traffic.device_number(a)
    # a server that waits for data need not learn of it (RFC 9293, 3.5.1)
    with traffic.endless_rping(b, a, 1000) as (_, client):
        a.fault(*fault.split())
        traffic.is_told(client, timeout=30)
    traffic.wait_link(a, after=device)
    rping_both_ways(lab)


def test_unbind_under_load(labs):
    """The device is taken from the driver while a program uses it; the program is told and ends."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    with traffic.endless_rping(a, b, 1000) as (server, client):
        traffic.auxiliary(a, "unbind", timeout=40)
        a.run("test ! -e /sys/class/infiniband/irdma0").check()
        traffic.auxiliary(a, "bind", timeout=40)
        traffic.is_told(server, client, timeout=30)
    traffic.wait_link(a)
    rping_both_ways(lab)


def test_surprise_removal(own_lab):
    """Nothing answers any more: the driver goes all the same, soon."""
    host = own_lab("irdma", hosts=1)["A"]
    host.fault("remove", "on")
    start = time.monotonic()
    host.run("rmmod irdma", timeout=30).check()
    took = time.monotonic() - start
    assert took < 15, f"expected rmmod to end within 15 s of a surprise removal, took {took:.0f} s"


def test_mtu_change(labs):
    """Connections of before live on; new ones use the larger frames, and the small ones again."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    ports = {9000: 7175, 1500: 7176}
    with traffic.endless_rping(b, a, 1000) as (_, client):
        for mtu, port in ports.items():
            for host in a, b:
                host.run(f"ip link set {host.ports[0].netdev} mtu {mtu}").check()
            traffic.still_flows(client)
            traffic.rping(b, a, 16384, port=port)
    for mtu, port in ports.items():
        longest = max(int(length) for pcap in lab.pcaps() for length in
                      tshark(pcap, "-Y", f"tcp.port == {port}", "-T", "fields", "-e", "frame.len"))
        assert longest == mtu + ETH_HLEN, f"expected frames of up to {mtu + ETH_HLEN} bytes, got {longest}"


LOW_DELAY = 0x10        # a type of service that Linux gives priority 6
CLASSES = {
    1: "tc-bw all:0 0:100 prio-tc all:0",
    2: "tc-bw all:0 0:50 1:50 prio-tc all:0 6:1",
}


@pytest.mark.not_debug     # ice takes two of its own locks in two orders
def test_traffic_classes(labs):
    """The LAN driver's classes come and go: queue pairs stop, move to their new queue set, go on."""
    lab = labs.get("irdma")
    a, b = lab["A"], lab["B"]
    with traffic.endless_rping(b, a, 1000) as (_, client):
        for number in 2, 1:
            a.run(f"dcb ets set dev {a.ports[0].netdev} willing off tc-tsa all:ets {CLASSES[number]}").check()
            traffic.still_flows(client)
            # the LAN driver closed its interface meanwhile, which took the addresses of IPv6 with it
            traffic.rping(b, a, 4096)
            traffic.rping(a, b, 4096)
            traffic.ucmatose(b, a, 5, tos=LOW_DELAY)


def kept(host):
    """Of what kinds the driver says that the adapter did not give up an object."""
    told = [line for line in host.dmesg() if "stays taken" in line]
    return [kind for kind in ("STag", "QP", "CQ", "PD") if any(f" {kind} " in line for line in told)]


def refused_but(lab, before, *expected):
    """The adapter refused, after `before` lines, only what is expected, and forgets all it knew when the driver goes."""
    found = refusals(lab)[before:]
    assert len(found) == len(expected) and all(map(str.endswith, found, expected)), \
        f"expected the refusals {expected}, got {found}"
    check_clean_unload(lab)


@pytest.fixture
def stubborn(labs):
    """(lab, refusals of before): its adapters may keep what they are told to give up, refused_but() sees to the end."""
    lab = labs.get("irdma")
    yield lab, len(refusals(lab))
    labs.forgive(lab)
    lab.each(lambda host: host.ports or host.load_driver())


def test_stag_that_is_not_given_up(stubborn):
    """The adapter keeps a region of MPA replies when its PD goes: no other region gets the STag."""
    lab, before = stubborn
    pair, host = Pair(lab), lab["B"]
    pair.connect()
    fail_next(host, "DEALLOC_STAG")
    pair.close()
    wait_refused(host)
    assert kept(host) == ["STag", "PD"]
    known = host.nic.counters(objects=True)["mr"]
    assert known == 1, f"expected the region that was not given up on the adapter, got {known}"
    pair = Pair(lab)
    pair.connect()
    for name in "xyz":
        pair.b.reg(name, 4096, LOCAL_WRITE)
    pair.close()
    refused_but(lab, before)


def test_queue_pair_that_is_not_given_up(own_lab):
    """The adapter keeps a QP: its number and those of what it uses are left out when their turn comes again.

    It keeps the CQ of such a QP, too.
    """
    lab = own_lab("none", hosts=1)
    host = lab["A"]
    host.load_driver("irdma", params=["limits_sel=0"])
    fail_next(host, "DESTROY_QP")
    for _ in range(2):
        traffic.verbs_cost(host, "qp", 150)
    assert kept(host) == ["QP", "CQ", "PD"]
    refused_but(lab, 0, "1 QPs use it")


def test_port_that_is_not_given_up(stubborn):
    """The adapter keeps a local port: the next listener on it gets that one."""
    lab, before = stubborn
    a, b = lab["A"], lab["B"]
    fail_next(b, "MANAGE_APBVT", 2)
    for _ in range(3):
        traffic.rping(b, a)
    wait_refused(b)
    refused_but(lab, before)


@pytest.mark.parametrize("change", ["del {ip}", "replace {ip} lladdr 02:00:00:00:00:99"], ids=["del", "replace"])
def test_neighbour_that_is_not_given_up(stubborn, change):
    """The adapter keeps a neighbour that has gone or moved: the next connection gets its entry, with the right address.

    A new address is written right behind the command that clears the old one, and refused with it.
    """
    lab, before = stubborn
    a, b = lab["A"], lab["B"]
    traffic.rping(b, a)
    fail_next(b, "MANAGE_ARP")
    neigh = f"ip neigh {{}} dev {b.ports[0].netdev}"
    b.run(neigh.format(change.format(ip=a.ip4))).check()
    wait_refused(b)
    b.run(f"{neigh.format('del ' + a.ip4)}; true")
    for _ in range(2):
        traffic.rping(b, a)
        traffic.rping(a, b)
    refused_but(lab, before, *([] if change.startswith("del") else ["entry exists"]))
