#!/usr/bin/python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Have tshark judge every frame of the connections that test_golden makes.

usage: golden.py TEST_GOLDEN CAPTURE SEED ROUNDS

The capture names the variant of each frame in a comment.  What is expected is written here,
from RFC 9293 (TCP), RFC 5044 section 7.1 (MPA) and RFC 6581 sections 6 and 9 (enhanced MPA).
Where these leave a choice, the engine asks for CRCs and not for markers, and prefers a read as
ready-to-receive message.
"""
import shutil
import struct
import subprocess
import sys
from dataclasses import dataclass

PATTERN = bytes((i * 7 + 1) & 0xff for i in range(512))
OURS, THEIRS, SCRIPT = "10.0.0.1", "10.0.0.2", "10.0.0.99"
PORT = "20886"
DEVICE_DEPTH = 64
UNSPECIFIED = 0x3fff            # RFC 6581 section 9.1: the ULPs settle the depths themselves

FIELDS = """frame.number frame.comment frame.protocols eth.src eth.dst eth.type vlan.id vlan.priority
vlan.etype ip.src ip.dst ip.len ip.dsfield ip.proto ip.checksum.status
ipv6.src ipv6.dst ipv6.plen ipv6.nxt ipv6.tclass tcp.srcport tcp.dstport tcp.seq tcp.ack
tcp.len tcp.hdr_len tcp.flags tcp.window_size_value tcp.urgent_pointer
tcp.checksum.status tcp.options tcp.options.mss_val tcp.options.wscale.shift tcp.payload
iwarp_mpa.key.req iwarp_mpa.key.rep iwarp_mpa.marker_flag iwarp_mpa.crc_flag iwarp_mpa.rej_flag
iwarp_mpa.res iwarp_mpa.rev iwarp_mpa.pdlength iwarp_mpa.privatedata iwarp_mpa.bad_length
_ws.malformed _ws.expert.message""".split()
TSHARK = ["tshark", "-n", "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|",
          "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE",
          "-o", "tcp.relative_sequence_numbers:TRUE", "-o", "tcp.analyze_sequence_numbers:TRUE",
          "-o", "tcp.try_heuristic_first:TRUE"]

BOOLEANS = {"True": "1", "False": "0"}      # as tshark writes them since 4.2

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
# Remarks of tshark about orderly TCP; all else that it has to say is a fault.
REMARKS = ("Connection establish", "Connection finish", "This frame initiates the connection closing",
           "This frame undergoes the connection closing", "A new tcp session is started with the same ports",
           "The SYN packet does not contain a SACK PERM option", "Partial Acknowledgement of a segment")


@dataclass
class Mpa:
    """A start-up frame: RFC 5044 section 7.1.1, RFC 6581 section 6."""
    reply: bool
    rev: int = 2
    pdata: int = 0
    words: bytes = b""          # RFC 6581 section 9; their presence is the S flag
    mask: bytes = b""           # bits of the words that an RFC settles, all if empty
    markers: int = 0
    crc: int = 1
    reject: int = 0

    def private(self):
        return self.words + PATTERN[:self.pdata]

    def flags(self):
        return self.markers << 7 | self.crc << 6 | self.reject << 5 | (0x10 if self.words else 0)

    def key(self):
        return b"MPA ID Rep Frame" if self.reply else b"MPA ID Req Frame"

    def bytes(self):
        return self.key() + struct.pack(">BBH", self.flags(), self.rev, len(self.private())) + self.private()


@dataclass
class Frame:
    """What one frame has to be; side: C opened the connection, S did not."""
    side: str
    flags: int
    mpa: Mpa = None
    fin_unseen: bool = False    # the ACK is from before the peer's FIN was looked at
    bare: int = 0               # 1: SYN without options, 2: the answer to that
    seq: int = None             # where it is not what comes next
    ack: int = None
    hw: bool = False            # made by the simulated hardware from the QP context, not by the engine


@dataclass
class Variant:
    frames: list
    client: str = OURS
    server: str = THEIRS
    v6: bool = False
    vlan: int = None
    tos: int = 0


def words(ird, ord, flags):
    """RFC 6581 section 9: A and B above IRD, C and D above ORD."""
    a, b, c, d = (int(f in flags) for f in "ABCD")
    return struct.pack(">HH", a << 15 | b << 14 | ird, c << 15 | d << 14 | ord)


def req(ird=8, ord=8, pdata=0, flags="ACD", **kw):
    return Mpa(False, 2, pdata, words(ird, ord, flags), **kw)


def rep(ird=8, ord=8, pdata=0, flags="AD", **kw):
    return Mpa(True, 2, pdata, words(ird, ord, flags), **kw)


def rej(pdata=0, flags="AD"):
    """A refusal: RFC 6581 says nothing of the depths in it."""
    return Mpa(True, 2, pdata, words(0, 0, flags), mask=words(0, 0, "ABCD"), reject=1)


def v1(reply, pdata=0, rev=1, **kw):
    return Mpa(reply, rev, pdata, **kw)


def handshake():
    """RFC 9293 section 3.5, the client's ACK not included."""
    return [Frame("C", SYN), Frame("S", SYN | ACK)]


