# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The lab itself: what it says to bad input, what it leaves behind, what the agent can do.

The guest tests share one host without an RDMA driver.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from guest import Host, Lab, LabError, Timeout, apt, cache, cli, kernels, qemu, splat  # noqa: E402

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "lab"


def run_lab(*words, env=None, timeout=120):
    """Run scripts/lab; returns the finished process."""
    return subprocess.run([SCRIPT, *words], capture_output=True, text=True, check=False,
                          timeout=timeout, env=dict(os.environ, **(env or {})),
                          stdin=subprocess.DEVNULL)


def assert_one_line_error(r, *texts, code=1):
    """Expect one line on stderr that names `texts`, and the exit code."""
    assert r.returncode == code
    lines = [s for s in r.stderr.splitlines() if s.strip()]
    assert len(lines) == 1, r.stderr
    for text in texts:
        assert text in lines[0]


def leftovers(pid):
    """Return work directories of lab process `pid`, and processes that use one."""
    found = [str(p) for p in Path(tempfile.gettempdir()).glob(f"irdma-lab-{pid}-*")]
    for p in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if f"irdma-lab-{pid}-".encode() in p.read_bytes():
                found.append(str(p))
        except OSError:
            pass
    return sorted(found)


@pytest.mark.parametrize("words, texts, code", [
    (("up", "--nonsense"), ("--nonsense",), 2),
    (("frobnicate",), ("frobnicate",), 2),
    (("up", "--kernel", "5.10"), ("5.10", "6.1, 6.12, 7.3"), 1),
    (("up", "--kernel", "A=7.3,Q=6.1"), ("'Q'", "A, B"), 1),
    (("up", "--driver", "mlx5"), ("mlx5", "intree, irdma, siw, none"), 1),
    (("up", "--driver", "A="), ("HOST=VALUE",), 2),
    (("up", "--hosts", "0"), ("0 hosts", "1 to 8"), 1),
    (("up", "--hosts", "9"), ("9 hosts", "1 to 8"), 1),
    (("up", "--hosts", "two"), ("two",), 2),
    (("up", "--accel", "xen"), ("xen",), 2),
    (("run", "A"), ("no command",), 1),
    (("run", "--name", "nobody", "A", "--", "true"), ("nobody", "scripts/lab up"), 1),
    (("down", "--name", "nobody"), ("nobody",), 1),
    (("status", "--name", "../x"), ("../x", "letters"), 2),
    (("kdir", "5.10"), ("5.10",), 2),
    (("build", "--source", "/nonexistent"), ("/nonexistent", "Kbuild"), 1),
])
def test_bad_input_is_one_line(words, texts, code):
    assert_one_line_error(run_lab(*words), *texts, code=code)


def test_unwritable_cache():
    r = run_lab("kdir", "7.3", env={"IRDMA_CACHE": "/proc/irdma"})
    assert_one_line_error(r, "/proc/irdma", "IRDMA_CACHE")


def test_full_disk(tmp_path, monkeypatch):
    monkeypatch.setenv("IRDMA_CACHE", str(tmp_path))
    with pytest.raises(LabError, match="MB are needed"):
        cache.entry("big", lambda tmp: None, mbytes=1 << 40)
    assert not (tmp_path / "big").exists()


def test_interrupted_build_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setenv("IRDMA_CACHE", str(tmp_path))

    def build(tmp):
        (tmp / "half").write_text("x")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.entry("thing", build)
    assert [p.name for p in tmp_path.iterdir()] == ["locks"]


