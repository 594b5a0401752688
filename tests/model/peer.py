# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Scripted peer: a host on the wire that a test plays by hand.

A Peer is a port of the wire (protocol: wire.h) with a MAC address, one IPv4 and one
IPv6 address.  A thread receives frames, answers ARP, neighbour solicitations and
pings, and queues everything else for expect().  Frames are built field by field,
so a test can send what no TCP stack would:

    with Peer("/run/wire", "peer", ip4="10.0.0.9") as p:
        p.syn("10.0.0.1", 7174, options=b"\\x02\\x00")     # MSS option of length 0
        p.expect_silence(0.5, tcp=True, sport=7174)
        c = p.connect("10.0.0.1", 7174)                    # full handshake
        c.send(mpa_request(b"hello"))
        reply = c.recv_mpa()
        c.reset()

Standard library only.  RFC 793/9293 (TCP), 826 (ARP), 4861 (ND), 5044/6581 (MPA),
5041 (DDP), 5040 (RDMAP).
"""
import collections
import ipaddress
import random
import socket
import struct
import threading
import time

HELLO = b"rnicwire1 "
MIN_FRAME = 14
FIN, SYN, RST, PSH, ACK, URG = 1, 2, 4, 8, 16, 32
FLAG_LETTERS = {"F": FIN, "S": SYN, "R": RST, "P": PSH, "A": ACK, "U": URG}
MPA_KEY_REQ = b"MPA ID Req Frame"
MPA_KEY_REP = b"MPA ID Rep Frame"
MPA_MARKERS, MPA_CRC, MPA_REJECT, MPA_ENHANCED = 0x80, 0x40, 0x20, 0x10


class PeerTimeout(AssertionError):
    """Nothing that matches arrived in time; the message lists what did arrive."""


# None comes twice in a capture: tshark takes the first frames of the second connection for the first one's.
PORTS = iter(random.sample(range(20000, 60001), 40001))


def flag_bits(letters):
    """"SA" -> SYN | ACK."""
    return sum(FLAG_LETTERS[c] for c in letters)


def checksum(data, start=0):
    """Internet checksum (RFC 1071) of data; start is a partial sum."""
    if len(data) & 1:
        data += b"\0"
    total = start + sum(struct.unpack("!%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xffff) + (total >> 16)
    return ~total & 0xffff


_CRC_TABLE = []
for _i in range(256):
    for _ in range(8):
        _i = _i >> 1 ^ (0x82f63b78 if _i & 1 else 0)
    _CRC_TABLE.append(_i)


def crc32c(data, crc=0):
    """CRC32c of data (RFC 3720 appendix B.4); MPA stores it little endian."""
    crc ^= 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ _CRC_TABLE[(crc ^ byte) & 0xff]
    return crc ^ 0xffffffff


def mac_bytes(text):
    return bytes(int(x, 16) for x in text.split(":"))


# ---- building -------------------------------------------------------------------

def ethernet(dst, src, ethertype, payload, vlan=None):
    """Frame without FCS; dst and src are 6 bytes, vlan a tag control word or None."""
    tag = struct.pack("!HH", 0x8100, vlan) if vlan is not None else b""
    return dst + src + tag + struct.pack("!H", ethertype) + payload


def ip_header(src, dst, length, proto=6, ttl=64, tos=0, ident=0, frag=0x4000):
    """IPv4 or IPv6 header (by the family of src) for length bytes of payload."""
    src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
    if src.version == 6:
        return struct.pack("!IHBB", 6 << 28 | tos << 20, length, proto, ttl) + src.packed + dst.packed
    head = struct.pack("!BBHHHBBH", 0x45, tos, 20 + length, ident, frag, ttl, proto, 0)
    head += src.packed + dst.packed
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:]


def tcp_segment(src, dst, sport, dport, seq, ack=0, flags=ACK, window=65535, options=b"",
                payload=b"", data_offset=None, csum=None, urgent=0):
    """TCP header and payload.  options is padded with zeros to four bytes unless
    data_offset (in words) says what to claim; csum replaces the right checksum."""
    if data_offset is None:
        options += b"\0" * (-len(options) % 4)
        data_offset = 5 + len(options) // 4
    head = struct.pack("!HHIIBBHHH", sport, dport, seq & 0xffffffff, ack & 0xffffffff,
                       (data_offset & 15) << 4, flags, window, 0, urgent)
    seg = head + options + payload
    if csum is None:
        src, dst = ipaddress.ip_address(src), ipaddress.ip_address(dst)
        csum = checksum(seg, 6 + len(seg) + (~checksum(src.packed + dst.packed) & 0xffff))
    return seg[:16] + struct.pack("!H", csum) + seg[18:]


def mss_option(mss):
    return struct.pack("!BBH", 2, 4, mss)


def wscale_option(shift):
    return struct.pack("!BBBB", 1, 3, 3, shift)


# ---- MPA, DDP, RDMAP ------------------------------------------------------------

def mpa_frame(key, flags=MPA_CRC, revision=1, private=b"", length=None):
    """MPA request or reply frame; length replaces the private data length."""
    return key + struct.pack("!BBH", flags, revision,
                             len(private) if length is None else length) + private


def mpa_request(private=b"", flags=MPA_CRC, revision=1, ird=None, ord_=None, length=None):
    """MPA request.  ird/ord_ (RFC 6581, 16-bit words with their control bits) make it
    an enhanced one: revision 2, enhanced flag, the words before the private data."""
    if ird is not None:
        revision, flags = 2, flags | MPA_ENHANCED
        private = struct.pack("!HH", ird, ord_ or 0) + private
    return mpa_frame(MPA_KEY_REQ, flags, revision, private, length)


def mpa_reply(private=b"", flags=MPA_CRC, revision=1, ird=None, ord_=None, length=None):
    """MPA reply; arguments as for mpa_request()."""
    if ird is not None:
        revision, flags = 2, flags | MPA_ENHANCED
        private = struct.pack("!HH", ird, ord_ or 0) + private
    return mpa_frame(MPA_KEY_REP, flags, revision, private, length)


def fpdu(ulpdu, crc=None):
    """FPDU without markers around a ULPDU; crc replaces the right CRC32c."""
    data = struct.pack("!H", len(ulpdu)) + ulpdu
    data += b"\0" * (-len(data) % 4)
    return data + struct.pack("<I", crc32c(data) if crc is None else crc)


def ddp_untagged(opcode, queue, msn, payload=b"", mo=0, last=True, stag=0):
    """ULPDU of an untagged DDP segment; opcode is RDMAP's (3 send, 1 read request)."""
    return struct.pack("!BBIIII", (0x40 if last else 0) | 1, 0x40 | opcode, stag, queue, msn,
                       mo) + payload


