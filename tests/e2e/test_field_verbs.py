# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Verbs of connected QPs as programs meet them: field cases, memory windows, dma-bufs, limits.

The programs in the guests (field_verbs.py) do what a test tells them, one verb at a time.
"""
import contextlib
import errno
import json
import re
import sys
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import traffic  # noqa: E402  (needs the path above)
from guest import kernels  # noqa: E402
from programs import build  # noqa: E402
from test_ae import terminates  # noqa: E402
from test_verbs import failures, objects  # noqa: E402

pytestmark = pytest.mark.ci_kernel("6.12")

PROGRAM = Path(__file__).resolve().parent / "field_verbs.py"
PORT = 7480
RESET, INIT, RTS, ERR = 0, 1, 3, 6
SUCCESS, LOC_PROT_ERR, FLUSHED, MW_BIND_ERR, REM_ACCESS_ERR = 0, 4, 5, 6, 10
# opcodes of completions (enum ibv_wc_opcode)
WC = {"send": 0, "write": 1, "read": 2, "bind": 5, "local_inv": 6, "recv": 128}
# enum ibv_access_flags
LOCAL_WRITE, REMOTE_WRITE, REMOTE_READ, MW_BIND = 1, 2, 4, 16
REMOTE = LOCAL_WRITE | REMOTE_WRITE | REMOTE_READ
# enum ibv_rereg_mr_flags
REREG_TRANS, REREG_PD, REREG_ACCESS = 1, 2, 4
PATIENCE_S = 20


class VerbsError(Exception):
    """A verb failed in the guest."""

    def __init__(self, answer, what):
        super().__init__(f"{what}: {answer['why']}")
        self.errno = answer["errno"]


class Remote:
    """field_verbs.py on a host; preload: a library that it is started with."""

    def __init__(self, host, preload=None):
        self.host = host
        host.put(PROGRAM, "/tmp/field_verbs.py")
        if preload:
            host.put(preload, "/tmp/preload.so")
        self.command = host.popen(f"{'LD_PRELOAD=/tmp/preload.so ' if preload else ''}python3 /tmp/field_verbs.py")
        self.lines = 0
        self.answer(60)

    def answer(self, timeout, what="start"):
        self.lines += 1
        self.command.wait_output(re.compile(rf"\A(?:.*\n){{{self.lines}}}"), timeout)
        answer = json.loads(self.command.out.splitlines()[self.lines - 1])
        if "errno" in answer:
            raise VerbsError(answer, f"host {self.host.name}: {what}")
        return answer["ok"]

    def __getattr__(self, verb):
        def call(*args, patience=0, **options):
            self.command.write((json.dumps([verb, *args, {"patience": patience, **options}]) + "\n").encode())
            return self.answer(PATIENCE_S + patience + 10, verb)
        return call


class Pair:
    """Programs on two hosts; a connects, b listens."""

    ports = iter(range(PORT, 0xffff))

    def __init__(self, lab, preload=None):
        self.lab = lab
        self.port = None
        self.a, self.b = (Remote(lab[name], preload) for name in "AB")

    def connect(self, depths=(16, 16), **qp):
        """Connected QPs; returns what make_qp says of a's."""
        self.port = next(self.ports)
        self.b.listen(self.lab["B"].ip4, self.port)
        return self.join(depths, **qp)

    def join(self, depths, **qp):
        a, b = self.a, self.b
        a.dial(self.lab["B"].ip4, self.port)
        made = a.make_qp(**qp)
        a.connect(*depths)
        b.request()
        b.make_qp(**qp)
        b.accept(*depths)
        for end in (a, b):
            end.expect("RDMA_CM_EVENT_ESTABLISHED")
        return made

    def swap(self):
        """The verbs that follow are about the other connection."""
        for end in (self.a, self.b):
            end.swap()

    def connect_again(self, depths=(16, 16)):
        """A second connection between the same protection domains; it is the one that verbs are about."""
        self.swap()
        self.join(depths, pd=False)

    def close(self):
        for end in (self.a, self.b):
            end.close()

    def ended(self):
        return any(end.command.poll() is not None for end in (self.a, self.b))


class Programs:
    """A Pair that is started once, since the imports take seconds, and again when it has ended.

    And another one with what memory windows of type 2 take.
    """

    def __init__(self, preload):
        self.preload = {1: None, 2: preload}
        self.pairs = {}

    def get(self, lab, kind):
        if kind not in self.pairs or self.pairs[kind].ended():
            self.pairs[kind] = Pair(lab, self.preload[kind])
        return self.pairs[kind]

    def end(self):
        for pair in self.pairs.values():
            for end in (pair.a, pair.b):
                end.command.close_stdin()
                end.command.wait(20)


@pytest.fixture(scope="module")
def programs(module_labs, tmp_path_factory):
    # Python loads the library for itself alone, where the preloaded one would not find it
    made = Programs(build("mw_type2", tmp_path_factory.mktemp("bin"), "-shared", "-fPIC", "-Wl,--no-as-needed"))
    yield made
    made.end()