def opened(request):
    """The engine's request carries the ACK of the handshake."""
    return handshake() + [Frame("C", ACK, request)]


def confirmed(reply):
    """Where a ready-to-receive frame follows, which is the hardware's, it acknowledges the reply as well."""
    return [] if reply.words and reply.words[0] & 0x80 else [Frame("C", ACK)]


def pair(request, reply, **kw):
    """The reply comes within 20 ms and acknowledges the request (RFC 9293 section 3.8.6.3)."""
    frames = opened(request)
    if reply.reject:
        # RFC 5044 section 7.1.2: a refusing responder closes; FIN and reply share a segment.
        frames += [Frame("S", FIN | ACK, reply), Frame("C", ACK, fin_unseen=True), Frame("C", FIN | ACK),
                   Frame("S", ACK)]
    else:
        frames += [Frame("S", ACK, reply, hw=True)] + confirmed(reply)
    return Variant(frames, **kw)


def asked(request, reply):
    """A scripted client; reply None: the engine resets (RFC 5044 section 7.1.2)."""
    frames = handshake() + [Frame("C", ACK), Frame("C", ACK, request)]
    if not reply:
        frames += [Frame("S", RST | ACK)]
    elif reply.reject:
        frames += [Frame("S", FIN | ACK, reply), Frame("C", ACK), Frame("C", FIN | ACK), Frame("S", ACK)]
    else:
        frames += [Frame("S", ACK, reply, hw=True), Frame("C", ACK)]
    return Variant(frames, client=SCRIPT, server=OURS)


def answered(request, reply, reset=False, before=()):
    """A scripted server; before: frames of an attempt that failed."""
    frames = list(before) + opened(request) + [Frame("S", ACK, reply)]
    if reset:
        frames += [Frame("C", RST | ACK)]
    elif reply.reject:
        frames += [Frame("C", ACK), Frame("C", FIN | ACK), Frame("S", FIN | ACK), Frame("C", ACK)]
    else:
        frames += confirmed(reply)
    return Variant(frames, client=OURS, server=SCRIPT)


def bare_syn(variant):
    for i in range(2):
        variant.frames[i].bare = i + 1
    return variant


def by_rst(request):
    return opened(request) + [Frame("S", RST | ACK)]


def by_fin(request):
    """RFC 9293 section 3.6: the engine gives up its own half of the old connection by RST."""
    return opened(request) + [Frame("S", FIN | ACK), Frame("C", RST | ACK)]


