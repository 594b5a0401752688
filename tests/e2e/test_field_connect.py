# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Field cases of connections (docs/field-cases.md) that other tests do not meet by the way.

The programs of both sides are field_cm.c, or one of them is played by hand (peer.py).
"""
import contextlib
import random
import re
import struct
import time

import pytest

import programs
import traffic
from conftest import check_clean_unload
from guest.lab import tshark
from test_peer import IP4, IP6, exchange, exchange_eventually, p

pytestmark = pytest.mark.ci_kernel("6.12")

PROGRAM = "/root/field_cm"
PORT = 7174
SILENT_PORT = 7200          # the peer does not answer SYNs to it
AT_ONCE_US = 500_000        # a call that waits for the network takes a second at least (RFC 6298)
SETTLE_S = 20
DEPTHS = (3, 7)             # the server's IRD and ORD
SEED = random.SystemRandom().randrange(1 << 32)


@pytest.fixture(scope="module")
def program(tmp_path_factory):
    return programs.build("field_cm", tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="module")
def module_lab(module_labs, program):
    made = module_labs.get("irdma")
    # pairs of ports come again, and tshark takes the start-up frame of the next life for an FPDU
    module_labs.capture_filter = "!iwarp_mpa"
    for host in made.hosts.values():
        host.put(program, PROGRAM, 0o755)
    return made


@pytest.fixture
def lab(module_lab, labs):
    return labs.get("irdma")


@pytest.fixture
def peer(lab):
    with p.Peer(str(lab.wire_process.socket), "peer", ip4=IP4, ip6=IP6) as made:
        yield made


@pytest.fixture
def rnd():
    print(f"seed {SEED}")
    return random.Random(SEED)


def objects(host):
    """What connections have on the adapter; addresses and handles of peers are kept for a while."""
    found = host.nic.counters(objects=True)
    return {k: found[k] for k in ("cq", "qp", "mr", "qhash", "apbvt")}


@contextlib.contextmanager
def nothing_left(*hosts):
    """What was on the adapters before is on them afterwards, soon."""
    before = [objects(host) for host in hosts]
    yield
    deadline = time.monotonic() + SETTLE_S
    for host, wanted in zip(hosts, before):
        while objects(host) != wanted:
            assert time.monotonic() < deadline, (
                f"host {host.name}: expected {wanted} on the adapter as before, got {objects(host)}")


def field_cm(host, *words):
    return host.popen([PROGRAM, *map(str, words)])


@contextlib.contextmanager
def serving(host, port=PORT, backlog=16, length=8, hello=(), family=6):
    """A server on all addresses; hello=("hello",): it speaks as soon as it may."""
    before = traffic.adapter_listeners(host)
    server = field_cm(host, "serve", family, port, backlog, *DEPTHS, length, *hello)
    try:
        traffic.wait_listening(host, port, server, before)
        yield server
        assert server.poll() is None, f"expected the server to live: {server.err[-300:]}"
    finally:
        traffic.end(server)


def connecting(host, ip, port, count, length=8):
    """Start COUNT connections; returns the program, which waits to be told to call rdma_connect()."""
    client = field_cm(host, "connect", ip, port, count, length)
    client.wait_output(re.compile("resolved"), 30)
    return client


def established(count):
    """What a program prints whose first COUNT events are those of connections that were made."""
    return re.compile(rf"(?:\d+ ESTABLISHED 0 .*\n){{{count}}}")


def churn(host, ip, port, count, timeout=60):
    """(how many of COUNT attempts in turn were made, seconds)"""
    start = time.monotonic()
    done = host.run([PROGRAM, "churn", ip, str(port), str(count)], timeout=timeout).check()
    made, _ = re.fullmatch(r"(\d+) made, (\d+) not\n", done.out).groups()
    return int(made), time.monotonic() - start


def pattern(length, index):
    """Private data of field_cm.c."""
    return bytes((i + index) % 256 for i in range(length))


# --- the order of events ---

TRACEFS = "/sys/kernel/tracing"
LETTERS = {"CONNECT_REQUEST": "q", "CONNECT_REPLY": "p", "ESTABLISHED": "e", "DISCONNECT": "d", "CLOSE": "c"}
# lives of one connection after the other; f: a CONNECT_REPLY that failed
ORDER = re.compile(r"(q(ed?c)?|pd?c|f)*")


@contextlib.contextmanager
def events_in_order(*hosts):
    """Each connection's events for iw_cm come in their order, once, and iw_cm takes them all (C12, C23)."""
    for host in hosts:
        # the processors' own clocks may differ by more than what lies between two events
        host.run(f"mountpoint -q {TRACEFS} || mount -t tracefs none {TRACEFS}; cd {TRACEFS} && "
                 "echo counter > trace_clock && echo > trace && echo 1 > events/irdma/irdma_cm_upcall/enable").check()
    yield
    for host in hosts:
        lines = host.run(f"cd {TRACEFS} && echo 0 > events/irdma/irdma_cm_upcall/enable && cat trace").check().out
        lives = {}
        for m in re.finditer(r"irdma_cm_upcall: node=(\S+) cm_id=\S+ (\w+) status=(-?\d+) .*result=(-?\d+)", lines):
            node, event, status, result = m.groups()
            assert result == "0", f"host {host.name}: iw_cm does not take an event: {m[0]}"
            letter = "f" if event == "CONNECT_REPLY" and status != "0" else LETTERS[event]
            lives[node] = lives.get(node, "") + letter
        assert lives, f"host {host.name}: expected events of connections, the trace has none"
        wrong = {node: life for node, life in lives.items() if not ORDER.fullmatch(life)}
        assert not wrong, f"host {host.name}: events in a wrong order: {wrong}"


