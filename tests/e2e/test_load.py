# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The driver comes up and goes away again, whatever happens meanwhile."""
import re
import time

import pytest

import cost
import traffic

PROBE_DEADLINE_S = 30       # 15 s for the engine to get ready, the rest for commands
UNLOAD_DEADLINE_S = 15


@pytest.fixture(scope="module")
def lab(module_labs):
    return module_labs.get("none", hosts=1)


@pytest.fixture
def host(lab, labs):
    a = lab["A"]
    yield a
    if a.driver != "none":
        a.unload_driver()
        a.driver = "none"


def slab_kib(host):
    return int(re.search(r"Slab:\s+(\d+)", host.run("cat /proc/meminfo").check().out)[1])


def try_load(host, *params):
    """insmod our module by hand; returns (Result, kernel messages it caused)."""
    before = len(host.dmesg())
    host.put_module(host._lab.module("irdma", host.kernel), "/tmp/irdma.ko")
    r = host.run(["insmod", "/tmp/irdma.ko", *params], timeout=PROBE_DEADLINE_S)
    return r, [line for line in host.dmesg()[before:] if "irdma" in line]


def unload(host):
    start = time.monotonic()
    host.run("rmmod irdma", timeout=UNLOAD_DEADLINE_S).check()
    return time.monotonic() - start


def check_nothing_left(host):
    left = {k: v for k, v in host.nic.counters(objects=True).items() if v}
    assert not left, f"expected nothing allocated on the adapter, got {left}"


def test_device(host):
    host.load_driver("irdma")
    link = host.run("rdma link").out
    assert re.search(r"state ACTIVE physical_state LINK_UP netdev", link), f"expected an active link, got {link!r}"
    info = host.run("ibv_devinfo -v").check().out
    for want in (r"transport:\s+iWARP", r"vendor_id:\s+0x8086", r"vendor_part_id:\s+5522", r"port_lmc",
                 r"max_srq:\s+0\b", r"link_layer:\s+Ethernet"):
        assert re.search(want, info), f"ibv_devinfo: expected {want!r}, got {info!r}"
    fw = re.search(r"fw_ver:\s+(\S+)", info)[1]
    assert re.fullmatch(r"\d+\.\d+", fw), f"expected a firmware version N.N, got {fw!r}"
    mac = host.run("cat /sys/class/net/*/address | grep -v 00:00:00").out.split()[0].replace(":", "")
    guid = re.search(r"node_guid:\s+(\S+)", info)[1].replace(":", "")
    first = f"{int(mac[:2], 16) ^ 2:02x}"
    assert guid == f"{first}{mac[2:6]}fffe{mac[6:]}", f"expected an EUI-64 of MAC {mac}, got GUID {guid}"


def counter_names(host):
    """Names without the prefixes that the in-tree driver of 6.12 has and that of 7.3 has not."""
    names = host.run("ls /sys/class/infiniband/*/ports/1/hw_counters").check().out.split()
    return sorted(re.sub("^(tcp|iw)", "", n) for n in names)


def test_counters(host):
    """The same counters under the same names as the kernel's own driver."""
    host.load_driver("intree")
    theirs = counter_names(host)
    host.unload_driver()
    host.load_driver("irdma")
    ours = counter_names(host)
    missing = [n for n in theirs if n not in ours]
    assert theirs and not missing, f"expected the in-tree driver's counters, missing are {missing}"
    out = host.run("rdma statistic show").check().out
    assert "ip4InPkts" in out, f"rdma statistic: expected counters, got {out!r}"


def test_link_follows_the_netdev(host):
    host.load_driver("irdma")
    for state, want in (("down", "DOWN"), ("up", "ACTIVE")):
        host.fault("link", state)
        traffic.wait_link(host, want, seconds=20)


@pytest.mark.parametrize("param", ["limits_sel=8", "limits_sel=-1", "resource_profile=99", "roce_ena=1"])
def test_bad_parameter(host, param):
    r, log = try_load(host, param)
    assert r.rc != 0, f"expected insmod to refuse {param}"
    name, value = param.split("=")
    assert any(name in line for line in log), f"expected a message about {name}, got {log}"
    assert host.run("lsmod | grep -w irdma").rc != 0, "expected the module not to be loaded"


@pytest.mark.parametrize("value", range(4))
def test_limits_sel(host, value):
    """C57: the documented parameter that bounds what the module takes."""
    host.load_driver("irdma", params=[f"limits_sel={value}"])
    info = host.run("ibv_devinfo -v").check().out
    qps = int(re.search(r"max_qp:\s+(\d+)", info)[1])
    wanted = (128, 1024, 2048, 4096)[value]
    assert qps <= wanted, f"limits_sel={value}: expected at most {wanted} QPs, got {qps}"