FULL = 508                      # RFC 5044 section 7.1.1: 512 bytes; the words of RFC 6581 count
VARIANTS = {
    "pair": pair(req(), rep()),
    # RFC 6581 section 9.1: the responder's ORD is at most the initiator's IRD.
    "pair, 1 byte, depth 0 and 1": pair(req(0, 1, 1), rep(1, 0, 1)),
    "pair, 508 bytes, depth 32": pair(req(32, 32, FULL), rep(32, 32, FULL)),
    # Who offers a read as ready-to-receive message needs to be able to issue one, and who
    # chooses it to take one (section 9.2).
    "pair, ORD 0": pair(req(8, 1), rep(1, 8)),
    # The responder's IRD is at least the initiator's ORD.
    "pair, unequal depths": pair(req(4, 20), rep(20, 4)),
    "pair, depths above the device's": pair(req(DEVICE_DEPTH, DEVICE_DEPTH), rep(DEVICE_DEPTH, DEVICE_DEPTH)),
    "pair, reject": pair(req(), rej()),
    "pair, reject with 1 byte": pair(req(pdata=1), rej(1)),
    "pair, reject with 255 bytes": pair(req(pdata=FULL), rej(255)),
    "pair, raw": pair(req(pdata=FULL), rep(pdata=FULL)),
    "pair, raw with TOS": pair(req(), rep(), tos=0xb8),
    "pair, raw reject": pair(req(), rej(255)),
    "pair, VLAN": pair(req(pdata=1), rep(pdata=1), vlan=100),
    "pair, raw VLAN with priority": pair(req(pdata=1), rep(pdata=1), vlan=4094, tos=0xb8),
    "pair, IPv6": pair(req(pdata=FULL), rep(pdata=FULL), v6=True),
    "pair, IPv6 reject": pair(req(), rej(1), v6=True),
    "pair, raw IPv6": pair(req(pdata=FULL), rep(pdata=FULL), v6=True, tos=0xb8),
    "pair, raw IPv6 VLAN reject": pair(req(pdata=1), rej(255), v6=True, vlan=5, tos=0x28),

    "request v1": asked(v1(False), v1(True)),
    "request v1, SYN without options": bare_syn(asked(v1(False), v1(True))),
    "request v1, 1 byte": asked(v1(False, 1), v1(True, 1)),
    "request v1, 512 bytes": asked(v1(False, 512), v1(True, 512)),
    # RFC 5044 section 7.1.1: CRCs are used if either side asks for them; M is only about
    # what the sender of the flag wants to receive.
    "request v1, no CRC": asked(v1(False, crc=0), v1(True)),
    "request v1, markers": asked(v1(False, markers=1), v1(True)),
    "request v1, reject": asked(v1(False, 1), v1(True, reject=1)),
    "request v1, reject with 255 bytes": asked(v1(False, 1), v1(True, 255, reject=1)),
    # RFC 6581 section 6: without S there are no words in a frame of revision 2.
    "request v2, no block": asked(v1(False, 3, rev=2), v1(True, 3, rev=2)),
    "request v2, no CRC": asked(req(crc=0), rep()),
    "request v2, markers": asked(req(markers=1), rep()),
    # Section 9.2: A is as in the request; without it there is no ready-to-receive message.
    "request v2, client-server": asked(req(4, 2, 1, ""), rep(8, 4, 1, "")),
    "request v2, client-server reject": asked(req(4, 2, 1, ""), rej(1, "")),
    # Section 9.2: the reply has one kind that the request had; hardware cannot send B.
    "request v2, B": asked(req(flags="AB"), None),
    "request v2, C": asked(req(flags="AC"), rep(flags="AC")),
    "request v2, D": asked(req(flags="AD"), rep(flags="AD")),
    "request v2, B and C": asked(req(flags="ABC"), rep(flags="AC")),
    "request v2, B, C and D": asked(req(pdata=FULL, flags="ABCD"), rep(pdata=FULL)),
    "request v2, depth 0": asked(req(0, 0, flags="AC"), rep(0, 0, flags="AC")),
    "request v2, depth 0, D": asked(req(0, 0, flags="AD"), rep(1, 0)),
    "request v2, depth 1": asked(req(1, 1), rep(1, 1)),
    "request v2, depth 32": asked(req(32, 32), rep(32, 32)),
    "request v2, depth 0x3fff": asked(req(UNSPECIFIED, UNSPECIFIED), rep(UNSPECIFIED, UNSPECIFIED)),
    "request v2, IRD 0x3ffe": asked(req(0x3ffe, 1), rep(DEVICE_DEPTH, DEVICE_DEPTH)),
    "request v3": asked(Mpa(False, 3), None),
    # RFC 9293 section 3.5.2, group 2: the RST takes its number from the ACK.
    "ACK of what was not sent": Variant(handshake() + [Frame("C", ACK, ack=77), Frame("S", RST, seq=77)],
                                        client=SCRIPT, server=OURS),

    "reply v2, D": answered(req(32, 32), rep(32, 32, FULL)),
    "reply v2, C": answered(req(0, 1, 1), rep(0, 0, flags="AC")),
    "reply v2, B": answered(req(), rep(flags="AB"), reset=True),
    "reply v2, client-server": answered(req(), rep(flags="D"), reset=True),
    "reply v2, depth 0x3fff": answered(req(), rep(UNSPECIFIED, UNSPECIFIED, 1)),
    "reply v2, too much ORD": answered(req(), rep(8, DEVICE_DEPTH + 1, 1), reset=True),
    "reply v2, no CRC": answered(req(), rep(crc=0)),
    "reply v2, markers": answered(req(), rep(markers=1)),
    "reply v2, reject": answered(req(), rep(0, 0, 1, reject=1)),
    # RFC 6581 section 10: a responder that knows v1 only may answer so, or close.
    "reply v1 to v2": answered(req(), v1(True, 512)),
    "reply v1 to v2, reject": answered(req(), v1(True, reject=1)),
    "refused by RST, then v1": answered(v1(False, FULL), v1(True, 1), before=by_rst(req(pdata=FULL))),
    "refused by FIN, then v1": answered(v1(False), v1(True), before=by_fin(req())),
    "refused by RST, v1 rejected": answered(v1(False, 1), v1(True, reject=1), before=by_rst(req(pdata=1))),
}