# --- connect ---

def test_connect_returns_at_once(lab, peer):
    """C01: SYNs that nobody answers hold up neither the caller nor others; the caller may reuse its buffer."""
    a, b = lab["A"], lab["B"]
    with nothing_left(a, b):
        client = connecting(a, IP4, SILENT_PORT, 4, 200)
        client.write(b"\n")
        slowest = int(client.wait_output(re.compile(r"called (\d+)"), 20)[1])
        assert slowest < AT_ONCE_US, f"expected rdma_connect() to return at once, it took {slowest} us"
        traffic.rping(b, a, 64, timeout=10)
        conn = peer.accept(SILENT_PORT)
        private = conn.recv_mpa()[3][4:]
        assert private == pattern(200, private[0]), f"expected the private data of the call, got {private.hex()}"
        conn.send(p.mpa_reply(flags=p.MPA_CRC | p.MPA_REJECT, ird=0x8001, ord_=0x4001))
        client.wait_output(re.compile(rf"^{private[0]} REJECTED", re.M), 5)
        conn.reset()
        start = time.monotonic()
        client.close_stdin()        # destroys the ids whose SYNs are still repeated
        client.wait(SETTLE_S).check()
        took = time.monotonic() - start
        assert took < 5, f"expected connections that wait to be given up at once, it took {took:.1f} s"


MOVED = "02:00:00:00:99:02"


def zero_write():
    """What an initiator says first when it has nothing to say."""
    return p.fpdu(p.ddp_tagged(0, 0, 0))


def test_peer_moves(lab, peer):
    """C02: a neighbour's new MAC address reaches connections that are being made and that live."""
    a = lab["A"]
    dev = a.ports[0].netdev
    with nothing_left(a), serving(a):
        live = peer.connect(a.ip4, PORT)
        live.send(p.mpa_request())
        live.recv_mpa()
        waiting = peer.connect(a.ip4, PORT)
        peer.drain()
        peer.mac = p.mac_bytes(MOVED)
        a.run(f"ip neigh replace {IP4} lladdr {MOVED} dev {dev} nud reachable").check()
        live.send(zero_write())
        answer = live.expect()
        assert answer.raw[:6] == peer.mac, f"expected QP frames to {MOVED}, got one to {answer.raw[:6].hex(':')}"
        waiting.send(p.mpa_request())
        answer = waiting.expect()
        assert answer.raw[:6] == peer.mac, f"expected set-up frames to {MOVED}, got one to {answer.raw[:6].hex(':')}"
        for conn in live, waiting:
            conn.reset()


ROUTER, BETTER, FAR = "fe80::99", "fe80::98", "fd99::1"


def packed(ip):
    return p.ipaddress.ip_address(ip).packed