def test_load_unload_rounds(host, request):
    """No leak of kernel memory or adapter objects over many rounds (C57)."""
    rounds = 100 if request.config.getoption("--long") else 10
    host.load_driver("irdma")
    host.unload_driver()
    before, slab = cost.kernel_kib(host), slab_kib(host)
    for _ in range(rounds):
        r, log = try_load(host)
        assert r.rc == 0, f"expected insmod to succeed, got {r.err!r} {log}"
        unload(host)
        check_nothing_left(host)
    host.driver = "none"
    lost, lost_slab = cost.kernel_kib(host) - before, slab_kib(host) - slab
    assert lost < 2048, f"expected no pages lost over {rounds} rounds, lost {lost} KiB"
    assert lost_slab < 1024, f"expected no small objects lost over {rounds} rounds, lost {lost_slab} KiB"


def command_count(host):
    """CQP commands of a bring-up and of bring-up plus teardown."""
    host.fault("cqp", "clear")
    start = host.nic.counters()["cqp_ops"]
    r, log = try_load(host)
    assert r.rc == 0, f"expected insmod to succeed: {r.err} {log}"
    up = host.nic.counters()["cqp_ops"] - start
    unload(host)
    return up, host.nic.counters()["cqp_ops"] - start


def survive(host, *fault):
    """Load and unload with a fault of the control queue armed; all must end in time, nothing leak."""
    host.fault("cqp", *fault)
    start = time.monotonic()
    try_load(host)
    if host.run("lsmod | grep -qw irdma").rc == 0:
        unload(host)
    host.fault("cqp", "release")
    took = time.monotonic() - start
    limit = PROBE_DEADLINE_S + UNLOAD_DEADLINE_S
    assert took < limit, f"cqp {' '.join(map(str, fault))}: expected an end within {limit} s, took {took:.0f} s"


def test_every_command_may_fail(host, lab, module_labs):
    """The n-th control command fails, for every n of bring-up and teardown (C52)."""
    _, commands = command_count(host)
    for n in range(1, commands + 1):
        survive(host, "fail", n)
    # a CQ whose QP could not be destroyed is refused
    module_labs.forgive(lab)
    r, log = try_load(host)
    assert r.rc == 0, f"expected a load to succeed after {commands} failed ones: {r.err} {log}"
    unload(host)
    check_nothing_left(host)
    host.driver = "none"


@pytest.mark.ci_kernel("6.12")
def test_control_queue_stops(host, request):
    """The control queue answers nothing from its n-th command on; at every n with --long (C52)."""
    up, commands = command_count(host)
    points = range(1, commands + 1) if request.config.getoption("--long") else (1, up // 2, up, commands - 1)
    for n in points:
        survive(host, "stop-at", n)
    host.driver = "none"


def test_reset_by_the_lan_driver(host):
    """A PF reset announced by ice: the device goes, comes back, and works."""
    host.load_driver("irdma")
    device = traffic.device_number(host)
    host.fault("reset", "pf")
    traffic.wait_link(host, after=device)


def test_one_processor(own_lab):
    """One processor, few vectors: the event queues share (C56)."""
    lab = own_lab("irdma", hosts=1, cpus=1)
    assert "state ACTIVE" in lab["A"].run("rdma link").out


COST_ROUNDS = 3


def timed_ms(host, command):
    """Milliseconds that a command of the guest takes, by the guest's clock."""
    out = host.run(f"start=$(date +%s%N); {command} || exit; echo $(($(date +%s%N) - start))").check().out
    return int(out) / 1e6


def cost_of(host, module):
    """What one insmod and one rmmod cost; all that the module needs is loaded."""
    before = cost.kernel_kib(host)
    base = host.nic.counters()
    load_ms = timed_ms(host, f"insmod {module}")
    now = host.nic.counters()
    mem = cost.kernel_kib(host) - before
    return {"load time, ms": load_ms, "unload time, ms": timed_ms(host, "rmmod irdma"),
            "memory after load, KiB": mem, "CQP commands": now["cqp_ops"],  # since the queue was created
            "register accesses": now["reg_reads"] + now["reg_writes"] - base["reg_reads"] - base["reg_writes"]}


@pytest.mark.not_debug
def test_cost_of_loading(own_lab, kernel):
    """The table "in-tree : ours", and the two that are promised: commands and memory (C57).

    Medians of rounds in turn: the model shares the machine with the guest.
    """
    host = own_lab("none", hosts=1)["A"]
    host.load_driver("intree")
    host.unload_driver()
    host.run("m=$(modinfo -n irdma); case $m in *.xz) xz -dc $m ;; *) cat $m ;; esac > /tmp/intree.ko").check()
    host.put_module(host._lab.module("irdma", host.kernel), "/tmp/irdma.ko")
    rounds = [(cost_of(host, "/tmp/intree.ko"), cost_of(host, "/tmp/irdma.ko")) for _ in range(COST_ROUNDS)]
    theirs, ours = map(cost.medians, zip(*rounds))
    cost.write_table("load-cost", kernel, theirs, ours)
    for what in ("memory after load, KiB", "CQP commands"):
        assert ours[what] <= theirs[what], f"{what}: expected at most the in-tree driver's {theirs[what]}, got {ours[what]}"
