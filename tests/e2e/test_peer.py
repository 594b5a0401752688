# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""A hand-played peer against our connection engine: what no well-behaved stack sends.

Each case of spec 03 section 9.1 (D-nn) and of the field cases (Cnn) that a peer can
trigger.  The server is mpa_server.c, a new one for each test; after every attack a proper
MPA exchange must still work and the machine must be whole.
"""
import random
import re
import struct
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "model"))

import peer as p  # noqa: E402  (needs the path above)
import programs  # noqa: E402
import traffic  # noqa: E402

PORT = 7174
BACKLOG = 8
ANSWER_S = 1.2          # a client's SYN is repeated after 1 s (RFC 6298)
ROOM_S = 6              # less than the 10 s that a silent client may take
SEED = 20261129
IP4, IP6 = "192.168.77.99", "fd77::99"


@pytest.fixture(scope="module")
def mpa_server(tmp_path_factory):
    return programs.build("mpa_server", tmp_path_factory.mktemp("bin"))


@pytest.fixture(scope="module")
def lab(module_labs, mpa_server):
    made = module_labs.get("irdma", hosts=1)
    # the peer's frames are malformed on purpose
    module_labs.capture_filter = f"eth.src == {made['A'].nic.mac}"
    made["A"].put(mpa_server, "/root/mpa_server", 0o755)
    return made


@pytest.fixture
def host(lab, labs):
    """The host under attack; its server must live to the end."""
    a = lab["A"]
    server = a.popen(["/root/mpa_server", str(PORT), str(BACKLOG)])
    server.wait_output(re.compile("listening"), 20)
    yield a
    status = server.poll()
    traffic.end(server)
    assert status is None, f"expected the server to live, it ended with {status}: {server.err.strip()[-300:]}"


def drops(host, reason):
    """How many frames the connection engine has dropped for a reason."""
    shown = host.run("cat /sys/kernel/debug/irdma/*/cm_drops").check().out
    return int(dict(line.split() for line in shown.splitlines())[reason])


@pytest.fixture
def peer(lab):
    with p.Peer(str(lab.wire_process.socket), "peer", ip4=IP4, ip6=IP6) as made:
        yield made


def exchange(peer, ip, timeout=5):
    """A proper version 1 start-up must be answered with a reply that accepts."""
    conn = peer.connect(ip, PORT, timeout)
    conn.send(p.mpa_request())
    key, flags, revision, _ = conn.recv_mpa()
    assert key == p.MPA_KEY_REP, f"expected the MPA reply key, got {key!r}"
    assert not flags & p.MPA_REJECT, "expected the request to be accepted, it was rejected"
    assert revision == 1, f"expected a reply of revision 1, got {revision}"
    conn.reset()


def exchange_eventually(peer, ip, seconds=ROOM_S):
    """A client that repeats its attempts must get through, however full the listener was."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return exchange(peer, ip, ANSWER_S)
        except p.PeerTimeout as e:
            assert time.monotonic() < deadline, f"expected a client to get through within {seconds} s: {e}"


def test_proper_start_up(host, peer):
    exchange(peer, host.ip4)
    exchange(peer, host.ip6)


def test_option_of_length_zero(host, peer):
    """D-01: stops a machine that runs the in-tree driver; ours drops, counts and goes on."""
    options = (b"\x02\x00", b"\x03\x00", b"\x08\x00", b"\xfe\x00", b"\x02\x01", b"\x01\x01\x02\x00")
    before = drops(host, "cm_drop_tcp_option")
    for option in options:
        sport, _ = peer.syn(host.ip4, PORT, options=option)
        peer.expect_silence(0.2, tcp=True, dport=sport, flags="SA")
    counted = drops(host, "cm_drop_tcp_option") - before
    assert counted == len(options), f"expected {len(options)} drops for bad options, {counted} were counted"
    exchange(peer, host.ip4)