class Checker:
    """Compares the frames of one variant with what tshark says of them."""

    def __init__(self, name, variant):
        self.name, self.variant, self.faults = name, variant, []
        self.nxt = self.fin = None

    def expect(self, got, field, want, source):
        if got[field] != str(want):
            self.faults.append(f"{self.name}: {field} of frame {got['frame.number']} is "
                               f"'{got[field]}', not '{want}' ({source})")

    def ethernet(self, got, frame, src, dst):
        for field, addr in (("eth.src", src), ("eth.dst", dst)):
            mac = "02:00:" + ":".join(f"{int(part):02x}" for part in addr.split("."))
            self.expect(got, field, mac, "the neighbour's address")
        vlan = self.variant.vlan
        ethertype = "0x86dd" if self.variant.v6 else "0x0800"
        self.expect(got, "eth.type", ethertype if vlan is None else "0x8100", "IEEE 802.1Q")
        self.expect(got, "vlan.etype", "" if vlan is None else ethertype, "IEEE 802.1Q")
        self.expect(got, "vlan.id", "" if vlan is None else vlan, "IEEE 802.1Q")
        if vlan is not None and not frame.hw:
            self.expect(got, "vlan.priority", self.variant.tos >> 5, "IEEE 802.1Q, the route's priority")

    def ip(self, got, frame, src, dst):
        tcp_len = int(got["tcp.hdr_len"]) + int(got["tcp.len"])
        if self.variant.v6:
            src, dst = (f"fd00::{int(a):x}{int(b):02x}:{int(c) << 8 | int(d):x}"
                        for a, b, c, d in (addr.split(".") for addr in (src, dst)))
            self.expect(got, "ipv6.src", src, "RFC 8200 section 3")
            self.expect(got, "ipv6.dst", dst, "RFC 8200 section 3")
            self.expect(got, "ipv6.plen", tcp_len, "RFC 8200 section 3")
            self.expect(got, "ipv6.nxt", 6, "RFC 8200 section 3")
            tos = "ipv6.tclass"
        else:
            self.expect(got, "ip.src", src, "RFC 791 section 3.1")
            self.expect(got, "ip.dst", dst, "RFC 791 section 3.1")
            self.expect(got, "ip.len", 20 + tcp_len, "RFC 791 section 3.1")
            self.expect(got, "ip.proto", 6, "RFC 791 section 3.1")
            self.expect(got, "ip.checksum.status", 1, "RFC 791 section 3.1")
            tos = "ip.dsfield"
        if not frame.hw and int(got[tos] or "-1", 0) != self.variant.tos:
            self.expect(got, tos, hex(self.variant.tos), "RFC 2474 section 3")

    def options(self, got, frame):
        if not frame.flags & SYN:
            self.expect(got, "tcp.options", "", "RFC 9293 section 3.2: MSS and scale go with SYN only")
            return
        mss = 1500 - (60 if self.variant.v6 else 40)
        if frame.bare:
            # Without an MSS the peer takes segments of 536 bytes; we may announce up to our MTU.
            want = "" if frame.bare == 1 else f"0204{int(got['tcp.options.mss_val'] or '0'):04x}"
            self.expect(got, "tcp.options", want, "RFC 7323 section 2.2: no scale, the SYN had none")
            if frame.bare == 2 and not 536 <= int(got["tcp.options.mss_val"] or "0") <= mss:
                self.expect(got, "tcp.options.mss_val", f"536..{mss}", "RFC 9293 section 3.7.1")
            return
        self.expect(got, "tcp.options.mss_val", mss, "RFC 9293 section 3.7.1, MTU 1500")
        shift = int(got["tcp.options.wscale.shift"] or "99")
        if shift > 14:
            self.expect(got, "tcp.options.wscale.shift", "0..14", "RFC 7323 section 2.3")
        want = struct.pack(">BBHBBBB", 2, 4, mss, 3, 3, shift, 0).hex()
        self.expect(got, "tcp.options", want, "RFC 9293 section 3.2, RFC 7323 section 2.2")

    def tcp(self, got, frame):
        peer = "S" if frame.side == "C" else "C"
        if frame.flags == SYN:
            self.nxt, self.fin = {"C": 0, "S": 0}, {"C": 0, "S": 0}
        # Nothing is queued behind a start-up frame, so it is pushed.
        want = frame.flags | (PSH if frame.mpa and not frame.hw else 0)
        if int(got["tcp.flags"], 16) & (~PSH if frame.hw else ~0) != want:
            self.expect(got, "tcp.flags", f"0x{want:04x}", "RFC 9293 sections 3.5, 3.6 and 3.9.1.2")
        seq = self.nxt[frame.side] if frame.seq is None else frame.seq
        ack = self.nxt[peer] - (self.fin[peer] if frame.fin_unseen else 0)
        self.expect(got, "tcp.seq", seq, "RFC 9293 section 3.4")
        if frame.flags & ACK:
            self.expect(got, "tcp.ack", ack if frame.ack is None else frame.ack, "RFC 9293 section 3.4")
        self.expect(got, "tcp.len", len(frame.mpa.bytes()) if frame.mpa else 0, "RFC 5044 section 7.1.1")
        opt_len = len(got["tcp.options"]) // 2
        self.expect(got, "tcp.hdr_len", 20 + opt_len, "RFC 9293 section 3.1")
        self.expect(got, "tcp.urgent_pointer", 0, "RFC 9293 section 3.1")
        self.expect(got, "tcp.checksum.status", 1, "RFC 9293 section 3.1")
        if not frame.flags & RST and got["tcp.window_size_value"] == "0":
            self.expect(got, "tcp.window_size_value", "above 0", "RFC 9293 section 3.8.6")
        self.fin[frame.side] = frame.flags & FIN
        self.nxt[frame.side] += int(got["tcp.len"]) + bool(frame.flags & (SYN | FIN))

    def mpa(self, got, frame):
        mpa = frame.mpa
        if not mpa:
            for field in ("tcp.payload", "iwarp_mpa.key.req", "iwarp_mpa.key.rep"):
                self.expect(got, field, "", "RFC 5044 section 7.1: nothing else is sent before the reply")
            return
        source = "RFC 5044 section 7.1.1"
        self.expect(got, "iwarp_mpa.key.req", "" if mpa.reply else mpa.key().hex(), source)
        self.expect(got, "iwarp_mpa.key.rep", mpa.key().hex() if mpa.reply else "", source)
        self.expect(got, "iwarp_mpa.marker_flag", mpa.markers, source)
        self.expect(got, "iwarp_mpa.crc_flag", mpa.crc, source)
        self.expect(got, "iwarp_mpa.rej_flag", mpa.reject, source)
        self.expect(got, "iwarp_mpa.res", f"0x{mpa.flags() & 0x1f:02x}", "RFC 6581 section 6: S")
        self.expect(got, "iwarp_mpa.rev", mpa.rev, source)
        self.expect(got, "iwarp_mpa.pdlength", len(mpa.private()), source + ", RFC 6581 section 6")
        self.private(got, "iwarp_mpa.privatedata", mpa, b"")
        self.private(got, "tcp.payload", mpa, mpa.bytes()[:20])

    def private(self, got, field, mpa, before):
        """Compare bytes, without the bits of the words that nothing is said of."""
        have, want = bytes.fromhex(got[field]), before + mpa.private()
        if mpa.mask and len(have) >= len(before) + 4:
            at = len(before)
            cut = bytes(x & m for x, m in zip(have[at:], mpa.mask))
            have = have[:at] + cut + have[at + 4:]
        self.expect({**got, field: have.hex()}, field, want.hex(), "RFC 6581 section 9")

    def expert(self, got, frame):
        self.expect(got, "_ws.malformed", "", "tshark")
        self.expect(got, "iwarp_mpa.bad_length", "", "tshark")
        for text in got["_ws.expert.message"].split("|"):
            meant = (frame.flags & RST and text == "Connection reset (RST)"
                     or frame.ack is not None and text.startswith("ACKed segment"))
            if text and text != self.name and not meant and not text.startswith(REMARKS):
                self.faults.append(f"{self.name}: tshark says of frame {got['frame.number']}: {text}")

    def run(self, packets):
        frames = self.variant.frames
        if len(packets) != len(frames):
            flags = " ".join(p["tcp.flags"][-2:] for p in packets)
            self.faults.append(f"{self.name}: {len(packets)} frames (TCP flags {flags}), not {len(frames)}")
        for got, frame in zip(packets, frames):
            src, dst = self.variant.client, self.variant.server
            if frame.side == "S":
                src, dst = dst, src
            self.ethernet(got, frame, src, dst)
            self.expect(got, "tcp.dstport" if frame.side == "C" else "tcp.srcport", PORT, "the listener")
            if not got["tcp.hdr_len"] or not got["tcp.len"]:
                self.faults.append(f"{self.name}: frame {got['frame.number']} is {got['frame.protocols']}, not TCP")
                break
            self.ip(got, frame, src, dst)
            self.tcp(got, frame)
            self.options(got, frame)
            self.mpa(got, frame)
            self.expert(got, frame)
        return self.faults