def test_entry_is_built_once(tmp_path, monkeypatch):
    monkeypatch.setenv("IRDMA_CACHE", str(tmp_path))
    built = []

    def build(tmp):
        built.append(1)
        time.sleep(0.05)
        (tmp / "f").write_text("x")
        return tmp / "f"

    threads = [threading.Thread(target=cache.entry, args=("thing", build)) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(built) == 1 and (tmp_path / "thing").read_text() == "x"


def test_each_tree_has_its_own_driver(tmp_path, monkeypatch):
    """A lab loads what its own tree was when it started, whatever is built meanwhile."""
    monkeypatch.setenv("IRDMA_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(kernels, "release", str)
    monkeypatch.setattr(kernels, "kdir", str)
    built = {}
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "Makefile").write_text(f"irdma.ko: Makefile\n\techo {name} > $@\n")
        built[name] = kernels.build_driver("6.12", tmp_path / name, quiet=True)
    assert {name: path.read_text() for name, path in built.items()} == {"a": "a\n", "b": "b\n"}
    monkeypatch.setattr("guest.lab.REPOSITORY", tmp_path / "a")
    lab = Lab(kernel="6.12", driver="irdma")
    lab.work = tmp_path
    module = lab.module("irdma", "6.12")
    (tmp_path / "a" / "Makefile").write_text("irdma.ko: Makefile\n\techo new > $@\n")
    assert kernels.build_driver("6.12", tmp_path / "a", quiet=True).read_text() == "new\n"
    assert lab.module("irdma", "6.12") == module and module.read_text() == "a\n"


def test_missing_program_names_setup(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LabError, match="scripts/lab setup"):
        kernels.tools.need("gcc")


DEB822 = """# comment
Types: deb deb-src
URIs: http://mirror.example/debian
Suites: trixie trixie-updates
 trixie-backports
Components: main
Signed-By: /k/a.gpg

Types: deb
URIs: http://mirror.example/debian-security
Suites: trixie-security
Components: main
"""


@pytest.mark.parametrize("name, text", [
    ("a.sources", DEB822),
    ("sources.list", "# deb http://no.example/debian sid main\n"
     "deb [arch=amd64 signed-by=/k/a.gpg] http://mirror.example/debian bookworm main\n"
     "deb-src http://src.example/debian bookworm main\n"
     "deb http://mirror.example/debian-security bookworm-security main\n"),
])
def test_archive_of_the_host(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    found = apt.host_archives([str(tmp_path / name)])
    assert found["main"] == ("http://mirror.example/debian", "/k/a.gpg")
    assert found["security"][0] == "http://mirror.example/debian-security"


def test_no_archive(tmp_path):
    (tmp_path / "x.sources").write_text("Types: deb\nEnabled: no\nURIs: http://m/\n"
                                        "Suites: trixie\n")
    with pytest.raises(LabError, match="Debian entry"):
        apt.host_archives([str(tmp_path / "x.sources")])


@pytest.mark.parametrize("line, bad", [
    ("[    1.0] WARNING: CPU: 0 PID: 1 at drivers/x.c:1 f+0x1/0x2 [irdma]", True),
    ("[    1.0] BUG: kernel NULL pointer dereference, address: 0000000000000000", True),
    ("[    1.0] refcount_t: underflow; use-after-free.", True),
    ("[    1.0] INFO: task rping:12 blocked for more than 120 seconds.", True),
    ("[    1.0] rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:", True),
    ("[    1.0] irdma0: 3 QPs leaked", True),
    ("[    1.0] general protection fault, probably for non-canonical address 0xdead000000000100: 0000 [#1]", True),
    ("[    1.0] traps: ib_send_bw[9] general protection fault ip:7f sp:7f error:0 in librdmacm.so.1.3", False),
    ("[    1.0] Kernel command line: oops=panic", False),
    ("[    1.0] ice 0000:00:04.0 eth0: NIC Link is up 100 Gbps", False),
    ("[    1.0] Key type dns_resolver registered; debug: BUGS none", False),
])
def test_splats(line, bad):
    assert bool(splat.find([line])) == bad
    assert not splat.find([line], allowed=[re.escape(line)])


def test_unusable_kvm(monkeypatch):
    monkeypatch.setattr(qemu.os, "access", lambda *_: False)
    assert qemu.pick_accel() == "tcg"
    with pytest.raises(LabError, match="tcg"):
        qemu.pick_accel("kvm")


@pytest.fixture(scope="module", name="host")
def guest_without_driver():
    with Lab(hosts=1, driver="none", accel="tcg") as lab:
        yield lab["A"]


def test_begins_with_a_saved_state(host):
    """It has its own name and today's time, and the kernel log is whole."""
    name, seconds = host.run("hostname; date +%s").check().out.split()
    assert name == host.name
    assert abs(int(seconds) - time.time()) < 60
    assert "Linux version" in host.dmesg()[0]


def test_exit_code_and_streams(host):
    r = host.run("cat; echo oops >&2; exit 7", stdin=b"hello")
    assert (r.out, r.err, r.rc) == ("hello", "oops\n", 7)
    with pytest.raises(LabError, match="exit code 7.*oops"):
        r.check()


def test_killed_by_signal(host):
    assert host.run("kill -TERM $$").rc == -signal.SIGTERM


def test_unknown_command(host):
    r = host.run(["no-such-program"])
    assert r.rc == 127 and "no-such-program" in r.err


def test_timeout_kills_the_whole_group(host):
    with pytest.raises(Timeout, match="sleep 4711"):
        host.run("sleep 4711 & sleep 4711", timeout=1)
    host.run("while pgrep -x sleep; do :; done", timeout=10).check()


def test_many_commands_at_once(host):
    commands = [host.popen(f"read x; echo {i} $x") for i in range(50)]
    for i, c in reversed(list(enumerate(commands))):
        c.write(b"yes\n")
        assert c.wait(30).out == f"{i} yes\n"


def test_files(host, tmp_path):
    data = os.urandom(3 * 1000 * 1000 + 7)
    host.put(data, "/tmp/dir/with space/f", mode=0o751)
    assert host.get("/tmp/dir/with space/f", tmp_path / "f") == data
    assert (tmp_path / "f").read_bytes() == data
    assert host.run(["stat", "-c%a", "/tmp/dir/with space/f"]).out == "751\n"
    with pytest.raises(LabError, match="No such file"):
        host.get("/nonexistent")
    with pytest.raises(LabError, match="cannot write /proc/none/f"):
        host.get("/etc/hosts", "/proc/none/f")
    with pytest.raises(LabError, match="/nonexistent"):
        host.put("/nonexistent", "/tmp/x")


def test_command_that_reads_nothing_does_not_block_others(host):
    deaf = host.popen("sleep 60")
    writer = threading.Thread(target=lambda: deaf.write(b"x" * 1000 * 1000), daemon=True)
    writer.start()
    assert host.run("echo fine").out == "fine\n"
    deaf.kill()
    writer.join(10)
    assert not writer.is_alive() and deaf.wait().rc == -signal.SIGKILL


def test_output_that_fills_every_buffer(host):
    r = host.run("head -c 5000000 /dev/zero | tr '\\0' a")
    assert len(r.out) == 5000000


def test_wait_output(host):
    c = host.popen("echo ready; exec sleep 60")
    assert c.wait_output(re.compile("ready"), 10)
    c.kill()
    with pytest.raises(LabError, match="ended"):
        host.popen("true").wait_output(re.compile("never"), 10)


def test_kernel_log_and_splat(host):
    host.check_splats()
    start = len(host.dmesg())
    host.run("echo '<4>WARNING: a test' > /dev/kmsg").check()
    host.wait_dmesg("a test", 10, start)
    with pytest.raises(LabError, match="a test"):
        host.check_splats()
    host.check_splats(allowed=["a test"])


def test_port_without_rdma(host):
    assert host.ports[0].netdev and not host.ports[0].ibdev
    assert host.run(["hostname"]).out == "A\n"


@pytest.fixture
def leaves_nothing():
    """The test must leave no more than it found: the guest that other tests share may be up."""
    before = leftovers(os.getpid())
    yield
    assert leftovers(os.getpid()) == before


def test_panic_is_reported(leaves_nothing):
    with Lab(hosts=1, driver="none", accel="tcg") as lab:
        host = lab["A"]
        with pytest.raises(LabError, match="guest (has ended|is gone)"):
            host.run("echo c > /proc/sysrq-trigger; sleep 60", timeout=60)
        host.machine.wait_exit(20)
        assert host.splats()


def test_guest_that_does_not_boot(leaves_nothing):
    with pytest.raises(LabError, match="A did not boot.*"):
        with Lab(hosts=1, driver="none", accel="tcg", cmdline="init_on_alloc=1 rdinit=/none"):
            pass


def test_boots_again_after_a_fault_of_tcg(leaves_nothing, monkeypatch):
    """With this command line the kernel panics; only the first start has it."""
    starts = []
    start = Host.start

    def first_start_fails(host):
        starts.append(host.name)
        if len(starts) > 1:
            host._lab.cmdline = ""
        start(host)

    monkeypatch.setattr(Host, "start", first_start_fails)
    monkeypatch.setattr("guest.qemu.TCG_FAULT", re.compile("Kernel panic"))
    with Lab(hosts=1, driver="none", accel="tcg", cmdline="rdinit=/none") as lab:
        assert lab["A"].run("echo up").check().out == "up\n"
        lab.check_splats()
    assert starts == ["A", "A"]


# scripts/lab that goes no further once it has said WORD, and says who waits
HELD_LAB = """
import os, sys, time
from guest import cache, cli
progress = cache.progress
def hold(text):
    progress(text)
    if sys.argv[1] in text:
        progress(f"held: {os.getpid()}")
        time.sleep(60)
        sys.exit("nobody came")
cache.progress = hold
sys.exit(cli.main(sys.argv[2:]))
"""


@pytest.mark.parametrize("after", ["guests boot", "guests are up"])
def test_ctrl_c_leaves_nothing(after):
    name = f"test{os.getpid()}"
    # a shell's background job, which this may be, ignores the signal
    with subprocess.Popen(["env", "--default-signal=INT", sys.executable, "-c", HELD_LAB, after,
                           "up", "--name", name, "--accel", "tcg"], cwd=SCRIPT.parents[1] / "tests",
                          text=True, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL) as p:
        said = []
        for line in p.stderr:
            said.append(line)
            if "held: " in line:
                break
        else:
            pytest.fail(f"expected {after!r}, the lab ended after {''.join(said)!r}")
        pid = said[-1].split()[-1]
        assert leftovers(pid)
        p.send_signal(signal.SIGINT)
        assert p.wait(30) == 130
    assert not leftovers(pid)
    assert not (cache.root() / "run" / name).exists()


def test_lab_in_the_background(tmp_path):
    name = f"test{os.getpid()}"
    up = ("up", "--name", name, "--hosts", "1", "--driver", "none", "--accel", "tcg")
    r = run_lab(*up)
    assert r.returncode == 0, r.stderr
    try:
        assert_one_line_error(run_lab(*up), name, "down")
        assert_one_line_error(run_lab("run", "--name", name, "Z", "--", "true"), "'Z'")
        r = run_lab("run", "--name", name, "A", "--", "echo out; echo err >&2; exit 5")
        assert (r.stdout, r.stderr, r.returncode) == ("out\n", "err\n", 5)
        (tmp_path / "f").write_text("content")
        assert run_lab("put", "--name", name, "A", str(tmp_path / "f"), "/tmp/f").returncode == 0
        assert run_lab("get", "--name", name, "A", "/tmp/f", str(tmp_path / "g")).returncode == 0
        assert (tmp_path / "g").read_text() == "content"
        assert "A" in run_lab("wire", "--name", name, "ports").stdout
        assert_one_line_error(run_lab("fault", "--name", name, "A", "nonsense"), "nonsense")
        assert "Linux version" in run_lab("dmesg", "--name", name, "A").stdout
        assert run_lab("run", "--name", name, "A", "--", "touch /tmp/mark").returncode == 0
        assert run_lab("restart", "--name", name, "A").returncode == 0
        assert run_lab("run", "--name", name, "A", "--", "test -e /tmp/mark").returncode == 1
        run_lab("run", "--name", name, "A", "--", "echo c > /proc/sysrq-trigger; sleep 9")
        assert "A: ended" in run_lab("status", "--name", name).stdout
        pid = (cache.root() / "run" / name / "pid").read_text()
        assert leftovers(pid)
    finally:
        assert run_lab("down", "--name", name).returncode == 0
    assert not leftovers(pid)


def test_parser_splits_hosts():
    assert cli.per_host("7.3") == "7.3"
    assert cli.per_host("A=irdma,B=siw") == {"A": "irdma", "B": "siw"}
