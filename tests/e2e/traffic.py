# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Stock RDMA programs between two hosts of a lab, and what they printed.

A server counts as ready when the kernel lists its listener (rdma resource), not after
some time.
"""
import contextlib
import json
import re
import tempfile
import time
from pathlib import Path

import programs
from guest.errors import LabError, Timeout

LISTEN_TIMEOUT_S = 20
FIRST_PORT = 7999
ENDLESS_PORT = 7173
UCMATOSE_PORT = 7471


def device_number(host):
    """Number of the host's RDMA device, another one each time it is registered; None without one."""
    found = re.match(r"(\d+):", host.run("rdma dev").out)
    return found and int(found[1])


def wait_link(host, state="ACTIVE", after=None, seconds=60):
    """Wait for a port in the state; after: number of the device that must have gone before."""
    deadline = time.monotonic() + seconds
    while device_number(host) == after or f"state {state}" not in host.run("rdma link").out:
        assert time.monotonic() < deadline, (
            f"host {host.name}: expected a port in state {state} within {seconds} s, got {host.run('rdma link').out!r}")


def auxiliary(host, action, timeout=60):
    """"unbind" the driver from the host's RDMA device, or "bind" it."""
    host.run("cd /sys/bus/auxiliary/drivers/*irdma* && "
             f"ls /sys/bus/auxiliary/devices | grep -m 1 '^ice' > {action}", timeout=timeout).check()


@contextlib.contextmanager
def late_events(queue, delay_ms, *hosts):
    """The hosts' adapters deliver events, "ceq" or "aeq", or take requests for them, "arm", that much later."""
    for host in hosts:
        host.fault("events", "delay", queue, str(delay_ms))
    try:
        yield
    finally:
        for host in hosts:
            host.fault("events", "delay", queue, "0")


def adapter_listeners(host):
    """What takes connection requests on the host's adapter, a set of "PORT ADDRESS VLAN"."""
    if host.driver not in ("irdma", "intree"):
        return set()
    return set(host.nic.control("listeners").splitlines())


def wait_listening(host, port, server=None, before=(), timeout=LISTEN_TIMEOUT_S):
    """Wait until an rdma_cm listener on the TCP port exists on the host and on its adapter.

    The kernel lists a listener a moment before the driver has been told of it, so the adapter
    must have one that was not there before (adapter_listeners()), and its list stand still.
    server: the command that shall listen; when it ends first, what it said is the reason.
    """
    deadline = time.monotonic() + timeout
    last = None
    while time.monotonic() < deadline:
        if server and server.poll() is not None:
            raise AssertionError(f"`{server.argv}` on {host.name}: expected it to listen, it ended with "
                                 f"{server.poll()}: {server.last_words}")
        out = host.run("rdma resource show cm_id").out
        now = adapter_listeners(host)
        if re.search(rf"state LISTEN .*src-addr \S+:{port}\b", out) and now == last and (
                host.driver not in ("irdma", "intree") or now - set(before)):
            return
        last = now
    raise AssertionError(f"host {host.name}: expected a listener on port {port}, rdma resource shows: {out!r}, "
                         f"the adapter has {sorted(now)}, had {sorted(before)}")


def pair(server, server_cmd, client, client_cmd, port, timeout=60):
    """Run server_cmd, wait for its listener, run client_cmd; both must succeed."""
    before = adapter_listeners(server)
    s = server.popen(server_cmd)
    try:
        wait_listening(server, port, s, before)
        c = client.run(client_cmd, timeout=timeout)
        assert c.rc == 0, f"`{client_cmd}` on {client.name}: expected exit code 0, got {c.rc}: {c.last_words}"
        r = s.wait(timeout)
    except Timeout as e:
        raise Timeout(f"{e}; the server said {s.last_words!r}") from None
    finally:
        end(s)      # and its listener is gone: another may come at once
    assert r.rc == 0, f"`{server_cmd}` on {server.name}: expected exit code 0, got {r.rc}: {r.last_words}"
    return r, c


def rping(server, client, size=64, count=10, ip6=False, port=7174, timeout=60, ip=None):
    """rping with verified data; the server ends with its client (no -P).  ip: of another port."""
    ip = ip or (server.ip6 if ip6 else server.ip4)
    opts = f"-a {ip} -p {port} -V -C {count} -S {size}"
    s, c = pair(server, f"rping -s {opts}", client, f"rping -c {opts}", port, timeout)
    # a connection that ends too early is no failure to rping, but it says so
    assert "wait for" not in c.err, f"rping on {client.name}: expected {count} pings, it says {c.err.strip()[-300:]}"
    return s, c


def end(command, timeout=20):
    """End a command that may still run, and wait until it is gone."""
    command.kill()
    command.wait(timeout)


@contextlib.contextmanager
def endless_rping(server, client, size):
    """An rping that does not end by itself: gives (server's, client's command) once data flows, ends them at last."""
    opts = f"-a {server.ip4} -p {ENDLESS_PORT} -C 1000000 -S {size}"
    with contextlib.ExitStack() as ends:
        s = server.popen(f"rping -s {opts} 2>&1")
        ends.callback(end, s)
        wait_listening(server, ENDLESS_PORT, s)
        c = client.popen(f"rping -c {opts} -v 2>&1")
        ends.callback(end, c)
        c.wait_output(re.compile("ping data"), timeout=20)
        yield s, c