def dissect(capture):
    """Return {variant: [{field: value}]} as tshark reads the capture."""
    argv = TSHARK + ["-r", capture] + [word for field in FIELDS for word in ("-e", field)]
    r = subprocess.run(argv, capture_output=True, text=True, check=False)
    if r.returncode:
        sys.exit(f"tshark cannot read {capture}: {r.stderr.strip()}")
    variants = {}
    for line in r.stdout.splitlines():
        got = dict(zip(FIELDS, (BOOLEANS.get(word, word) for word in line.split("\t"))))
        variants.setdefault(got["frame.comment"], []).append(got)
    return variants


def main():
    program, capture, seed, rounds = sys.argv[1:]
    if not shutil.which("tshark"):
        sys.exit("tshark is not installed: install the package tshark, or run scripts/lab setup")
    r = subprocess.run([program, seed, rounds, capture], capture_output=True, text=True, check=False)
    if r.returncode:
        sys.exit((r.stdout + r.stderr).strip())
    passed = int(r.stdout.split()[0])
    variants = dissect(capture)
    faults = [f"{name}: unknown variant" for name in variants if name not in VARIANTS]
    failed = len(faults)
    for name, variant in VARIANTS.items():
        found = Checker(name, variant).run(variants.get(name, []))
        faults += found
        passed, failed = passed + (not found), failed + bool(found)
    print("\n".join(faults + [f"{passed} passed, {failed} failed"]))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