def ddp_tagged(opcode, stag, offset, payload=b"", last=True):
    """ULPDU of a tagged DDP segment (0 write, 2 read response)."""
    return struct.pack("!BBIQ", 0x80 | (0x40 if last else 0) | 1, 0x40 | opcode, stag,
                       offset) + payload


# ---- parsing ---------------------------------------------------------------------

class Packet:
    """A received frame; fields that do not apply are None, offsets never run past the end.

    dst_mac, src_mac, vlan, ethertype; version, src, dst, proto; sport, dport, seq, ack,
    flags, window, options, payload, checksum_ok (TCP); raw.
    """

    def __init__(self, raw):
        self.raw = raw
        self.when = time.monotonic()
        self.dst_mac, self.src_mac = raw[0:6], raw[6:12]
        self.vlan = self.version = self.src = self.dst = self.proto = None
        self.sport = self.dport = self.seq = self.ack = self.flags = self.window = None
        self.options = self.payload = b""
        self.checksum_ok = None
        self.ethertype = struct.unpack_from("!H", raw, 12)[0]
        self.l3 = raw[14:]
        if self.ethertype == 0x8100 and len(raw) >= 18:
            self.vlan, self.ethertype = struct.unpack_from("!HH", raw, 14)
            self.l3 = raw[18:]
        if self.ethertype == 0x0800 and len(self.l3) >= 20:
            self._ipv4()
        elif self.ethertype == 0x86dd and len(self.l3) >= 40:
            self._ipv6()

    def _ipv4(self):
        p = self.l3
        self.version, self.proto = 4, p[9]
        self.src, self.dst = ipaddress.ip_address(p[12:16]), ipaddress.ip_address(p[16:20])
        total = struct.unpack_from("!H", p, 2)[0]
        self._l4(p[(p[0] & 15) * 4:total])

    def _ipv6(self):
        p = self.l3
        self.version, self.proto = 6, p[6]
        self.src, self.dst = ipaddress.ip_address(p[8:24]), ipaddress.ip_address(p[24:40])
        self._l4(p[40:40 + struct.unpack_from("!H", p, 4)[0]])

    def _l4(self, p):
        self.l4 = p
        if self.proto != 6 or len(p) < 20:
            return
        self.sport, self.dport, self.seq, self.ack, off, self.flags, self.window = \
            struct.unpack_from("!HHIIBBH", p)
        head = (off >> 4) * 4
        self.options, self.payload = p[20:head], p[head:]
        pseudo = ~checksum(self.src.packed + self.dst.packed) & 0xffff
        self.checksum_ok = checksum(p, 6 + len(p) + pseudo) == 0

    @property
    def tcp(self):
        return self.sport is not None

    def option(self, kind):
        """Content of the first TCP option of that kind, or None."""
        o = self.options
        while o and o[0] != 0:
            if o[0] == 1:
                o = o[1:]
                continue
            if len(o) < 2 or o[1] < 2:
                return None
            if o[0] == kind:
                return o[2:o[1]]
            o = o[o[1]:]
        return None

    def __repr__(self):
        if not self.tcp:
            return "<frame type %04x proto %s %d bytes>" % (self.ethertype, self.proto, len(self.raw))
        letters = "".join(c for c, b in FLAG_LETTERS.items() if self.flags & b)
        return "<%s:%d > %s:%d [%s] seq %d ack %d len %d>" % (
            self.src, self.sport, self.dst, self.dport, letters, self.seq, self.ack,
            len(self.payload))