OVER = re.compile("DISCONNECT EVENT|device removal|completion failed")


def is_told(*commands, timeout=20):
    """Wait until an endless_rping() has learned that its connection is over: it says so, or has ended.

    Once in a hundred times, on a busy machine and with either driver, it says so and then
    waits for ever for its own thread of completions.
    """
    for command in commands:
        try:
            command.wait_output(OVER, timeout)
        except LabError:
            assert command.poll() is not None, f"`{command.argv}`: expected it to learn of the end of its connection"


def still_flows(client, pings=20, timeout=20):
    """Wait until the client of endless_rping() has got so many answers more."""
    last = int(re.findall(r"rdma-ping-(\d+):", client.out)[-1])
    client.wait_output(re.compile(rf"rdma-ping-{last + pings}:"), timeout)


SIW_FAULT = r"kernel BUG at drivers/infiniband/core/iwcm\.c"
# layer 2 (LLP), type 3, code 2 (CRC), of which it reads the first two the wrong way round
SIW_TOLD_CRC = "got TERMINATE. layer 3, type 2, code 2"


def revive(host):
    """Start a siw host again when its kernel has stopped by SIW_FAULT."""
    host.known_fault = SIW_FAULT
    try:
        host.run("true")
    except LabError:
        start_again(host)


def start_again(host):
    """Start a siw host again, whether its kernel has stopped or is about to."""
    host.check_splats()
    host.restart()
    host.load_driver()


def again(run, others_fault="", kinds=(AssertionError, LabError), times=3):
    """Call run(), once more each time that it fails by a fault which is not this driver's.

    others_fault: regular expression for the message of the exception, which is one of the kinds.
    """
    for left in reversed(range(times)):
        try:
            return run()
        except kinds as e:
            if not left or not re.search(others_fault, str(e)):
                raise


class WrongCrc(LabError):
    """siw has sent a wrong CRC over right data."""


def rping_with_siw(server, client, size, **options):
    """rping with siw at one end; WrongCrc when the other end's terminate message complains of the CRC."""
    siw = server if server.driver == "siw" else client
    seen = len(siw.dmesg())
    try:
        return rping(server, client, size, **options)
    except AssertionError as e:
        with contextlib.suppress(Timeout):
            siw.wait_dmesg(re.escape(SIW_TOLD_CRC), 5, seen)
            raise WrongCrc(str(e)) from e
        raise


def rping_siw_client(server, client, size, **options):
    """rping from a siw client, tried again when that sent a wrong CRC."""
    return again(lambda: rping_with_siw(server, client, size, **options), kinds=WrongCrc)


def rping_siw_server(lab, size, **options):
    """rping from host A to a siw server, host B, tried again when siw fails by a fault of its own.

    Besides sending a wrong CRC it may acknowledge the RTR frame and the message behind it, and
    process neither until more data comes; the client then waits for ever, and when it goes the
    server's kernel may stop (SIW_FAULT), a moment later: that would be the next try's fault.
    It happens when both come before siw has accepted, so the wire holds the message back.
    """
    server, client = lab["B"], lab["A"]

    def run():
        try:
            # an RTR frame of our driver has 20 bytes, the request 24, the message 40
            with lab.wire_fault("delay nth=1 from=A payload=40 ms=500"):
                return rping_with_siw(server, client, size, timeout=15, **options)
        except LabError:
            start_again(server)
            raise
    revive(server)
    return again(run, kinds=LabError)


# perftest's own faults, neither of which a driver can help.  Its two ends talk over a first
# connection, and then each goes for the measured ones at once: a client that comes before the
# server's second listener is refused, and may die of it (SIGSEGV).  And it measures the
# processor's clock, which fails on a busy machine.
PERFTEST_FAULTS = "RDMA_CM_EVENT_REJECTED|Correlation coefficient"


def perftest(tool, server, client, opts="", port=18515, timeout=120):
    """One perftest program with the connection manager; returns its result rows as numbers."""
    base = f"{tool} -R -p {port} {opts}"
    _, c = again(lambda: pair(server, base, client, f"{base} {server.ip4}", port, timeout), PERFTEST_FAULTS)
    rows = [line.split() for line in c.out.splitlines() if re.match(r"^\s*\d+\s+\d+\s+[\d.]+", line)]
    assert rows, f"{tool}: expected a result row, got: {c.out[-400:]!r}"
    return [[float(x) for x in r] for r in rows]


INTREE_FAULT = "RDMA_CM_EVENT_REJECTED, error: -104"