@pytest.fixture
def lab(labs):
    return labs.get("irdma")


@pytest.fixture
def pair(lab, programs, request):
    """Two programs without a connection; what they made must be gone from the adapters afterwards."""
    made = programs.get(lab, request.getfixturevalue("kind") if "kind" in request.fixturenames else 1)
    before = [objects(host) for host in lab.hosts.values()]
    yield made
    made.close()
    deadline = time.monotonic() + 10
    while more := left_over(lab, before):
        assert time.monotonic() < deadline, f"expected the adapters' objects as before, there are more: {more}"


def left_over(lab, before):
    """Objects that were not there before; neighbours may stay, and what waits in TIME_WAIT."""
    more = {}
    for host, was in zip(lab.hosts.values(), before):
        more |= {f"{host.name} {kind}": number for kind, number in objects(host).items()
                 if number > was[kind] and kind not in ("arp", "ah", "qhash", "apbvt")}
    return more


def wait_state(end, state, seconds=5):
    deadline = time.monotonic() + seconds
    while (got := end.state()) != [state, state]:
        assert time.monotonic() < deadline, f"host {end.host.name}: expected state {state}, got {got}"


def flushed(first, count, op):
    return [[first + i, FLUSHED, WC[op]] for i in range(count)]


#
# States and flushes.
#

def test_states_of_a_connection(pair):
    """C26: state and current state are set and true at each step, also when the hardware got there first."""
    a, b = pair.a, pair.b
    a.open()
    a.make_qp()
    assert a.state() == [RESET, RESET]
    a.modify(INIT)
    assert a.state() == [INIT, INIT]
    a.close()
    pair.connect()
    assert a.state() == b.state() == [RTS, RTS]
    b.disconnect()
    for end in (a, b):
        end.expect("RDMA_CM_EVENT_DISCONNECTED")
        wait_state(end, ERR)
        end.modify(ERR)
        assert end.state() == [ERR, ERR]
    pair.close()
    qpn = pair.connect()["qpn"]
    pair.lab["A"].fault("ae", "raise", "0x0103", "qp", str(qpn), "src", "1")
    wait_state(a, ERR)
    wait_state(b, ERR)
    a.modify(ERR)
    assert a.state() == [ERR, ERR]


def start_refused(pair):
    pair.a.dial(pair.lab["B"].ip4, 9)


def start_at_listener(pair):
    port = next(pair.ports)
    pair.b.listen(pair.lab["B"].ip4, port)
    pair.a.dial(pair.lab["B"].ip4, port)


def wire_at(pair, stage):
    """At the stage "no-answer" no TCP segment arrives."""
    return pair.lab.wire_fault("drop rate=1000 proto=6") if stage == "no-answer" else contextlib.nullcontext()


@pytest.mark.parametrize("stage", ["refused", "rejected", "no-reply", "no-answer"])
def test_connect_fails_then_flush(pair, stage):
    """C28: whatever stage a connection ends in, all that was posted before comes back, in order."""
    a, b = pair.a, pair.b
    if stage == "refused":
        start_refused(pair)
    else:
        start_at_listener(pair)
    a.make_qp()
    a.modify(INIT)
    a.recv([{"id": 100 + i} for i in range(64)])
    a.post([{"op": "send", "id": 500 + i} for i in range(8)])
    with wire_at(pair, stage):
        a.connect()
        if stage in ("rejected", "no-reply"):
            b.request()
        if stage == "rejected":
            b.reject()
        if stage in ("refused", "rejected"):
            a.expect("RDMA_CM_EVENT_REJECTED")
        a.modify(ERR)
        assert a.poll("recv", 65, 1) == flushed(100, 64, "recv")
        assert a.poll("send", 9, 1) == flushed(500, 8, "send")


@pytest.mark.long
@pytest.mark.parametrize("stage", ["no-reply", "no-answer"])
def test_connect_times_out_then_flush(pair, stage):
    """C28: the same after the deadline of a connection, 51 or 63 s."""
    a, b = pair.a, pair.b
    start_at_listener(pair)
    a.make_qp()
    a.recv([{"id": 100 + i} for i in range(64)])
    with wire_at(pair, stage):
        a.connect()
        if stage == "no-reply":
            b.request()
        assert a.next_event(patience=80) in ("RDMA_CM_EVENT_UNREACHABLE", "RDMA_CM_EVENT_REJECTED",
                                             "RDMA_CM_EVENT_CONNECT_ERROR")
        a.modify(ERR)
        assert a.poll("recv", 65, 1) == flushed(100, 64, "recv")