def icmp(peer, host, src, kind, code, word, body):
    """Send the host an ICMP or ICMPv6 message (RFC 792; RFC 4443, 2.1), by the family of src."""
    ipv6 = len(packed(src)) == 16
    dst, proto, ethertype = (host.ip6, 58, 0x86dd) if ipv6 else (host.ip4, 1, 0x800)
    body = struct.pack("!BBHI", kind, code, 0, word) + body
    pseudo = (~p.checksum(packed(src) + packed(dst)) & 0xffff) + proto + len(body) if ipv6 else 0
    body = body[:2] + struct.pack("!H", p.checksum(body, pseudo)) + body[4:]
    peer.send(p.ethernet(p.mac_bytes(host.nic.mac), peer.mac, ethertype,
                         p.ip_header(src, dst, len(body), proto=proto, ttl=255) + body))


def redirect(peer, host):
    """An ICMPv6 redirect (RFC 4861, 4.5): another router is the better way to FAR."""
    icmp(peer, host, ROUTER, 137, 0, 0, packed(BETTER) + packed(FAR) + b"\x02\x01" + peer.mac)


PATH_MTU = {4: 1400, 6: 1280}


def too_big(peer, host):
    """An echo reply of the host to the peer was too big for the path (RFC 1191, 4; RFC 8201, 4)."""
    icmp(peer, host, IP4, 3, 4, PATH_MTU[4], p.ip_header(host.ip4, IP4, 8, proto=1) + struct.pack("!BBHI", 0, 0, 0, 1))
    icmp(peer, host, IP6, 2, 0, PATH_MTU[6], p.ip_header(host.ip6, IP6, 8, proto=58) + struct.pack("!BBHI", 129, 0, 0, 1))


def test_neighbour_events(lab, peer):
    """C02: neighbours come and go and a router redirects while SYNs arrive: no harm, and all is well after."""
    a = lab["A"]
    dev = a.ports[0].netdev
    a.run(f"ip -6 neigh replace {ROUTER} lladdr {peer.mac.hex(':')} dev {dev}; "
          f"ip -6 route replace fd99::/64 via {ROUTER} dev {dev}").check()
    with nothing_left(a), serving(a):
        storm = a.popen("while :; do ip neigh flush dev {0}; ip neigh replace {1} lladdr 02:00:00:00:99:07 dev lo; "
                        "ip -6 neigh flush dev {0}; ip neigh replace {1} lladdr {2} dev {0}; done"
                        .format(dev, IP4, peer.mac.hex(":")))
        try:
            for ip in (a.ip4, a.ip6) * 20:
                peer.syn(ip, PORT)
                redirect(peer, a)
                with contextlib.suppress(p.PeerTimeout):
                    peer.connect(ip, PORT, timeout=0.1).send(p.mpa_request())
        finally:
            traffic.end(storm)
        a.run(f"ip neigh replace {ROUTER} lladdr {peer.mac.hex(':')} dev {dev}").check()
        deadline = time.monotonic() + 10
        while BETTER not in (way := a.run(f"ip -6 route get {FAR}").out):
            assert time.monotonic() < deadline, f"expected the redirect to be followed, the route is {way!r}"
            redirect(peer, a)
        traffic.rping(a, lab["B"], 64, port=7180)
    a.run(f"ip -6 route del fd99::/64 via {ROUTER} dev {dev}").check()


def test_path_mtu_changes(lab, peer):
    """C02: the path to the peer gets narrower while SYNs arrive: no harm, and connections are made."""
    a = lab["A"]
    with nothing_left(a), serving(a, backlog=64):
        for ip in (a.ip4, a.ip6) * 20:
            peer.syn(ip, PORT)
            too_big(peer, a)
        for family, ip in ((4, IP4), (6, IP6)):
            way = a.run(f"ip -{family} route get {ip}").check().out
            assert f"mtu {PATH_MTU[family]}" in way, f"expected a path MTU of {PATH_MTU[family]}, the route is {way!r}"
        exchange(peer, a.ip4)
        exchange(peer, a.ip6)
        a.run("ip route flush cache; ip -6 route flush cache").check()