@pytest.mark.parametrize("offset", [0, 1, 4, 15])
def test_bad_data_offset(host, peer, offset):
    """D-02, C50: a TCP header shorter than 20 bytes, or longer than the segment."""
    sport, _ = peer.syn(host.ip4, PORT, options=b"", data_offset=offset)
    peer.expect_silence(0.2, tcp=True, dport=sport, flags="SA")
    exchange(peer, host.ip4)


@pytest.mark.parametrize("cut", [0, 1, 8, 19])
def test_truncated_segment(host, peer, cut):
    """D-02: an IP packet that ends inside the TCP header."""
    seg = p.tcp_segment(IP4, host.ip4, 4000, PORT, 1, flags=p.SYN)[:cut]
    mac = peer.resolve(host.ip4)
    peer.send(p.ethernet(mac, peer.mac, 0x0800, p.ip_header(IP4, host.ip4, len(seg)) + seg))
    exchange(peer, host.ip4)


def test_request_in_every_split(host, peer):
    """C11: a request cut at every place is one request."""
    request = p.mpa_request(b"private")
    for cut in range(1, len(request)):
        conn = peer.connect(host.ip4, PORT)
        conn.send(request[:cut])
        conn.send(request[cut:])
        key, flags, _, _ = conn.recv_mpa()
        assert key == p.MPA_KEY_REP and not flags & p.MPA_REJECT, f"cut at {cut}: expected an accepting reply"
        conn.reset()


def test_request_byte_by_byte_and_twice(host, peer):
    """C11: a request in single bytes, each of them repeated, is one request."""
    conn = peer.connect(host.ip4, PORT)
    for byte in p.mpa_request(b"x" * 20):
        conn.segment(bytes([byte]), flags=p.ACK | p.PSH)    # as if the first copy were lost
        conn.send(bytes([byte]))
    assert conn.recv_mpa()[0] == p.MPA_KEY_REP
    conn.reset()


def mpa_variants():
    ok = p.mpa_request()
    yield "wrong key", b"MPA ID Xeq Frame" + ok[16:]
    yield "reply key", p.mpa_reply()
    yield "revision 0", p.mpa_request(revision=0)
    yield "revision 3", p.mpa_request(revision=3)
    yield "private data over 512", p.mpa_request(b"x" * 513)
    yield "length says 65535", p.mpa_request(length=65535)
    yield "text", b"GET / HTTP/1.0\r\n\r\n" + b" " * 20
    yield "version 2 shorter than its control words", p.mpa_frame(
        p.MPA_KEY_REQ, p.MPA_CRC | p.MPA_ENHANCED, 2, b"ab")


@pytest.mark.parametrize("after", ["fin", "rst", "nothing"])
@pytest.mark.parametrize("name,frame", list(mpa_variants()), ids=lambda v: v.replace(" ", "-")
                         if isinstance(v, str) else "")
def test_malformed_request(host, peer, name, frame, after):
    """C13, D-06, D-07: never a request to the consumer, never a hang, never a leak."""
    conn = peer.connect(host.ip4, PORT)
    conn.send(frame)
    if after == "fin":
        conn.send_fin()
    elif after == "rst":
        conn.reset()
    answer = conn.expect(test=lambda pkt: pkt.payload or pkt.flags & p.RST)
    assert answer.flags & p.RST, f"expected a reset, got {answer!r}"
    exchange(peer, host.ip4)


def test_reject_flag_in_a_request(host, peer):
    """RFC 5044 section 7.1.1: the flag means something in a reply only."""
    conn = peer.connect(host.ip4, PORT)
    conn.send(p.mpa_request(flags=p.MPA_CRC | p.MPA_REJECT))
    key, flags, _, _ = conn.recv_mpa()
    assert key == p.MPA_KEY_REP and not flags & p.MPA_REJECT, "expected the flag to be ignored"
    conn.reset()


def test_rst_out_of_window_is_ignored(host, peer):
    """D-12, RFC 5961: only a reset at the expected sequence number counts."""
    conn = peer.connect(host.ip4, PORT)
    conn.segment(flags=p.RST, seq=conn.seq + 0x40000000)
    conn.segment(flags=p.RST, seq=conn.seq - 1000)
    conn.send(p.mpa_request())
    assert conn.recv_mpa()[0] == p.MPA_KEY_REP
    conn.reset()


