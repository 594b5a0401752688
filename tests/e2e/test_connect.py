# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Connections and data between our driver and {ours, the kernel's, siw}, in both roles."""
import contextlib

import pytest

import programs
import traffic

PEERS = ["irdma", "intree", "siw"]


@pytest.fixture(params=PEERS)
def lab(request, labs):
    # siw loses the wake-up of a first message that overtakes its own accept on another
    # processor, and then takes its host down: one processor keeps them in order
    options = {"cpus": 1} if request.param == "siw" else {}
    lab = labs.get({"A": "irdma", "B": request.param}, **options)
    if request.param == "siw":
        traffic.revive(lab["B"])
    return lab


@pytest.fixture
def ours(labs):
    return labs.get({"A": "irdma", "B": "irdma"})


def test_link(lab):
    out = lab["A"].run("rdma link").out
    assert "state ACTIVE physical_state LINK_UP" in out, f"expected an active link, got {out!r}"


@pytest.mark.parametrize("ip6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("size", [64, 65535])
def test_rping_active(lab, size, ip6):
    if lab["B"].driver == "siw":
        traffic.rping_siw_server(lab, size, ip6=ip6)
    else:
        traffic.rping(lab["B"], lab["A"], size, ip6=ip6)


@pytest.mark.parametrize("ip6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("size", [64, 65535])
def test_rping_passive(lab, size, ip6):
    run = traffic.rping_siw_client if lab["B"].driver == "siw" else traffic.rping
    run(lab["A"], lab["B"], size, ip6=ip6)


VLAN = 77


@contextlib.contextmanager
def vlan(lab):
    """A VLAN between the hosts, 10.77.0.N and fd10:77::N."""
    devices = {host: f"{host.ports[0].netdev}.{VLAN}" for host in lab.hosts.values()}
    try:
        for host, dev in devices.items():
            # no duplicate address detection: it would hold back the first neighbour solicitation
            host.run(f"ip link add link {host.ports[0].netdev} name {dev} type vlan id {VLAN} && "
                     f"echo 0 > /proc/sys/net/ipv6/conf/{dev}/accept_dad && ip link set {dev} up && ip addr add 10.77.0.{host.number}/24 dev {dev} && "
                     f"ip addr add fd10:77::{host.number}/64 dev {dev} nodad").check()
        yield {host.name: (f"10.77.0.{host.number}", f"fd10:77::{host.number}") for host in devices}
    finally:
        for host, dev in devices.items():
            host.run(f"ip link del {dev}")


@pytest.mark.parametrize("ip6", [False, True], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("peer", ["irdma", "intree"])
def test_vlan(labs, peer, ip6):
    """C03, C07: both roles on a VLAN, by address and by a wildcard listener that was there before the VLAN."""
    lab = labs.get({"A": "irdma", "B": peer})
    a, b = lab["A"], lab["B"]
    wildcard = a.popen("rping -s -a :: -p 7175 -V -C 10 -P")
    traffic.wait_listening(a, 7175, wildcard)
    try:
        with vlan(lab) as address:
            traffic.rping(b, a, 4096, ip=address["B"][ip6])
            traffic.rping(a, b, 4096, ip=address["A"][ip6])
            b.run(f"rping -c -a {address['A'][ip6]} -p 7175 -V -C 10", timeout=20).check()
    finally:
        traffic.end(wildcard)


def test_many_connections(ours):
    traffic.ucmatose(ours["A"], ours["B"], connections=50)
    traffic.ucmatose(ours["B"], ours["A"], connections=50)


def test_many_connections_with_stock_peer(labs):
    lab = labs.get({"A": "irdma", "B": "intree"})
    traffic.ucmatose(lab["A"], lab["B"], connections=50)
    traffic.ucmatose(lab["B"], lab["A"], connections=50)


@pytest.mark.not_debug
@pytest.mark.parametrize("tool", ["ib_send_bw", "ib_write_bw", "ib_read_bw", "ib_send_lat"])
def test_perftest(ours, tool):
    rows = traffic.perftest(tool, ours["B"], ours["A"], "-s 4096 -n 500")
    assert rows[0][0] == 4096


@pytest.mark.not_debug
def test_perftest_with_stock_peer(labs):
    lab = labs.get({"A": "irdma", "B": "intree"})
    for server, client in (("A", "B"), ("B", "A")):
        traffic.perftest("ib_write_bw", lab[server], lab[client], "-s 65536 -n 100")
        traffic.perftest("ib_send_bw", lab[server], lab[client], "-s 4096 -n 200")


def test_rdma_core_44(ours):
    """A library of 2023, whose rping comes with it: it and the guest's own serve each other."""
    for host in ours.hosts.values():
        host.put(programs.old_rdma_core(), "/tmp/old.tar")
        host.run(f"mkdir -p {programs.OLD} && tar xf /tmp/old.tar -C {programs.OLD}").check()
    opts = f"-a {ours['A'].ip4} -p 7177 -V -C 10 -S 4096"
    old = f"unshare -m sh {programs.OLD}/run"
    for server, client in ((old, old), (old, "rping"), ("rping", old)):
        traffic.pair(ours["A"], f"{server} -s {opts}", ours["B"], f"{client} -c {opts}", 7177)


@pytest.mark.parametrize("percent", [1, 5, 10])
def test_loss(ours, percent):
    """Frames of all kinds are lost, set-up frames too: slower, but right.

    Not the first ARP or neighbour solicitation: rping waits two seconds for an address.
    """
    runs = (("B", "A", False), ("A", "B", True))
    for server, client, ip6 in runs:
        traffic.rping(ours[server], ours[client], 64, count=1, ip6=ip6)
    with ours.wire_fault(f"drop rate={percent * 10}"):
        for server, client, ip6 in runs:
            traffic.rping(ours[server], ours[client], 4096, count=10, ip6=ip6)


def test_to_itself(ours):
    """Both ends on one device: the frames are looped back."""
    traffic.rping(ours["A"], ours["A"], 4096)


def test_refused(ours):
    """C05: nobody listens; the client is told at once, and can try again."""
    r = ours["A"].run(f"rping -c -a {ours['B'].ip4} -p 9 -C 1", timeout=10)
    assert r.rc != 0, "expected rping to fail without a server, it succeeded"
    traffic.rping(ours["B"], ours["A"], 64)


def test_killed_client(ours):
    """C20: the peer is told when a client is killed, and all its resources come back."""
    a, b = ours["A"], ours["B"]
    with traffic.endless_rping(b, a, 1000) as (server, client):
        traffic.end(client)
        traffic.is_told(server)
    for host in (a, b):
        out = host.run("rdma resource show qp").out
        assert "pid" not in out, f"host {host.name}: expected no user QP left, got {out!r}"


@pytest.mark.ci_kernel("6.12")
@pytest.mark.not_debug     # three times slower, connections come to their deadline
def test_cmtime(ours):
    """A thousand at once, where the in-tree driver has no memory for 300.

    A port of its own: tshark takes ports that come again for the same connection.
    """
    traffic.cmtime(ours["B"], ours["A"], connections=1000, port=7571)


@pytest.mark.ci_kernel("6.12")
def test_cmtime_with_port_mapper(ours):
    """iwpmd gives each listener and connection another port than it asked for."""
    for host in ours.hosts.values():
        traffic.start_port_mapper(host)
    traffic.cmtime(ours["B"], ours["A"], connections=100)