@contextlib.contextmanager
def enslaved(host, kind):
    """The port under a bridge or bond, which has its IPv4 address."""
    dev, ip4 = host.ports[0].netdev, f"{host.ip4}/24"
    host.run(f"sysctl -qw net.ipv6.conf.{dev}.keep_addr_on_down=1 && ip link add upper0 type {kind} && "
             f"ip link set {dev} down && ip link set {dev} master upper0 && ip link set {dev} up && "
             f"ip link set upper0 up && ip addr del {ip4} dev {dev} && ip addr add {ip4} dev upper0").check()
    try:
        yield
    finally:
        host.run(f"ip link del upper0 && ip link set {dev} up && ip addr add {ip4} dev {dev}").check()


@pytest.mark.parametrize("kind", ["bridge", "bond mode active-backup"])
def test_port_with_a_master(lab, peer, kind):
    """C02: the port joins and leaves a bridge or bond while SYNs arrive: no harm, and all is well after."""
    a = lab["A"]
    mac = p.mac_bytes(a.nic.mac)
    a.run("modprobe bridge && modprobe bonding max_bonds=0").check()

    def attempts():
        for ip in (a.ip4, a.ip6) * 5:
            peer.syn(ip, PORT, dst_mac=mac)
            with contextlib.suppress(p.PeerTimeout):
                peer.connect(ip, PORT, timeout=0.1, dst_mac=mac).send(p.mpa_request())

    with nothing_left(a), serving(a):
        for _ in range(3):
            with enslaved(a, kind):
                attempts()
            attempts()
        traffic.wait_link(a)
        exchange_eventually(peer, a.ip4)
        exchange_eventually(peer, a.ip6)


VLANS = (None, 10, 20)


def address(host, vlan):
    return host.ip4 if vlan is None else f"10.{vlan}.0.{host.number}"


def tags(lab, ip):
    """VLAN tags of the TCP frames of an address, as the wire saw them; "": none."""
    seen = set()
    for pcap in lab.pcaps():
        seen |= set(tshark(pcap, "-Y", f"tcp && ip.addr == {ip}", "-T", "fields", "-e", "vlan.id"))
    return seen


def test_vlan_matrix(lab):
    """C03: by wildcard and by address, from outside and from itself, on the port and on two VLANs of it."""
    a, b = lab["A"], lab["B"]
    for host in a, b:
        dev = host.ports[0].netdev
        for vlan in VLANS[1:]:
            host.run(f"ip link add link {dev} name {dev}.{vlan} type vlan id {vlan} && ip link set {dev}.{vlan} up && "
                     f"ip addr add {address(host, vlan)}/24 dev {dev}.{vlan}").check()
    try:
        with serving(a, PORT):
            for vlan in VLANS:
                ip = address(a, vlan)
                for client in b, a:
                    assert churn(client, ip, PORT, 1)[0] == 1, f"host {client.name}: no connection to {ip}, wildcard"
                if vlan is not None:        # the others are test_connect's
                    traffic.rping(a, b, 64, ip=ip, count=1, port=7181)
                    traffic.rping(a, a, 64, ip=ip, count=1, port=7182)
        for vlan in VLANS:
            want = {"" if vlan is None else str(vlan)}
            got = tags(lab, address(a, vlan))
            assert got == want, f"expected the tags {want} on frames of {address(a, vlan)}, got {got}"
    finally:
        for host in a, b:
            for vlan in VLANS[1:]:
                host.run(f"ip link del {host.ports[0].netdev}.{vlan}")


def test_client_comes_first(lab):
    """C05: refusals are fast, cost nothing that stays, and the next attempt finds the new listener."""
    a, b = lab["A"], lab["B"]
    with nothing_left(a, b):
        made, took = churn(a, b.ip4, PORT, 100)
        assert made == 0, f"expected no connection without a listener, got {made}"
        assert took < 10, f"expected 100 refusals within 10 s, they took {took:.1f} s"
        with serving(b):
            assert churn(a, b.ip4, PORT, 20)[0] == 20, "expected every connection to be made"


@pytest.mark.not_debug
def test_cost_of_a_backlog(lab):
    """C05: a listener costs the same whatever its backlog is."""
    out = lab["A"].run([PROGRAM, "listen-cost", str(PORT)]).check().out
    took = {int(backlog): int(us) for backlog, us in (line.split() for line in out.splitlines())}
    assert took[4096] < 10 * took[1] + 20_000, f"backlog: microseconds of rdma_listen() are {took}"