def test_syn_ack_in_a_synchronised_state(host, peer):
    """D-04: a stray SYN-ACK while the consumer decides does not end the connection."""
    conn = peer.connect(host.ip4, PORT)
    conn.segment(flags=p.SYN | p.ACK, seq=conn.seq - 1)
    conn.send(p.mpa_request())
    assert conn.recv_mpa()[0] == p.MPA_KEY_REP
    conn.segment(flags=p.SYN | p.ACK, seq=conn.seq - 1)
    conn.reset()
    exchange(peer, host.ip4)


def test_small_mss_is_survived(host, peer):
    """D-44: an MSS below the minimum is clamped or the SYN dropped, nothing worse."""
    for mss in (0, 1, 88, 535):
        peer.syn(host.ip4, PORT, options=p.mss_option(mss))
    exchange(peer, host.ip4)


def test_syn_flood(host, peer):
    """D-76: half-open connections are bounded; a real client still gets through."""
    rnd = random.Random(SEED)
    for _ in range(2000):
        peer.syn(host.ip4, PORT, sport=rnd.randint(1024, 65535), seq=rnd.getrandbits(32))
    peer.drain()
    exchange_eventually(peer, host.ip4)


def test_silent_clients_lose_their_place(host, peer):
    """D-48: clients that complete the handshake and say nothing must not close the listener."""
    for _ in range(BACKLOG + 2):
        try:
            peer.connect(host.ip4, PORT, ANSWER_S / 2)
        except p.PeerTimeout:
            break
    exchange_eventually(peer, host.ip4)


def test_random_bytes(host, peer):
    """C50: random damage anywhere in the IP and TCP headers of a SYN and of an MPA request."""
    rnd = random.Random(SEED)
    mac = peer.resolve(host.ip4)
    for _ in range(500):
        payload = b"" if rnd.random() < 0.5 else p.mpa_request()
        seg = p.tcp_segment(IP4, host.ip4, rnd.randint(1024, 65535), PORT, rnd.getrandbits(32),
                            flags=p.SYN if not payload else p.ACK, options=p.mss_option(1460), payload=payload)
        packet = bytearray(p.ip_header(IP4, host.ip4, len(seg)) + seg)
        for _ in range(rnd.randint(1, 4)):
            packet[rnd.randrange(len(packet))] = rnd.getrandbits(8)
        peer.send(p.ethernet(mac, peer.mac, 0x0800, bytes(packet)))
    exchange_eventually(peer, host.ip4)


@pytest.mark.parametrize("a", [0x8000, 0], ids=["peer-to-peer", "client-server"])
def test_version_2_reply(host, peer, a):
    """RFC 6581, C10: revision 2 is answered with revision 2; the flag A is echoed."""
    conn = peer.connect(host.ip4, PORT)
    conn.send(p.mpa_request(ird=a | 32, ord_=(0x4000 if a else 0) | 1))
    key, flags, revision, private = conn.recv_mpa()
    assert key == p.MPA_KEY_REP and revision == 2, f"expected a reply of revision 2, got {revision}"
    assert flags & p.MPA_ENHANCED and len(private) >= 4, "expected the control words in the reply"
    ird, ord_ = struct.unpack("!HH", private[:4])
    assert ird & 0x8000 == a, f"expected flag A to be {bool(a)}, the IRD word is {ird:#x}"
    if a:
        assert ord_ & 0xc000 == 0x4000, f"expected the RTR 'zero-length read', the ORD word is {ord_:#x}"
    assert ird & 0x3fff >= 1, "expected an IRD that serves the peer's ORD of 1"
    conn.reset()


def test_nothing_listens(host, peer):
    """The host's own stack answers where no listener is: a reset, at once."""
    sport, _ = peer.syn(host.ip4, 9)
    peer.expect(dport=sport, flags="R", timeout=2)