def _matches(pkt, test, fields):
    if test and not test(pkt):
        return False
    for name, want in fields.items():
        have = getattr(pkt, name)
        if name == "flags" and isinstance(want, str):
            if have is None or have & flag_bits(want) != flag_bits(want):
                return False
        elif name in ("src", "dst"):
            if have != ipaddress.ip_address(want):
                return False
        elif have != want:
            return False
    return True


# ---- the peer ---------------------------------------------------------------------

class Peer:
    """One port of the wire.  answer=False switches ARP, ND and ping answers off."""

    def __init__(self, wire, name, mac="02:00:00:00:99:01", ip4="10.0.0.9", ip6="fd00::9",
                 answer=True):
        self.name, self.mac, self.answer = name, mac_bytes(mac), answer
        self.ip4, self.ip6 = ipaddress.ip_address(ip4), ipaddress.ip_address(ip6)
        self.link = False
        self._packets = collections.deque()
        self._neighbours = {}
        self._cond = threading.Condition()
        self._closed = False
        self._sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
        self._sock.connect(wire)
        self._sock.send(HELLO + name.encode())
        self._thread = threading.Thread(target=self._receive, daemon=True)
        self._thread.start()
        with self._cond:
            self._cond.wait_for(lambda: self.link or self._closed, 5)
        if not self.link:
            self.close()
            raise ConnectionError("the wire refuses port name %r" % name)

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

    def close(self):
        with self._cond:
            self._closed = True
        try:
            self._sock.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass
        self._thread.join()
        self._sock.close()

    def address(self, version):
        """Our own address of that IP version."""
        return self.ip4 if version == 4 else self.ip6

    # -- receiving --

    def _receive(self):
        while True:
            try:
                data = self._sock.recv(65536)
            except OSError:
                data = b""
            with self._cond:
                if not data:
                    self._closed = True
                elif len(data) < MIN_FRAME:
                    self.link = {b"up": True, b"down": False}.get(data, self.link)
                else:
                    pkt = Packet(data)
                    if not self._answer(pkt):
                        self._packets.append(pkt)
                self._cond.notify_all()
                if self._closed:
                    return

    def _answer(self, pkt):
        """ARP, ND and ping; True: done with, nobody needs to see it."""
        if pkt.ethertype == 0x0806 and len(pkt.l3) >= 28:
            return self._answer_arp(pkt)
        if pkt.proto == 58 and pkt.version == 6 and len(pkt.l4) >= 24 and pkt.l4[0] in (135, 136):
            return self._answer_nd(pkt)
        if self.answer and pkt.proto in (1, 58) and pkt.l4[:1] in (b"\x08", b"\x80") \
                and pkt.dst == self.address(pkt.version):
            self._answer_ping(pkt)
            return True
        return False

    def _answer_arp(self, pkt):
        oper = struct.unpack_from("!H", pkt.l3, 6)[0]
        mac, sender, target = pkt.l3[8:14], pkt.l3[14:18], pkt.l3[24:28]
        self._neighbours[ipaddress.ip_address(sender)] = mac
        if oper == 1 and target == self.ip4.packed and self.answer:
            self.send(ethernet(mac, self.mac, 0x0806, struct.pack("!HHBBH", 1, 0x0800, 6, 4, 2)
                               + self.mac + target + mac + sender))
        return True

    def _answer_nd(self, pkt):
        target = ipaddress.ip_address(pkt.l4[8:24])
        if pkt.l4[0] == 136:
            self._neighbours[target] = pkt.src_mac
            return True
        if not pkt.src.is_unspecified:
            self._neighbours[pkt.src] = pkt.src_mac
        if target == self.ip6 and self.answer:
            self.send_icmp6(pkt.src, pkt.src_mac, struct.pack("!BBHI", 136, 0, 0, 0x60000000)
                            + self.ip6.packed + b"\x02\x01" + self.mac)
        return True

    def _answer_ping(self, pkt):
        if pkt.version == 4:
            body = b"\0\0\0\0" + pkt.l4[4:]
            body = body[:2] + struct.pack("!H", checksum(body)) + body[4:]
            self.send(ethernet(pkt.src_mac, self.mac, 0x0800,
                               ip_header(self.ip4, pkt.src, len(body), proto=1) + body))
        else:
            self.send_icmp6(pkt.src, pkt.src_mac, b"\x81\0\0\0" + pkt.l4[4:])

    def expect(self, test=None, timeout=5, **fields):
        """The next packet that matches; what came before it is thrown away.

        test: a function of a Packet, or None.  fields: attributes of Packet and the
        values wanted; flags="SA" wants these set, others may be.
        """
        skipped, deadline = [], time.monotonic() + timeout
        with self._cond:
            while True:
                while self._packets:
                    pkt = self._packets.popleft()
                    if _matches(pkt, test, fields):
                        return pkt
                    skipped.append(pkt)
                left = deadline - time.monotonic()
                if left <= 0 or self._closed:
                    raise PeerTimeout("peer %s: nothing matches %s in %.1f s; got %s"
                                      % (self.name, fields or test, timeout, skipped[-8:]))
                self._cond.wait(left)

    def expect_silence(self, seconds, test=None, **fields):
        """Fail when a matching packet arrives within the time."""
        try:
            pkt = self.expect(test, seconds, **fields)
        except PeerTimeout:
            return
        raise AssertionError("peer %s: unexpected %r" % (self.name, pkt))

    def drain(self):
        """Throw away what was received so far; returns it."""
        with self._cond:
            old = list(self._packets)
            self._packets.clear()
        return old

    # -- sending --

    def send(self, frame):
        self._sock.send(frame)

    def send_icmp6(self, dst, mac, body):
        """ICMPv6 message with the checksum filled in, hop limit 255."""
        pseudo = ~checksum(self.ip6.packed + dst.packed) & 0xffff
        body = body[:2] + struct.pack("!H", checksum(body, 58 + len(body) + pseudo)) + body[4:]
        self.send(ethernet(mac, self.mac, 0x86dd,
                           ip_header(self.ip6, dst, len(body), proto=58, ttl=255) + body))

    def resolve(self, ip, timeout=5):
        """MAC address of a neighbour (ARP or neighbour solicitation)."""
        ip = ipaddress.ip_address(ip)
        deadline = time.monotonic() + timeout
        while True:
            with self._cond:
                if ip in self._neighbours:
                    return self._neighbours[ip]
            if time.monotonic() >= deadline:
                raise PeerTimeout("peer %s: %s does not answer" % (self.name, ip))
            self._solicit(ip)
            with self._cond:
                self._cond.wait_for(lambda: ip in self._neighbours, 0.5)

    def _solicit(self, ip):
        if ip.version == 4:
            self.send(ethernet(b"\xff" * 6, self.mac, 0x0806,
                               struct.pack("!HHBBH", 1, 0x0800, 6, 4, 1) + self.mac +
                               self.ip4.packed + b"\0" * 6 + ip.packed))
            return
        group = ipaddress.ip_address(int(ipaddress.ip_address("ff02::1:ff00:0")) |
                                     int(ip) & 0xffffff)
        self.send_icmp6(group, b"\x33\x33" + group.packed[12:],
                        struct.pack("!BBHI", 135, 0, 0, 0) + ip.packed + b"\x01\x01" + self.mac)

    def send_tcp(self, dst, sport, dport, vlan=None, dst_mac=None, src=None, **tcp):
        """One TCP segment; further arguments as for tcp_segment()."""
        dst = ipaddress.ip_address(dst)
        src = ipaddress.ip_address(src) if src else self.address(dst.version)
        seg = tcp_segment(src, dst, sport, dport, **tcp)
        self.send(ethernet(dst_mac or self.resolve(dst), self.mac,
                           0x0800 if dst.version == 4 else 0x86dd,
                           ip_header(src, dst, len(seg)) + seg, vlan))

    def syn(self, dst, dport, sport=None, seq=None, options=mss_option(1460), **tcp):
        """Send a SYN; returns (sport, seq)."""
        sport = sport or next(PORTS)
        seq = random.getrandbits(32) if seq is None else seq
        self.send_tcp(dst, sport, dport, seq=seq, flags=SYN, options=options, **tcp)
        return sport, seq

    def connect(self, dst, dport, timeout=5, **syn):
        """Three-way handshake as the active side; returns a Conn."""
        sport, seq = self.syn(dst, dport, **syn)
        pkt = self.expect(timeout=timeout, src=dst, sport=dport, dport=sport, flags="SA")
        conn = Conn(self, dst, sport, dport, seq + 1, pkt.seq + 1)
        conn.syn_ack = pkt
        conn.send_ack()
        return conn

    def accept(self, port, timeout=10, options=mss_option(1460), seq=None):
        """Wait for a SYN to the port and complete the handshake as the passive side."""
        pkt = self.expect(lambda p: p.tcp and not p.flags & ACK, timeout, dport=port, flags="S")
        seq = random.getrandbits(32) if seq is None else seq
        conn = Conn(self, pkt.src, port, pkt.sport, seq + 1, pkt.seq + 1)
        conn.syn = pkt
        self.send_tcp(pkt.src, port, pkt.sport, seq=seq, ack=pkt.seq + 1, flags=SYN | ACK,
                      options=options)
        self.expect(timeout=timeout, src=str(pkt.src), sport=pkt.sport, dport=port, flags="A")
        return conn