def despite_intree(server, client, port, run):
    """run(); again, when a host has the in-tree driver and run() fails by a fault of that.

    It answers a SYN from the ports of a connection that has ended, but that it has not
    forgotten, with the numbers of the old one, and the peer must reset.
    """
    if "intree" not in (server.driver, client.driver):
        return run()

    def run_alone():
        # what asks for a listener that was killed has its port for a moment longer
        deadline = time.monotonic() + LISTEN_TIMEOUT_S
        while re.search(rf"src-addr \S+:{port}\b", server.run("rdma resource show cm_id").out):
            assert time.monotonic() < deadline, f"host {server.name}: expected port {port} to become free"
        return run()
    return again(run_alone, INTREE_FAULT)


def ucmatose(server, client, connections=50, count=10, size=1000, tos=0, timeout=90):
    """Many connections at once; every one must be made and carry its messages.  tos: of IPv4."""
    opts = f"-c {connections} -C {count} -S {size} -t {tos}"
    results = despite_intree(server, client, UCMATOSE_PORT, lambda: pair(
        server, f"ucmatose {opts}", client, f"ucmatose {opts} -s {server.ip4}", UCMATOSE_PORT, timeout))
    for side, result in zip(("server", "client"), results):
        assert "return status 0" in result.out, (
            f"ucmatose {side}: expected 'return status 0', got {result.out.strip()[-200:]!r}")


def start_port_mapper(host):
    """Run iwpmd on the host unless it runs; returns when it serves its port (3935/udp).

    The kernel's iw_cm registers with the daemon at the first listener, and falls over a NULL
    pointer (iwpm_register_pid_cb) when the daemon answers before the asking process went on:
    that notes what it waits for after it has sent the request.  So both share one processor
    for that first time, and the asking one is not preempted.
    """
    if host.run("pgrep -x iwpmd").rc == 0:
        return
    host.run("taskset -c 0 iwpmd").check()
    deadline = time.monotonic() + LISTEN_TIMEOUT_S
    while ":0F5F " not in host.run("cat /proc/net/udp /proc/net/udp6").out:
        assert time.monotonic() < deadline, f"host {host.name}: expected iwpmd to open port 3935"
    first = host.popen(f"exec chrt -f 50 taskset -c 0 rping -s -a {host.ip4} -p {FIRST_PORT}")
    wait_listening(host, FIRST_PORT, first)
    end(first)
    host.run("taskset -p 0xff $(pgrep -x iwpmd)").check()


def cmtime(server, client, connections=100, port=7471, timeout=120):
    """cmtime's first table: step -> [us per step, total us, us per connection, sum, max, min]."""
    with tempfile.TemporaryDirectory() as tmp:
        library = programs.build("cmtime_sync", Path(tmp), "-shared", "-fPIC")
        for host in (server, client):
            host.put(library, "/tmp/cmtime_sync.so")
    return despite_intree(server, client, port, lambda: cmtime_once(server, client, connections, port, timeout))


def cmtime_once(server, client, connections, port, timeout):
    """See cmtime().  A second part connects without a QP, to which rdma_connect says "Invalid argument" on iWARP."""
    cmd = f"LD_PRELOAD=/tmp/cmtime_sync.so cmtime -c {connections} -p {port}"
    before = adapter_listeners(server)
    s = server.popen(cmd)
    try:
        wait_listening(server, port, s, before)
        c = client.run(f"{cmd} -s {server.ip4}", timeout=timeout)
    finally:
        end(s)
    table = {}
    for line in c.out.split("- no QPs")[0].splitlines():
        m = re.match(r"^([a-z ]+[a-z])\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)\s+(\d+)$", line)
        if m:
            table[m[1]] = [int(x) for x in m.groups()[1:]]
    assert table.get("full connect", [0])[0] > 0, (
        f"cmtime: expected the time of {connections} connections, got exit code {c.rc}, {c.err.strip()!r} after "
        f"{c.out[-150:]!r}; the server said {s.last_words!r}")
    return table


@contextlib.contextmanager
def held_connections(server, client, count, port):
    """Connections that are established and do nothing; gives the microseconds that one took to connect."""
    for host in (server, client):
        host.put(Path(__file__).with_name("hold.py"), "/tmp/hold.py")
    words = f"{server.ip4} {port} {count}"
    with contextlib.ExitStack() as ends:
        s = server.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py listen {words}")
        ends.callback(end, s, 60)
        wait_listening(server, port, s)
        c = client.popen(f"ulimit -n 8192; exec python3 /tmp/hold.py connect {words}")
        ends.callback(end, c, 60)
        c.wait_output(re.compile(r"^held \d+\n", re.M), timeout=120)
        s.wait_output(re.compile("^held", re.M), timeout=60)
        yield int(c.out.split()[1])


def verbs_cost(host, kind, count):
    """Create and destroy `count` objects (verbs_cost.py): (least us of a create, of a destroy, commands each)."""
    program = Path(__file__).with_name("verbs_cost.py")
    ops = host.nic.counters()["cqp_ops"]
    r = host.run(["python3", "-", host.ports[0].ibdev, kind, str(count)], timeout=600, stdin=program.read_bytes()).check()
    ops = host.nic.counters()["cqp_ops"] - ops
    us = json.loads(r.out.splitlines()[-1])
    return us["create_us"], us["destroy_us"], ops / count