def test_post_to_a_qp_in_error(pair):
    """C30, C31: what is posted in state ERR comes back, also while a flush runs; padding never does."""
    a = pair.a
    a.open()
    a.make_qp(wrs=120, sges=13, cqe=1024)
    a.reg("m", 4096, LOCAL_WRITE)
    a.modify(INIT)
    a.recv([{"id": 7}])
    a.modify(ERR)
    assert a.poll("recv", 2, 0.2) == flushed(7, 1, "recv")
    ops, posted = ("send", "write", "read"), 0
    for count in (1, 2, 100, *range(1, 60, 3)):
        wrs = [{"op": ops[i % 3], "id": i, "addr": 0, "rkey": 0, "sges": [["m", 0, 8]] * (1 + i * 5 % 13)}
               for i in range(posted, posted + count)]
        assert a.post(wrs[:count // 2 + 1]) is None
        assert a.recv([{"id": wr["id"]} for wr in wrs]) is None
        if wrs[count // 2 + 1:]:        # the first flush may still run
            assert a.post(wrs[count // 2 + 1:]) is None
        assert a.poll("send", count) == [[wr["id"], FLUSHED, WC[wr["op"]]] for wr in wrs]
        assert a.poll("recv", count) == flushed(posted, count, "recv")
        posted += count
    assert a.poll("send", 1, 0.2) == a.poll("recv", 1, 0.2) == []


def test_two_threads_post_to_a_qp_in_error(lab, tmp_path):
    """C31: see the comment in post_flushed.c."""
    host = lab["A"]
    host.put(build("post_flushed", tmp_path), "/root/post_flushed", 0o755)
    r = host.run(["/root/post_flushed"])
    assert not r.rc, f"expected that all come back, got: {r.out.strip()}"


def test_no_completion_of_the_first_read(pair):
    """C30: the request that makes a connection ready (RTR) is nobody's, however soon the QP is flushed."""
    a = pair.a
    pair.connect()
    a.recv([{"id": 100 + i} for i in range(4)])
    a.post([{"op": "send", "id": 500 + i} for i in range(3)])
    a.modify(ERR)
    done = a.poll("send", 4, 0.5)
    assert [wr_id for wr_id, _, _ in done] == [500, 501, 502], f"expected three sends, got {done}"
    assert all(op == WC["send"] and status in (SUCCESS, FLUSHED) for _, status, op in done)
    assert a.poll("recv", 5, 0.5) == flushed(100, 4, "recv")


@pytest.mark.parametrize("source", range(1, 16, 2))
def test_source_of_an_event(pair, source):
    """C32: whatever part of the adapter an event names, all that is posted completes, in order.

    The model refuses flushes and contexts that contradict themselves.
    """
    a = pair.a
    qpn = pair.connect(wrs=16)["qpn"]
    a.recv([{"id": 100 + i} for i in range(4)])
    pair.lab["A"].fault("ae", "raise", "0x0103", "qp", str(qpn), "src", str(source))
    got = a.poll("recv", 5, 1)
    wait_state(a, ERR)
    a.post([{"op": "send", "id": 500}])
    assert [wr_id for wr_id, _, _ in got] == [100, 101, 102, 103], f"expected all receives, got {got}"
    first = REM_ACCESS_ERR if source in (1, 3) else FLUSHED
    assert [status for _, status, _ in got] == [first] + [FLUSHED] * 3
    sent = a.poll("send", 2, 1)
    assert [wr_id for wr_id, _, _ in sent] == [500] and sent[0][1], f"expected a failed send, got {sent}"


#
# Posting.
#

def test_chains(pair):
    """C34: a chain ends at the first that does not fit; what stands before it is sent, nothing else."""
    a, b = pair.a, pair.b
    made = pair.connect(wrs=16, sges=2, cqe=1024)
    a.reg("m", 4096, LOCAL_WRITE)
    b.reg("m", 4096, LOCAL_WRITE)
    depth = made["sends"]
    b.recv([{"id": i, "sges": [["m", 0, 64]]} for i in range(16)])

    def send(i, sges=2):
        return {"op": "send", "id": i, "sges": [["m", 0, 2]] * sges}

    bad = a.post([send(0), send(1), send(2), send(3, 3), send(4)])
    assert bad == [3, errno.EINVAL], f"expected EINVAL at request 3, got {bad}"
    bad = a.post([send(3), {"op": "atomic", "id": 4}, send(5)])
    assert bad and bad[0] == 4, f"expected request 4 to be refused, got {bad}"
    assert a.poll("send", 5, 0.5) == [[i, SUCCESS, WC["send"]] for i in range(4)]
    assert [c[0] for c in b.poll("recv", 5, 0.5)] == [0, 1, 2, 3]

    # the ring is full until completions are polled
    posted, received = 4, 4
    while posted < 4 + depth - 4:
        count = min(8, depth - posted)
        b.recv([{"id": 16 + posted - 4 + i, "sges": [["m", 0, 64]]} for i in range(count)])
        assert a.post([send(posted + i) for i in range(count)]) is None
        received += len(b.poll("recv", count))
        posted += count
    assert received == posted == depth
    bad = a.post([send(posted + i) for i in range(10)])
    assert bad == [posted + 4, errno.ENOMEM], f"expected ENOMEM at request {posted + 4}, got {bad}"
    total = posted + 4
    got = a.poll("send", total, 2)
    assert got == [[i, SUCCESS, WC["send"]] for i in range(4, total)], f"expected the rest in order, got {got[-5:]}"
    received += len(b.poll("recv", 5, 0.5))
    assert received == total, f"expected {total} messages at the peer, got {received}"
    assert a.post([send(total)]) is None
    assert a.poll("send", 1) == [[total, SUCCESS, WC["send"]]]


@pytest.mark.parametrize("fence", [True, False], ids=["fenced", "not-fenced"])
def test_fence(pair, fence):
    """C35: a fenced send leaves when all reads before it are done, not the first; others do not wait.

    What is sent is what the last read brings, and answers to reads come late.
    """
    a, b = pair.a, pair.b
    pair.connect(depths=(16, 2))
    there = b.reg("m", 4096, REMOTE)
    b.fill("m", "new-data" * 4)
    a.reg("sink", 4096, LOCAL_WRITE | REMOTE_WRITE)
    a.fill("sink", "old-data" * 4)
    b.reg("in", 4096, LOCAL_WRITE)
    b.recv([{"id": 1, "sges": [["in", 0, 64]]}])
    with pair.lab.wire_fault("delay rate=1000 ms=50 from=B proto=6 payload=40"):
        a.post([{"op": "read", "id": i, "addr": there["addr"] + 8 * i, "rkey": there["rkey"],
                 "sges": [["sink", 8 * i, 8]]} for i in range(2)] +
               [{"op": "send", "id": 4, "fence": fence, "sges": [["sink", 8, 8]]}])
        assert a.poll("send", 3, 5) == [[0, SUCCESS, WC["read"]], [1, SUCCESS, WC["read"]], [4, SUCCESS, WC["send"]]]
    assert b.poll("recv", 1) == [[1, SUCCESS, WC["recv"]]]
    got = b.peek("in", 8)
    want = "new-data" if fence else "old-data"
    assert got == want, f"expected {want!r} to be sent, got {got!r}"


def test_single_posts(pair):
    """C39: each post is noticed, after whatever gap; waiting for more would take for ever."""
    a, b = pair.a, pair.b
    pair.connect()
    there = b.reg("m", 4096, REMOTE)
    a.reg("m", 4096, LOCAL_WRITE)
    wr = {"op": "write", "addr": there["addr"], "rkey": there["rkey"], "sges": [["m", 0, 8]]}
    for pause_ms in (0, 1, 7):
        worst = a.single_posts(wr, 30, pause_ms)
        assert worst < 1000, f"expected a write to complete within 1 s, took {worst:.0f} ms"


@pytest.mark.parametrize("delay_ms", [0, 2])
def test_commands_of_many_processes(lab, tmp_path, delay_ms):
    """C39: completions of commands come to those who wait for them, also when events come late."""
    host = lab["A"]
    host.put(build("uverbs_fuzz", tmp_path), "/root/uverbs_fuzz", 0o755)
    with traffic.late_events("ceq", delay_ms, host):
        r = host.run(["/root/uverbs_fuzz", "/dev/infiniband/uverbs0", "crowd"], timeout=60)
    assert not r.rc, f"expected no failure, got: {failures(r.out)}"


def test_resize_with_completions(pair):
    """C38: a CQ is made larger and smaller with 100 completions in it; none is lost, the order stays."""
    a, b = pair.a, pair.b
    pair.connect(wrs=200, cqe=128)
    there = b.reg("m", 4096, REMOTE)
    a.reg("m", 4096, LOCAL_WRITE)

    def write(first, count):
        a.post([{"op": "write", "id": i, "addr": there["addr"], "rkey": there["rkey"], "sges": [["m", 0, 8]]}
                for i in range(first, first + count)])

    write(0, 100)
    time.sleep(0.3)
    for cqe in (4096, 256, 128):
        a.resize("send", cqe)
    assert a.poll("send", 101, 1) == [[i, SUCCESS, WC["write"]] for i in range(100)]
    # and while completions arrive, each ring with some of them
    for first, cqe in ((100, 4096), (150, 256), (200, 130)):
        write(first, 25)
        a.resize("send", cqe)
        write(first + 25, 25)
    assert a.poll("send", 151, 2) == [[i, SUCCESS, WC["write"]] for i in range(100, 250)]


#
# Memory.
#

def remote(pair, op, there, offset, length=8):
    """An RDMA write or read by a; returns its status."""
    pair.a.post([{"op": op, "id": 1, "addr": there["addr"] + offset, "rkey": there["rkey"],
                  "sges": [["own", 0, length]]}])
    done = pair.a.poll("send", 1, 5)
    assert len(done) == 1 and done[0][0] == 1, f"RDMA {op}: expected a completion, got {done}"
    return done[0][1]


def refused(pair, op, there, offset, length=8):
    """An RDMA write or read that b's adapter refuses: nothing is written, both QPs end.

    A write completes when TCP has delivered it, which may be before the bad news.
    """
    status = remote(pair, op, there, offset, length)
    allowed = (SUCCESS, REM_ACCESS_ERR, FLUSHED) if op == "write" else (REM_ACCESS_ERR, FLUSHED)
    assert status in allowed, f"RDMA {op}: expected it to be refused, got status {status}"
    for end in (pair.a, pair.b):
        wait_state(end, ERR)


def connect_with_region(pair, access=REMOTE | MW_BIND):
    """Connected; a has a region "own" with text, b one of 8 KiB."""
    pair.connect()
    pair.a.reg("own", 4096, REMOTE)
    pair.a.fill("own", "written!")
    return pair.b.reg("m", 8192, access)


def test_reregistration(pair):
    """C41: what a rereg does not name stays, what fails leaves a region that can be deregistered."""
    a, b = pair.a, pair.b
    there = connect_with_region(pair, REMOTE)
    b.rereg("m", REREG_ACCESS, access=REMOTE)
    assert remote(pair, "write", there, 0) == SUCCESS
    for flags, address, length in ((REREG_TRANS, 4096, 4096), (REREG_TRANS, None, 0)):
        with pytest.raises(VerbsError):
            b.rereg("m", flags, length, REMOTE, addr=address)
    assert remote(pair, "write", there, 8) == SUCCESS
    host = pair.lab["B"]
    for step in (1, 2):     # the command that ends the old registration, then the new one
        host.fault("cqp", "fail", str(step))
        with pytest.raises(VerbsError):
            b.rereg("m", REREG_ACCESS, access=REMOTE)
        assert remote(pair, "write", there, 16 * step) == SUCCESS, f"after command {step} of a rereg failed"
    b.rereg("m", REREG_PD | REREG_ACCESS, access=REMOTE, pd="spare")
    refused(pair, "write", there, 48)
    assert b.peek("m", 8, 48) == "\0" * 8, "expected a region of another PD to be out of reach"


def test_reregistration_of_the_pd_alone(pair):
    """C41: a region comes to the QP's protection domain, and its rights stay."""
    pair.connect()
    pair.a.reg("own", 4096, REMOTE)
    pair.a.fill("own", "written!")
    there = pair.b.reg("m", 4096, REMOTE, spare_pd=True)
    pair.b.rereg("m", REREG_PD, pd="own")
    assert remote(pair, "write", there, 24) == SUCCESS
    assert pair.b.peek("m", 8, 24) == "written!"


def test_dereg_with_a_window(pair, labs):
    """C41: a region with a bound window is not deregistered and stays as it was; afterwards it goes."""
    b = pair.b
    there = connect_with_region(pair)
    b.alloc_mw("w")
    b.bind("w", "m", 0, 64, REMOTE_WRITE)
    assert b.poll("send", 1) == [[0, SUCCESS, WC["bind"]]]
    with pytest.raises(VerbsError):
        b.dereg("m")
    labs.forgive(pair.lab)      # it is the adapter that refuses
    assert remote(pair, "write", there, 0) == SUCCESS
    assert b.peek("m", 8) == "written!"
    b.dealloc_mw("w")
    b.dereg("m")


@pytest.mark.parametrize("access,want", [(LOCAL_WRITE | REMOTE_WRITE, SUCCESS), (LOCAL_WRITE, SUCCESS),
                                         (0, "error"), (REMOTE_READ, "error")])
def test_sink_of_a_read(pair, access, want):
    """C43: reads into memory that may be written, also without remote write rights, which classic iWARP asks for.

    Otherwise the read fails by a clean error; the other side lives on.
    """
    a, b = pair.a, pair.b
    pair.connect()
    there = b.reg("m", 4096, REMOTE)
    b.fill("m", "read me!")
    a.reg("own", 4096, access)
    status = remote(pair, "read", there, 0)
    if want == SUCCESS:
        assert status == SUCCESS and a.peek("own", 8) == "read me!"
        return
    assert status in (LOC_PROT_ERR, REM_ACCESS_ERR), f"expected an access error, got status {status}"
    assert a.peek("own", 8) == "\0" * 8
    wait_state(a, ERR)
    pair.close()
    there = connect_with_region(pair)
    assert remote(pair, "write", there, 0) == SUCCESS


@pytest.mark.not_debug
def test_addresses_beyond_4_gib(pair):
    """C40, C42: first, middle and last bytes of 4 GiB and of more are where they belong.

    The region repeats a file whose size is no power of two: an address that loses its upper
    bits lands elsewhere in the file.
    """
    a, b = pair.a, pair.b
    piece = (48 << 20) + 4096
    pair.connect()
    a.reg("own", 4096, REMOTE)
    for length in ((4 << 30) + 8192, 4 << 30):
        there = b.reg_large("m", length, REMOTE, piece)
        for count, offset in enumerate((0, length // 2 - 4, (2 << 30) + 5, length - 8)):
            a.fill("own", f"mark {count:03}")
            assert remote(pair, "write", there, offset) == SUCCESS, f"write at {offset:#x}"
            got = b.peek("m", 8, offset % piece)
            assert got == f"mark {count:03}", f"offset {offset:#x}: expected 'mark {count:03}', got {got!r}"
        if length > 4 << 30:
            b.dereg("m")
    refused(pair, "write", there, 4 << 30)


#
# Memory windows.  rdma-core gives this adapter those of type 1, mw_type2.c adds those of type 2.
#

WINDOW = (1024, 2048)       # offset and length


def window(pair, access, kind=1):
    """b binds a window of a region that has no remote rights itself; returns what a needs to know."""
    b = pair.b
    there = connect_with_region(pair, LOCAL_WRITE | MW_BIND)
    b.alloc_mw("w", kind)
    rkey = (b.bind if kind == 1 else b.bind_type_2)("w", "m", *WINDOW, access)
    assert b.poll("send", 1) == [[0, SUCCESS, WC["bind"]]]
    return {"addr": there["addr"], "rkey": rkey}


@pytest.mark.parametrize("kind", [1, 2])
def test_window(pair, kind):
    """Writes and reads go through a window, to its first and last byte."""
    there = window(pair, REMOTE_WRITE | REMOTE_READ, kind)
    first, length = WINDOW
    for offset in (first, first + length - 8):
        pair.a.fill("own", "written!")
        assert remote(pair, "write", there, offset) == SUCCESS
        assert pair.b.peek("m", 8, offset) == "written!"
        pair.b.fill("m", "returned", offset)
        assert remote(pair, "read", there, offset) == SUCCESS
        assert pair.a.peek("own", 8) == "returned"


@pytest.mark.parametrize("kind", [1, 2])
@pytest.mark.parametrize("op,access,offset", [
    ("write", REMOTE_WRITE, WINDOW[0] - 1), ("write", REMOTE_WRITE, sum(WINDOW) - 7),
    ("write", REMOTE_READ, WINDOW[0]), ("read", REMOTE_WRITE, WINDOW[0])],
    ids=["below", "above", "write-of-read-only", "read-of-write-only"])
def test_outside_a_window(pair, op, access, offset, kind):
    """C55: what a window does not allow is an access error for who asks, and leaves the memory alone."""
    there = window(pair, access, kind)
    refused(pair, op, there, offset)
    assert pair.b.peek("m", 8192).strip("\0") == ""


@pytest.mark.parametrize("how", ["unbind", "rebind", "dealloc"])
def test_window_ends(pair, how):
    """After its end a window gives no access; bound anew it has another key and other bounds."""
    b = pair.b
    there = window(pair, REMOTE_WRITE)
    assert remote(pair, "write", there, WINDOW[0]) == SUCCESS
    if how == "dealloc":
        b.dealloc_mw("w")
    else:
        rkey = b.bind("w", "m", *((0, 0) if how == "unbind" else (4096, 64)), REMOTE_WRITE)
        assert b.poll("send", 1) == [[0, SUCCESS, WC["bind"]]]
        if how == "rebind":
            assert rkey != there["rkey"]
            assert remote(pair, "write", {**there, "rkey": rkey}, 4096) == SUCCESS
            assert b.peek("m", 8, 4096) == "written!"
    refused(pair, "write", there, WINDOW[0] + 8)
    assert b.peek("m", 8, WINDOW[0] + 8) == "\0" * 8


def invalidate(pair, by, rkey):
    """By b, whose memory it is, or by a message of a."""
    a, b = pair.a, pair.b
    b.recv([{"id": 3}])
    if by == "b":
        b.post([{"op": "local_inv", "id": 2, "rkey": rkey}])
        assert b.poll("send", 1) == [[2, SUCCESS, WC["local_inv"]]]
    else:
        a.post([{"op": "send_inv", "id": 2, "rkey": rkey}])
        assert a.poll("send", 1) == [[2, SUCCESS, WC["send"]]]
        assert b.poll("recv", 1) == [[3, SUCCESS, WC["recv"]]]


@pytest.mark.parametrize("kind", [2])
@pytest.mark.parametrize("op,told", [("write", (0x11, 0x02)), ("read", (0x01, 0x03))], ids=["write", "read"])
def test_window_of_one_queue_pair(pair, op, told, kind):
    """C55: a window of type 2 belongs to the QP that bound it, and gives no access through another one.

    The peer is told that the STag is not associated with the stream (RFC 5041 for a write, RFC 5040 for a read).
    """
    there = window(pair, REMOTE_WRITE | REMOTE_READ, kind)
    pair.connect_again()
    refused(pair, op, there, WINDOW[0])
    assert terminates(pair.lab, pair.lab["B"].ip4)[-1] == told
    assert pair.b.peek("m", 8192).strip("\0") == ""
    pair.swap()
    pair.a.fill("own", "written!")
    assert remote(pair, "write", there, WINDOW[0]) == SUCCESS
    assert pair.b.peek("m", 8, WINDOW[0]) == "written!"


@pytest.mark.parametrize("kind", [2])
@pytest.mark.parametrize("by", ["b", "a"], ids=["local", "remote"])
def test_window_is_invalidated(pair, by, kind):
    """C55: the peer or the owner ends a window of type 2; bound anew it has another key."""
    b = pair.b
    there = window(pair, REMOTE_WRITE, kind)
    assert remote(pair, "write", there, WINDOW[0]) == SUCCESS
    invalidate(pair, by, there["rkey"])
    rkey = b.bind_type_2("w", "m", 4096, 64, REMOTE_WRITE)
    assert b.poll("send", 1) == [[0, SUCCESS, WC["bind"]]]
    assert rkey != there["rkey"]
    assert remote(pair, "write", {**there, "rkey": rkey}, 4096) == SUCCESS
    assert b.peek("m", 8, 4096) == "written!"
    invalidate(pair, by, rkey)
    refused(pair, "write", {**there, "rkey": rkey}, 4104)
    assert b.peek("m", 8, 4104) == "\0" * 8
    b.dealloc_mw("w")
    b.dereg("m")


@pytest.mark.parametrize("kind", [2])
@pytest.mark.parametrize("what", ["bound", "outside", "rights"])
def test_bind_that_fails(pair, what, kind):
    """C55: a window of type 2 that is bound already, beyond its region, or that allows more than it: the QP ends."""
    b = pair.b
    connect_with_region(pair, (0 if what == "rights" else LOCAL_WRITE) | MW_BIND)
    b.alloc_mw("w", kind)
    if what == "bound":
        b.bind_type_2("w", "m", *WINDOW, REMOTE_WRITE)
        assert b.poll("send", 1) == [[0, SUCCESS, WC["bind"]]]
    b.bind_type_2("w", "m", 8192 - 64 if what == "outside" else 0, 128, REMOTE_WRITE)
    assert b.poll("send", 1) == [[0, MW_BIND_ERR, WC["bind"]]]
    for end in (pair.a, b):
        wait_state(end, ERR)


@pytest.mark.parametrize("by", ["b", "a"], ids=["local", "remote"])
def test_invalidate(pair, by):
    """A region that its owner or the peer has invalidated gives no access; it can be deregistered."""
    b = pair.b
    there = connect_with_region(pair)
    assert remote(pair, "write", there, 0) == SUCCESS
    invalidate(pair, by, there["rkey"])
    refused(pair, "write", there, 8)
    assert b.peek("m", 8, 8) == "\0" * 8
    b.dereg("m")


#
# dma-bufs.
#

VGEM = ("drm", "drm_shmem_helper", "vgem")


def load_vgem(host):
    """Debian's kernel 6.1 has no other exporter of dma-bufs, and the guests' images do not have this one."""
    where = kernels.tree(host.kernel) / "usr/lib/modules" / kernels.release(host.kernel) / "kernel/drivers/gpu/drm"
    for name in VGEM:
        host.put(next(where.rglob(f"{name}.ko")), f"/tmp/{name}.ko")
        host.run(["insmod", f"/tmp/{name}.ko"]).check()


@pytest.mark.not_debug
@pytest.mark.parametrize("exporter", ["udmabuf", "dma_heap", "vgem"])
def test_dmabuf(pair, exporter, kernel):
    """The peer writes to and reads from a dma-buf, of which a part is registered; it is sent from, too."""
    a, b = pair.a, pair.b
    if (exporter == "vgem") != (kernel == "6.1"):
        pytest.skip(f"Debian's kernel {kernel} is built {'with' if exporter == 'vgem' else 'without'} udmabuf "
                    "and heaps; vgem stands in where they are missing")
    if exporter == "vgem":
        load_vgem(pair.lab["B"])
    assert exporter in b.exporters(), f"expected the kernel to have {exporter}"
    pair.connect()
    a.reg("own", 16384, REMOTE)
    size = 1 << 20
    for offset in (0, 8192):
        there = b.reg_dmabuf("d", exporter, size, REMOTE, offset)
        for at in (offset, size // 2 - 3, size - 16384):
            text = f"{exporter} at {at:#x} " * 2000
            a.fill("own", text[:16384])
            assert remote(pair, "write", {**there, "addr": 0}, at, 16384) == SUCCESS
            assert b.peek("d", 16384, at) == text[:16384]
            b.fill("d", text[1:16385], at)
            assert remote(pair, "read", {**there, "addr": 0}, at, 16384) == SUCCESS
            assert a.peek("own", 16384) == text[1:16385]
        a.recv([{"id": 1, "sges": [["own", 0, 64]]}])
        b.fill("d", "sent from here", size - 100)
        b.post([{"op": "send", "id": 2, "sges": [["d", size - 100, 14]]}])
        assert a.poll("recv", 1) == [[1, SUCCESS, WC["recv"]]]
        assert a.peek("own", 14) == "sent from here"
        assert b.poll("send", 1) == [[2, SUCCESS, WC["send"]]]
        if not offset:
            b.dereg("d")
    b.fill("d", "\0" * 16, 8184)
    refused(pair, "write", {**there, "addr": 0}, 8184, 16)
    assert b.peek("d", 16, 8184) == "\0" * 16, "expected the part of the buffer to be bounded"


#
# Limits.
#

def test_number_of_objects(lab, programs, tmp_path):
    """Each number of objects that the device reports can be made; one more is -EINVAL."""
    programs.end()      # librdmacm keeps a PD
    host = lab["A"]
    host.put(build("uverbs_fuzz", tmp_path), "/root/uverbs_fuzz", 0o755)
    r = host.run(["/root/uverbs_fuzz", "/dev/infiniband/uverbs0", "limits"],
                 timeout=400 if host.kernel == kernels.DEBUG else 120)
    assert not r.rc, f"expected no failure, got: {failures(r.out)}"


def test_sizes_of_objects(pair):
    """The largest CQ and QP that the device reports, and one more (C48)."""
    a = pair.a
    a.open()
    a.make_pd()
    limits = a.limits()

    def refused(verb, **options):
        with pytest.raises(VerbsError) as error:
            verb(**options)
        assert error.value.errno == errno.EINVAL, f"{options}: expected EINVAL, got {error.value}"

    a.make_cq(limits["max_cqe"])
    refused(a.make_cq, cqe=limits["max_cqe"] + 1)
    made = a.make_qp(wrs=limits["max_qp_wr"], sges=limits["max_sge"], pd=False)
    assert made["sends"] >= limits["max_qp_wr"] <= made["recvs"]
    a.close_qp()
    refused(a.make_qp, wrs=limits["max_qp_wr"] + 1, pd=False)
    refused(a.make_qp, sges=limits["max_sge"] + 1, pd=False)


def test_depth_of_reads(pair):
    """The greatest depths of RDMA reads; one more is refused before anything is sent."""
    a, b = pair.a, pair.b
    a.open()
    limits = a.limits()
    a.close()
    most = limits["max_qp_rd_atom"]
    pair.connect(depths=(most, most))
    for end in (a, b):
        assert end.depths() == {"ord": most, "ird": most}
    pair.close()
    start_refused(pair)
    a.make_qp()
    with pytest.raises(VerbsError) as error:
        a.connect(most + 1, 1)
    assert error.value.errno == errno.EINVAL


#
# Reset, unload.
#

@pytest.mark.parametrize("command", [1, pytest.param(4, marks=pytest.mark.long)])
def test_reset_while_commands_hang(lab, tmp_path, command):
    """C52: the adapter stops to answer, then a reset is announced: all that waits ends, without a storm."""
    host = lab["A"]
    host.put(build("uverbs_fuzz", tmp_path), "/root/uverbs_fuzz", 0o755)
    crowd = host.popen("for i in $(seq 9); do /root/uverbs_fuzz /dev/infiniband/uverbs0 crowd; done")
    seen, device = len(host.dmesg()), traffic.device_number(host)
    host.fault("cqp", "stop-at", str(command))
    time.sleep(0.2)
    start = time.monotonic()
    host.fault("reset", "pf")
    crowd.wait(20)
    host.fault("cqp", "release")
    traffic.wait_link(host, after=device)
    took = time.monotonic() - start
    said = [line for line in map(str, host.dmesg()[seen:]) if "irdma" in line]
    assert took < 15, f"expected the device back within 15 s, took {took:.0f} s"
    assert len(said) < 15, f"expected no storm of messages, got {len(said)}: {said[:5]}"
    traffic.rping(lab["B"], lab["A"], 64)


@pytest.mark.parametrize("cpus", [2, pytest.param(8, marks=pytest.mark.long)])
def test_unload_under_events(own_lab, cpus):
    """C56: the module goes while traffic runs and events are on their way, also from a processor that has gone."""
    lab = own_lab("irdma", cpus=cpus)
    a, b = lab["A"], lab["B"]
    for _ in range(2):
        with traffic.endless_rping(b, a, 1000):
            a.run("echo 0 > /sys/devices/system/cpu/cpu1/online").check()
            for queue in ("ceq", "aeq"):
                a.fault("events", "delay", queue, "100")
            a.run("rmmod irdma", timeout=30).check()
        time.sleep(0.5)         # what was delayed comes now
        for queue in ("ceq", "aeq"):
            a.fault("events", "delay", queue, "0")
        a.run("echo 1 > /sys/devices/system/cpu/cpu1/online").check()
        a.load_driver()
        traffic.wait_link(a)
