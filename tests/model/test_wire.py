#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Tests of the wire, its faults and captures, the scripted peer and the command lines.

usage: test_wire.py DIRECTORY-WITH-RNICSIM
"""
import os
import shutil
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import peer

PROGRAMS = sys.argv.pop(1) if len(sys.argv) > 1 else "build-san"
RNICSIM, RNICCTL = os.path.join(PROGRAMS, "rnicsim"), os.path.join(PROGRAMS, "rnicctl")
A_MAC, B_MAC, C_MAC = (b"\x02\0\0\0\0" + bytes([i]) for i in (1, 2, 3))


def frame(dst, src, payload=b"x" * 50, kind=0x88b5):
    return dst + src + struct.pack("!H", kind) + payload


class Port:
    """A bare port of the wire."""

    def __init__(self, path, name):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.sock.settimeout(5)
        self.sock.connect(path)
        self.sock.send(peer.HELLO + name.encode())

    def word(self):
        data = self.sock.recv(65536)
        assert len(data) < peer.MIN_FRAME, data
        return data.decode()

    def recv(self, timeout=5):
        self.sock.settimeout(timeout)
        while True:
            data = self.sock.recv(65536)
            if len(data) >= peer.MIN_FRAME or not data:
                return data

    def silent(self, seconds=0.1):
        try:
            return self.recv(seconds) is None
        except TimeoutError:
            return True


class WireTest(unittest.TestCase):
    def setUp(self):
        self.dir = tempfile.mkdtemp(prefix="rnicsim-")
        self.path, self.control = (os.path.join(self.dir, n) for n in ("wire", "ctl"))
        self.process = subprocess.Popen(
            [RNICSIM, "wire", "--listen", self.path, "--control", self.control, "--pcap-dir", self.dir,
             "--seed", "7", "--log", os.path.join(self.dir, "log")])
        self.wait_for(lambda: os.path.exists(self.control))
        self.ports = []

    def tearDown(self):
        for p in self.ports:
            p.sock.close()
        self.process.terminate()
        self.assertEqual(self.process.wait(10), 0)
        self.assertFalse(os.path.exists(self.path), "socket is left behind")
        shutil.rmtree(self.dir)

    def wait_for(self, condition):
        deadline = time.monotonic() + 10
        while not condition():
            self.assertIsNone(self.process.poll(), "rnicsim ended")
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.005)

    def port(self, name):
        p = Port(self.path, name)
        self.ports.append(p)
        self.assertEqual((p.word(), p.word()), ("ok", "up"))
        return p

    def ctl(self, *words, ok=True):
        r = subprocess.run([RNICCTL, self.control, *words], capture_output=True, text=True, timeout=10)
        self.assertEqual(r.returncode, 0 if ok else 1, r.stderr)
        return r.stdout if ok else r.stderr

    def pair(self):
        """Two ports whose addresses the switch knows."""
        a, b = self.port("A"), self.port("B")
        a.sock.send(frame(b"\xff" * 6, A_MAC))
        b.recv()
        b.sock.send(frame(A_MAC, B_MAC))
        a.recv()
        return a, b

    def burst(self, a, b, n, expect=0):
        """Send n numbered frames and a short last one from a to b; the numbers that arrive
        until the last one is there, and at least "expect" numbers."""
        got, last = [], False
        for i in range(n):
            a.sock.send(frame(B_MAC, A_MAC, struct.pack("!I", i) + bytes(60)))
        a.sock.send(frame(B_MAC, A_MAC, b"end"))
        while not last or len(got) < expect:
            data = b.recv()
            if len(data) < 20:
                last = True
            else:
                got.append(struct.unpack_from("!I", data, 14)[0])
        return got

    def test_learning(self):
        a, b, c = self.port("A"), self.port("B"), self.port("C")
        a.sock.send(frame(B_MAC, A_MAC))            # unknown: flooded
        self.assertTrue(b.recv() and c.recv())
        b.sock.send(frame(A_MAC, B_MAC))            # A is known: to A only
        self.assertTrue(a.recv())
        self.assertTrue(c.silent())
        a.sock.send(frame(b"\xff" * 6, A_MAC))      # broadcast: to all others
        self.assertTrue(b.recv() and c.recv())
        self.assertTrue(a.silent())
        a.sock.send(frame(A_MAC, A_MAC))            # never back to where it came from
        self.assertTrue(a.silent() and b.silent())

    def test_link(self):
        a, b = self.pair()
        self.ctl("link", "down", "B")
        self.assertEqual(b.word(), "down")
        a.sock.send(frame(B_MAC, A_MAC))
        self.assertTrue(b.silent())
        self.assertIn("B link down", self.ctl("ports"))
        self.ctl("link", "up", "B")
        self.assertEqual(b.word(), "up")
        a.sock.send(frame(B_MAC, A_MAC))
        self.assertTrue(b.recv())

    def test_refused_names(self):
        self.port("A")
        for bad in ("A", "", "a b", "x/y", ".x", "n" * 32, "a=b"):
            p = Port(self.path, bad)
            self.assertEqual(p.word(), "refused", bad)
            p.sock.close()
        p = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        p.settimeout(5)
        p.connect(self.path)
        p.send(b"no hello at all, but longer than a frame")
        self.assertEqual(p.recv(100), b"refused")
        p.close()

    def test_odd_packets(self):
        a, b = self.pair()
        a.sock.send(b"short")
        a.sock.send(bytes(20000))
        a.sock.send(frame(B_MAC, A_MAC))
        self.assertTrue(b.recv())
        self.assertTrue(b.silent())

    def test_drop_nth(self):
        a, b = self.pair()
        self.ctl("fault", "add", "drop", "nth=3", "count=2", "from=A", "to=B", "len=60-100")
        self.assertEqual(self.burst(a, b, 8), [0, 1, 4, 5, 6, 7])
        self.assertIn("seen 8 hit 2", self.ctl("fault", "list"))

    def test_drop_rate_is_seeded(self):
        a, b = self.pair()
        runs = []
        for _ in range(2):
            self.ctl("fault", "clear")
            self.ctl("fault", "add", "drop", "rate=200", "len=60-100")
            runs.append(self.burst(a, b, 300))
        self.assertTrue(180 < len(runs[0]) < 290, len(runs[0]))
        self.assertNotEqual(runs[0], runs[1])       # another rule, another sequence
        self.assertTrue(all(x < y for x, y in zip(runs[0], runs[0][1:])))

    def test_duplicate_reorder_delay(self):
        a, b = self.pair()
        rule = self.ctl("fault", "add", "dup", "nth=2").strip()
        self.assertEqual(self.burst(a, b, 4), [0, 1, 1, 2, 3])
        self.ctl("fault", "del", rule)
        rule = self.ctl("fault", "add", "reorder", "nth=2").strip()
        self.assertEqual(self.burst(a, b, 4), [0, 2, 1, 3])
        self.ctl("fault", "del", rule)
        self.ctl("fault", "add", "delay", "nth=1", "ms=150")
        start = time.monotonic()
        self.assertEqual(self.burst(a, b, 3, expect=3), [1, 2, 0])
        self.assertGreater(time.monotonic() - start, 0.15)

    def test_reordered_last_frame_is_not_lost(self):
        a, b = self.pair()
        self.ctl("fault", "add", "reorder", "nth=1")
        sent = frame(B_MAC, A_MAC)
        a.sock.send(sent)
        self.assertEqual(b.recv(), sent)

    def test_corrupt(self):
        a, b = self.pair()
        self.ctl("fault", "add", "corrupt", "nth=1", "offset=20")
        sent = frame(B_MAC, A_MAC)
        a.sock.send(sent)
        got = b.recv()
        diff = [i for i in range(len(sent)) if sent[i] != got[i]]
        self.assertEqual(diff, [20])
        self.assertEqual(bin(sent[20] ^ got[20]).count("1"), 1)

    def test_corrupt_with_good_checksum(self):
        a, b = self.pair()
        self.ctl("fault", "add", "corrupt", "nth=1", "offset=60", "checksum=fix")
        seg = peer.tcp_segment("10.0.0.1", "10.0.0.2", 5, 6, 1, payload=b"y" * 40)
        a.sock.send(peer.ethernet(B_MAC, A_MAC, 0x0800,
                                  peer.ip_header("10.0.0.1", "10.0.0.2", len(seg)) + seg))
        pkt = peer.Packet(b.recv())
        self.assertNotEqual(pkt.payload, b"y" * 40)
        self.assertTrue(pkt.checksum_ok)

    def test_split(self):
        a, b = self.pair()
        self.ctl("fault", "add", "split", "rate=1000", "payload=2", "offset=3")
        whole = bytes(range(50))
        for src, dst, ethertype in (("10.0.0.1", "10.0.0.2", 0x0800), ("fd00::1", "fd00::2", 0x86dd)):
            seg = peer.tcp_segment(src, dst, 5, 6, 0xfffffffe, flags=peer.ACK | peer.FIN | peer.PSH, payload=whole)
            a.sock.send(peer.ethernet(B_MAC, A_MAC, ethertype, peer.ip_header(src, dst, len(seg)) + seg))
            first, rest = peer.Packet(b.recv()), peer.Packet(b.recv())
            self.assertEqual((first.payload, rest.payload), (whole[:3], whole[3:]))
            self.assertEqual((first.seq, rest.seq), (0xfffffffe, 1))
            self.assertEqual((first.flags, rest.flags), (peer.ACK, peer.ACK | peer.FIN | peer.PSH))
            self.assertTrue(first.checksum_ok and rest.checksum_ok)

    def test_split_on(self):
        a, b = self.pair()
        self.ctl("fault", "add", "split", "rate=1000", "every=16")
        for size in (15, 16, 17, 50):
            whole = bytes(range(size))
            seg = peer.tcp_segment("10.0.0.1", "10.0.0.2", 5, 6, 100, flags=peer.ACK | peer.PSH, payload=whole)
            a.sock.send(peer.ethernet(B_MAC, A_MAC, 0x0800, peer.ip_header("10.0.0.1", "10.0.0.2", len(seg)) + seg))
            for at in range(0, size, 16):
                pkt = peer.Packet(b.recv())
                self.assertEqual((pkt.payload, pkt.seq), (whole[at:at + 16], 100 + at))
                self.assertEqual(pkt.flags, peer.ACK | (peer.PSH if at + 16 >= size else 0))
                self.assertTrue(pkt.checksum_ok)
        self.assertIn("every", self.ctl("fault", "add", "split", "rate=1000", "every=0", ok=False))

    def test_filters(self):
        a, b = self.pair()

        def tcp(flags, sport=1000, dport=7174, payload=b""):
            seg = peer.tcp_segment("10.0.0.1", "10.0.0.2", sport, dport, 1, flags=flags, payload=payload)
            a.sock.send(peer.ethernet(B_MAC, A_MAC, 0x0800,
                                      peer.ip_header("10.0.0.1", "10.0.0.2", len(seg)) + seg))
        for words, hit, miss in (
                (["tcp=syn,-ack"], (peer.SYN,), (peer.SYN | peer.ACK,)),
                (["dport=7174"], (peer.ACK,), (peer.ACK, 7174, 1)),
                (["port=7174"], (peer.ACK, 7174, 1), (peer.ACK, 1, 2)),
                (["payload=5"], (peer.ACK, 1, 2, b"12345"), (peer.ACK, 1, 2, b"1234")),
                (["len=100-200"], (peer.ACK, 1, 2, bytes(60)), (peer.ACK, 1, 2))):
            self.ctl("fault", "add", "drop", "rate=1000", *words)
            tcp(*hit)
            self.assertTrue(b.silent(), words)
            tcp(*miss)
            self.assertTrue(b.recv(), words)
            self.ctl("fault", "clear")
        self.ctl("fault", "add", "drop", "rate=1000", "ether=arp")
        a.sock.send(frame(B_MAC, A_MAC, kind=0x0806))
        self.assertTrue(b.silent())
        tcp(peer.ACK)
        self.assertTrue(b.recv())

    def test_bad_commands(self):
        for words in (["nonsense"], ["fault"], ["fault", "add"], ["fault", "add", "explode", "rate=1"],
                      ["fault", "add", "drop"], ["fault", "add", "drop", "rate=0"],
                      ["fault", "add", "drop", "rate=1001"], ["fault", "add", "drop", "rate=1", "nth=1"],
                      ["fault", "add", "delay", "rate=1"], ["fault", "add", "drop", "rate=1", "ms=5"],
                      ["fault", "add", "drop", "nth=1", "tcp=foo"], ["fault", "add", "drop", "nth=x"],
                      ["fault", "add", "drop", "nth=1", "len=5-1"], ["fault", "del", "77"],
                      ["link", "down", "nobody"], ["link", "sideways", "A"], ["pcap", "maybe"]):
            message = self.ctl(*words, ok=False)
            self.assertEqual(message.count("\n"), 1, message)

    def test_capture(self):
        a, b = self.pair()
        self.burst(a, b, 5)
        self.ctl("pcap", "flush")
        for name in "AB":
            with open(os.path.join(self.dir, name + ".pcap"), "rb") as f:
                data = f.read()
            self.assertEqual(struct.unpack_from("<I", data)[0], 0xa1b23c4d)
            at, count = 24, 0
            while at < len(data):
                _, ns, length, full = struct.unpack_from("<IIII", data, at)
                self.assertTrue(ns < 10**9 and length == full)
                at += 16 + length
                count += 1
            self.assertEqual((at, count), (len(data), 8), name)

    def test_peers(self):
        with peer.Peer(self.path, "p", ip4="10.0.0.1", ip6="fd00::1") as p, \
                peer.Peer(self.path, "q", mac="02:00:00:00:99:02", ip4="10.0.0.2", ip6="fd00::2") as q:
            for dst in ("10.0.0.2", "fd00::2"):
                result = []
                t = threading.Thread(target=lambda: result.append(q.accept(7)))
                t.start()
                c = p.connect(dst, 7)
                t.join()
                d = result[0]
                c.send(peer.mpa_request(b"hello", ird=3, ord_=4))
                self.assertEqual(d.recv_mpa(), (peer.MPA_KEY_REQ, 0x50, 2, b"\0\3\0\4hello"))
                d.send(peer.fpdu(peer.ddp_untagged(3, 0, 1, b"z" * 3000)))
                self.assertEqual(c.recv_fpdu()[18:], b"z" * 3000)
                c.send_fin()
                self.assertEqual(d.wait_fin(), b"")
            with self.assertRaises(peer.PeerTimeout):
                p.expect(timeout=0.1, sport=9)


class CommandLineTest(unittest.TestCase):
    def fails(self, *words, status):
        r = subprocess.run([RNICSIM, *words], capture_output=True, text=True, timeout=10)
        self.assertEqual(r.returncode, status, r.stderr)
        self.assertTrue(r.stderr)
        return r.stderr

    def test_bad_options(self):
        for words in ([], ["foo"], ["nic"], ["nic", "--name", "A"], ["nic", "--frobnicate"],
                      ["nic", "--name", "n" * 32, "--socket", "/tmp/x"],
                      ["nic", "--name", "A", "--socket", "/tmp/x", "--mac", "01:00:00:00:00:01"],
                      ["nic", "--name", "A", "--socket", "/tmp/x", "--mac", "02:00:00"],
                      ["nic", "--name", "A", "--socket", "/tmp/x", "--type", "cx6"],
                      ["wire"], ["wire", "--listen", "/tmp/x", "--seed", "abc"],
                      ["wire", "--listen", "/tmp/x", "--pcap-dir", "/nonexistent"]):
            self.fails(*words, status=2)

    def test_sockets(self):
        self.fails("wire", "--listen", "/nonexistent/dir/sock", status=1)
        self.fails("wire", "--listen", "/tmp/" + "x" * 200, status=1)
        with tempfile.TemporaryDirectory() as d:
            path = os.path.join(d, "s")
            s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
            s.bind(path)
            s.listen()
            self.assertIn("in use", self.fails("nic", "--name", "A", "--socket", path, status=1))
            s.close()               # left behind, nobody listens: taken over
            p = subprocess.Popen([RNICSIM, "nic", "--name", "A", "--socket", path, "--control", path + "c",
                                  "--log", path + "l"])
            deadline = time.monotonic() + 10
            while not os.path.exists(path + "c") and time.monotonic() < deadline:
                time.sleep(0.01)
            r = subprocess.run([RNICCTL, path + "c", "counters"], capture_output=True, text=True)
            self.assertIn("qp 0\n", r.stdout)
            p.terminate()
            self.assertEqual(p.wait(10), 0)
            with open(path + "l") as log:
                self.assertIn("nothing is allocated", log.read())
            r = subprocess.run([RNICCTL, path + "c", "counters"], capture_output=True, text=True)
            self.assertEqual(r.returncode, 1)


if __name__ == "__main__":
    unittest.main(verbosity=0)