@pytest.mark.parametrize("backlog", [1, 4])
def test_more_clients_than_backlog(lab, backlog):
    """C05: each of 16 clients at once gets an answer: SYNs are repeated, and rdma_ucm refuses what is too much."""
    a, b = lab["A"], lab["B"]
    with nothing_left(a), serving(b, backlog=backlog):      # b: TIME_WAIT of what it refused
        client = connecting(a, b.ip4, PORT, 16)
        client.write(b"\n")
        client.wait_output(re.compile(r"(?:\d+ (?:ESTABLISHED 0|REJECTED -111).*\n){16}"), 40)
        made = client.out.count("ESTABLISHED")
        assert made >= backlog, f"expected at least {backlog} of 16 connections, got {made}"
        client.close_stdin()
        client.wait(SETTLE_S)


def test_next_hop_is_lost(lab, peer):
    """C05: the neighbour is gone between resolving and connecting: the call says so."""
    a = lab["A"]
    client = connecting(a, IP4, SILENT_PORT, 1)
    peer.answer = False
    a.run(f"ip neigh del {IP4} dev {a.ports[0].netdev}").check()
    client.write(b"\n")
    done = client.wait(SETTLE_S)
    assert done.rc == 1 and "No route to host" in done.err, f"expected EHOSTUNREACH, got {done.err!r}"


# --- listen ---

def request_and_go(peer, ip, port, close):
    """A whole request, and the peer is gone before anybody can answer."""
    with contextlib.suppress(p.PeerTimeout, ConnectionError):
        conn = peer.connect(ip, port, timeout=0.1)
        conn.send(p.mpa_request())
        if close:
            conn.send_fin()


def test_listeners_come_and_go(lab, peer):
    """C07, C08: so do addresses, VLANs and clients; nothing hangs, and the driver can be removed at once."""
    a, b = lab["A"], lab["B"]
    dev = a.ports[0].netdev
    with serving(a, PORT):
        before = traffic.adapter_listeners(a)
        loop = field_cm(a, "listen", 7300, 4)
        loop.wait_output(re.compile("listening"), 20)
        changes = a.popen(f"while :; do ip addr add 192.168.77.200/24 dev {dev}; "
                          f"ip link add link {dev} name v5 type vlan id 5; ip addr add 10.5.0.1/24 dev v5; "
                          f"ip link set v5 up; ip -6 addr add fd77::200/64 dev {dev} nodad; "
                          f"ip link set v5 down; ip link del v5; ip addr del 192.168.77.200/24 dev {dev}; "
                          f"ip -6 addr del fd77::200/64 dev {dev}; done")
        for n in range(60):
            request_and_go(peer, a.ip4, 7300 + n % 4, n % 2)
        traffic.end(changes)
        loop.close_stdin()
        rounds = int(re.search(r"(\d+) rounds", loop.wait(SETTLE_S).check().out)[1])
        assert rounds > 20, f"expected many listeners to have come and gone, {rounds} did"
        a.run(f"ip link del v5; ip addr del 192.168.77.200/24 dev {dev}; ip -6 addr del fd77::200/64 dev {dev}; "
              f"ip addr add 192.168.77.201/24 dev {dev}").check()
        for ip in a.ip4, "192.168.77.201":
            made, _ = churn(b, ip, PORT, 2)
            assert made == 2, f"expected the listener of before to serve {ip}, {made} of 2 connections were made"
        a.run(f"ip addr del 192.168.77.201/24 dev {dev}").check()
        deadline = time.monotonic() + 10
        while (now := traffic.adapter_listeners(a)) != before:
            assert time.monotonic() < deadline, f"expected the listeners {before}, got {now}"
    for n in range(8):
        with serving(a, 7300):
            request_and_go(peer, a.ip4, 7300, n % 2)
    took = check_clean_unload(lab)
    lab.each(lambda host: host.load_driver())
    assert took < 15, f"expected the driver to be removed at once, it took {took:.1f} s"


# --- MPA ---