class Conn:
    """A TCP connection of a Peer: sequence numbers are kept, nothing is retransmitted."""

    def __init__(self, peer, dst, sport, dport, seq, ack):
        self.peer, self.dst = peer, str(dst)
        self.sport, self.dport = sport, dport
        self.seq, self.ack = seq & 0xffffffff, ack & 0xffffffff
        self.buffer = b""
        self.fin = self.reset_seen = False
        self.syn = self.syn_ack = None

    def segment(self, payload=b"", flags=ACK, **tcp):
        """Send a segment at the current position without moving it."""
        tcp.setdefault("seq", self.seq)
        tcp.setdefault("ack", self.ack)
        self.peer.send_tcp(self.dst, self.sport, self.dport, flags=flags, payload=payload, **tcp)

    def send_ack(self):
        self.segment()

    def send(self, data, mss=1448):
        """Send bytes, cut into segments."""
        for at in range(0, len(data), mss):
            part = data[at:at + mss]
            self.segment(part, flags=ACK | PSH)
            self.seq = (self.seq + len(part)) & 0xffffffff

    def send_fin(self):
        self.segment(flags=FIN | ACK)
        self.seq = (self.seq + 1) & 0xffffffff

    def reset(self):
        self.segment(flags=RST | ACK)

    def expect(self, timeout=5, **fields):
        """Next segment of this connection that matches."""
        return self.peer.expect(timeout=timeout, src=self.dst, sport=self.dport, dport=self.sport,
                                **fields)

    def _pump(self, timeout):
        pkt = self.expect(timeout)
        if pkt.flags & RST:
            self.reset_seen = True
            raise ConnectionResetError("%r" % pkt)
        if pkt.seq != self.ack:
            if pkt.payload:
                self.send_ack()
            return
        self.buffer += pkt.payload
        self.ack = (self.ack + len(pkt.payload)) & 0xffffffff
        if pkt.flags & FIN:
            self.fin = True
            self.ack = (self.ack + 1) & 0xffffffff
        if pkt.payload or pkt.flags & FIN:
            self.send_ack()

    def recv(self, n, timeout=5):
        """Exactly n bytes of the stream."""
        deadline = time.monotonic() + timeout
        while len(self.buffer) < n:
            if self.fin:
                raise EOFError("connection closed after %d of %d bytes" % (len(self.buffer), n))
            self._pump(max(deadline - time.monotonic(), 0))
        data, self.buffer = self.buffer[:n], self.buffer[n:]
        return data

    def recv_mpa(self, timeout=5):
        """MPA request or reply: (key, flags, revision, private data)."""
        head = self.recv(20, timeout)
        flags, revision, length = struct.unpack("!BBH", head[16:])
        return head[:16], flags, revision, self.recv(length, timeout)

    def recv_fpdu(self, timeout=5):
        """ULPDU of the next FPDU (no markers); checks the CRC."""
        head = self.recv(2, timeout)
        length = struct.unpack("!H", head)[0]
        rest = self.recv(length + (-(2 + length) % 4) + 4, timeout)
        crc = struct.unpack("<I", rest[-4:])[0]
        if crc != crc32c(head + rest[:-4]):
            raise AssertionError("FPDU with a bad CRC: %s" % (head + rest).hex())
        return rest[:length]

    def wait_fin(self, timeout=5):
        """Read until the other side closes; returns the bytes that came before."""
        deadline = time.monotonic() + timeout
        while not self.fin:
            self._pump(max(deadline - time.monotonic(), 0))
        data, self.buffer = self.buffer, b""
        return data