def send_message(text):
    return p.fpdu(p.ddp_untagged(3, 0, 1, text))


@pytest.mark.parametrize("version", [1, 2])
def test_passive_side_waits(lab, peer, version):
    """C10, C19: what the server sends at once does not leave before the client's first word, which comes in pieces."""
    a = lab["A"]
    with nothing_left(a), serving(a, hello=("hello",)) as server:
        conn = peer.connect(a.ip4, PORT)
        conn.send(p.mpa_request(**({"ird": 0x8000 | 1, "ord_": 0x8000 | 1} if version == 2 else {})))
        conn.recv_mpa()
        peer.expect_silence(0.3, lambda pkt: pkt.tcp and pkt.payload and pkt.dport == conn.sport)
        if version == 2:
            conn.send(zero_write())     # the RTR frame that the server chose of what was offered
        conn.send(send_message(b"first"), mss=11)
        assert conn.recv_fpdu().endswith(b"hello"), "expected the server's message"
        server.wait_output(re.compile("^received first$", re.M), 10)
        conn.reset()


def told_of(server, client, length):
    """What both programs were told: [the server's request, the client's reply], depths and private data."""
    # an IPv6 wildcard of the in-tree driver serves no IPv4
    with serving(server, length=length, family=4) as s:
        c = connecting(client, server.ip4, PORT, 1, length)
        c.write(b"\n")
        told = re.compile(r"ird \d+ ord \d+ data \w*\n")
        reply = c.wait_output(told, 20)[0]
        request = s.wait_output(told, 20)[0]
        c.close_stdin()
        c.wait(SETTLE_S)
    return [request, reply]


@pytest.mark.parametrize("length", [0, 8, 196])
def test_private_data(lab, length):
    """C15: both ULPs get what the other gave, without our own words in it."""
    request, reply = told_of(lab["B"], lab["A"], length)
    assert request.split("data ")[1] == pattern(length, 0).hex() + "\n", f"the server was told {request}"
    assert reply.split("data ")[1] == pattern(length, 100).hex() + "\n", f"the client was told {reply}"


def test_depths(labs, program):
    """C15: client IRD 32 and ORD 1, server IRD 3 and ORD 7: a reply tells what the in-tree driver's tells."""
    lab = labs.get({"A": "irdma", "B": "intree"})
    for host in lab.hosts.values():
        host.put(program, PROGRAM, 0o755)
    # without the data: the in-tree driver adds the length of the depths to that of a reply
    request, theirs = (told.split(" data ")[0] for told in told_of(lab["A"], lab["B"], 8))
    ours = told_of(lab["B"], lab["A"], 8)[1].split(" data ")[0]
    assert request == "ird 1 ord 32", f"request: expected the client's ORD and IRD, our server was told {request!r}"
    assert ours == theirs == "ird 1 ord 32", (
        f"reply: we tell our client {ours!r}, the in-tree driver its own {theirs!r}")


# --- timers and removal ---

def test_device_goes_while_syns_wait(lab, peer, rnd):
    """C17, C02: at any moment of their repetitions, while neighbours change; soon, and all is well after."""
    a = lab["A"]
    dev = a.ports[0].netdev
    for _ in range(3):
        client = connecting(a, IP4, SILENT_PORT, 8)
        client.write(b"\n")
        client.wait_output(re.compile("called"), 20)
        storm = a.popen(f"while :; do ip neigh flush dev {dev}; ip neigh replace {IP4} lladdr {MOVED} dev {dev}; done")
        time.sleep(rnd.uniform(0, 3))
        start = time.monotonic()
        traffic.auxiliary(a, "unbind")
        took = time.monotonic() - start
        traffic.end(storm)
        client.wait(SETTLE_S)
        traffic.auxiliary(a, "bind")
        traffic.wait_link(a)
        assert took < 10, f"expected the device to go within 10 s, it took {took:.1f} s"
    traffic.rping(lab["B"], a, 64)


# --- teardown ---

def kill_with(lab, count):
    """Seconds until a killed program with COUNT connections, and all that it had, are gone."""
    a, b = lab["A"], lab["B"]
    client = connecting(a, b.ip4, PORT, count)
    client.write(b"\n")
    client.wait_output(established(count), 120)
    with_it = objects(a)["qp"]
    start = time.monotonic()
    traffic.end(client, 60)
    while objects(a)["qp"] > with_it - count:
        assert time.monotonic() < start + 60, f"expected {count} QPs to go, {objects(a)} are left"
    return time.monotonic() - start


def test_killed_with_many_connections(lab):
    """C20: it ends in a time that grows with its connections, not by a grace period for each."""
    with nothing_left(lab["A"], lab["B"]), serving(lab["B"], backlog=400):
        few, many = kill_with(lab, 10), kill_with(lab, 300)
    print(f"10 connections {few:.2f} s, 300 connections {many:.2f} s")
    assert many < 10, f"expected 300 connections to end within 10 s, they took {many:.1f} s (10: {few:.1f} s)"


def test_shared_completion_queue(lab):
    """C21: completions of a queue pair that is gone hide none of its neighbour's."""
    with nothing_left(lab["A"], lab["B"]), serving(lab["B"]):
        out = lab["A"].run([PROGRAM, "share", lab["B"].ip4, str(PORT)], timeout=30).check().out
    assert out == "0 of the dead, 10 of the living\n", f"expected the 10 receives of the QP that lives, got {out!r}"


def test_numbers_come_back(lab):
    """C22: late events of connections that are destroyed at once; numbers of QPs are used twice and more."""
    a, b = lab["A"], lab["B"]
    a.unload_driver()
    a.load_driver(params=["limits_sel=0"])
    limit = int(re.search(r"max_qp:\s+(\d+)", a.run("ibv_devinfo -v").check().out)[1])
    try:
        with traffic.late_events("aeq", 5, a), nothing_left(a, b), serving(b):
            made, _ = churn(a, b.ip4, PORT, 2 * limit + 10, timeout=120)
            assert made == 2 * limit + 10, f"expected {2 * limit + 10} connections with room for {limit}, got {made}"
    finally:
        a.unload_driver()
        a.load_driver()


def test_peer_goes_around_accept(lab, peer, rnd):
    """C12, C13: FIN or RST of the client at any moment between its request and the first data."""
    a = lab["A"]
    closed = []
    with nothing_left(a), serving(a), events_in_order(a):
        for n in range(60):
            conn = peer.connect(a.ip4, PORT)
            conn.send(p.mpa_request())
            time.sleep(rnd.uniform(0, 0.03))
            if n % 2:
                conn.reset()
            else:
                conn.send_fin()
                closed.append(conn)
        for conn in closed:
            conn.reset()        # answers what waits for the last acknowledgement
        exchange(peer, a.ip4)


def refuse(peer, host):
    """The second attempt, with MPA revision 1, if there is one (RFC 6581, 10)."""
    with contextlib.suppress(p.PeerTimeout):
        syn = peer.expect(dport=SILENT_PORT, flags="S", timeout=0.2)
        peer.send_tcp(host.ip4, SILENT_PORT, syn.sport, seq=0, ack=syn.seq + 1, flags=p.RST | p.ACK)


def test_server_goes_instead_of_reply(lab, peer, rnd):
    """C12: FIN or RST of the server where its reply, or the rest of it, was expected."""
    a = lab["A"]
    with nothing_left(a), events_in_order(a):
        for close in ("fin", "rst") * 2:
            client = connecting(a, IP4, SILENT_PORT, 1)
            client.write(b"\n")
            conn = peer.accept(SILENT_PORT)
            conn.recv_mpa()
            conn.send(p.mpa_reply(ird=0x8001, ord_=0x4001)[:rnd.choice((0, 1, 20, 23))])
            if close == "rst":
                conn.reset()
            else:
                conn.send_fin()
            refuse(peer, a)
            conn.reset()
            done = client.wait(20).check()
            assert re.search(r"^0 (REJECTED|UNREACHABLE|CONNECT_ERROR) -?\d+$", done.out, re.M), (
                f"{close}: expected the connect to fail, got {done.out!r}")


def test_bursts(lab):
    """C23: 200 connections at once and as many ends: each connection's events come once and in order."""
    a, b = lab["A"], lab["B"]
    with events_in_order(a, b), nothing_left(a, b):
        traffic.ucmatose(a, b, connections=200, count=2)
