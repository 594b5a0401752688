# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Verbs without a connection: the raw fuzzer, rdma-core's own tests, leaks, sizes and costs."""
import gzip
import io
import json
import re
import sys
import tarfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import programs  # noqa: E402  (needs the path above)
from conftest import IN_TREE_LEAKS  # noqa: E402
from guest import apt, cache  # noqa: E402
from cost import REPORTS, write_table  # noqa: E402
from traffic import verbs_cost  # noqa: E402

pytestmark = pytest.mark.ci_kernel("6.12")

LOOPS = 10000
COSTS = ("cq", "qp", "mr:4096", "mr:1048576", "mr:1073741824")


@pytest.fixture
def both(labs):
    lab = labs.get({"A": "irdma", "B": "intree"})
    lab["B"].known_leaks = IN_TREE_LEAKS
    return lab


@pytest.fixture
def ours(both):
    return both["A"]


def objects(host):
    """The adapter's objects; the pool of page lists may grow, it shrinks at unload."""
    found = host.nic.counters(objects=True)
    return {k: v for k, v in found.items() if k not in ("hmc_pages", "sd")}


def test_uverbs_fuzz(ours, tmp_path):
    """C38, C40, C41, C45, C46, C47, C48: see the comments in uverbs_fuzz.c."""
    ours.put(programs.build("uverbs_fuzz", tmp_path), "/root/uverbs_fuzz", 0o755)
    before = objects(ours)
    r = ours.run(["/root/uverbs_fuzz"], timeout=600)
    counts = re.search(r"^(\d+) passed, (\d+) failed$", r.out, re.M)
    assert counts and r.rc == 0 and counts[2] == "0", \
        f"expected no failure, got: {failures(r.out)}"
    assert int(counts[1]) > 5000, f"expected more than 5000 checks, got {counts[1]}"
    after = objects(ours)
    assert after == before, f"expected the adapter's objects as before, {before}, got {after}"


def failures(text):
    return "; ".join([line for line in text.splitlines() if ": expected" in line][:3]) or text[-300:]


def pyverbs_tests():
    """A tar file of rdma-core's tests as Debian ships them, unpacked from their .gz."""
    def build(tmp):
        tree = apt.Suite("trixie").unpack(["python3-pyverbs"], tmp / "t", closure=False)
        with tarfile.open(tmp / "tests.tar", "w") as tar:
            for path in sorted((tree / "usr/share/doc/rdma-core/tests").iterdir()):
                data = path.read_bytes()
                name = path.name
                if name.endswith(".gz"):
                    data, name = gzip.decompress(data), name[:-3]
                info = tarfile.TarInfo(f"tests/{name}")
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
        return tmp / "tests.tar"
    return cache.entry("pyverbs-tests-trixie.tar", build, "fetching rdma-core's tests")


# run_tests.py of the package does the same, but its report cannot be read reliably: tests fork.
RUN_PYVERBS = """
import json, random, sys, unittest
from importlib.machinery import SourceFileLoader
sys.path[:0] = ["/root/tests", "/root"]
from args_parser import parser

class Result(unittest.TextTestResult):
    seen = {}
    def startTest(self, test):
        random.seed(test.id())      # the tests draw their parameters
        super().startTest(test)
    def note(self, test, verdict):
        self.seen.setdefault(test.id(), verdict)
    def addSuccess(self, test): super().addSuccess(test); self.note(test, "ok")
    def addSkip(self, test, why): super().addSkip(test, why); self.note(test, "skipped: " + why)
    def addFailure(self, test, err): super().addFailure(test, err); self.note(test, f"failed: {err[1]}")
    def addError(self, test, err): super().addError(test, err); self.note(test, f"error: {err[1]}")
tests = SourceFileLoader("tests", "/root/tests/__init__.py").load_module()
parser.parse_args()
unittest.main(module=tests, testRunner=unittest.TextTestRunner(resultclass=Result), exit=False)
json.dump(Result.seen, open("/root/verdicts.json", "w"))
"""


def run_pyverbs(host):
    """Run all of rdma-core's tests on a host; returns {test: verdict}."""
    host.put(pyverbs_tests(), "/root/tests.tar")
    host.run("cd /root && tar xf tests.tar").check()
    r = host.run(["python3", "-", "--dev", host.ports[0].ibdev, "--port", "1", "--gid", "0"],
                 timeout=900, stdin=RUN_PYVERBS.encode())
    assert not r.rc, f"expected rdma-core's tests to run to the end, got: {r.err[-500:]}"
    verdicts = json.loads(host.get("/root/verdicts.json"))
    assert len(verdicts) > 100, f"expected more than 100 tests, got {len(verdicts)}"
    return verdicts


def test_pyverbs(both, kernel):
    """C47: what passes with the in-tree driver passes with ours; the rest is listed with reasons."""
    verdicts = {}
    both.each(lambda host: verdicts.update({host.name: run_pyverbs(host)}))
    ours, theirs = verdicts["A"], verdicts["B"]
    REPORTS.mkdir(parents=True, exist_ok=True)
    rows = [f"{name}: ours {ours.get(name)}; in-tree {theirs[name]}" for name in sorted(theirs)]
    (REPORTS / f"pyverbs-{kernel}.txt").write_text("\n".join(rows) + "\n")
    good = [name for name, verdict in theirs.items() if verdict == "ok"]
    assert len(good) > 20, f"expected more than 20 tests to pass in-tree, got {len(good)}"
    worse = [f"{name}: {ours.get(name)}" for name in good if ours.get(name) != "ok"]
    assert not worse, f"expected what passes in-tree to pass, got {worse}"
    # Windows we have where the newer in-tree driver has none, but iWARP QPs connect by rdma_cm.
    inherent = "Failed to modify QP state to RTS"
    broken = [f"{name}: {verdict}" for name, verdict in ours.items()
              if not verdict.startswith(("ok", "skipped")) and inherent not in verdict and
              theirs.get(name, "ok").startswith(("ok", "skipped"))]
    assert not broken, f"expected no failure that the in-tree driver does not have, got {broken}"


def memory_kb(host):
    """Memory of the kernel that is not a cache."""
    host.run("sync; echo 3 > /proc/sys/vm/drop_caches")
    text = host.run("cat /proc/meminfo").out
    return sum(int(re.search(rf"^{key}:\s+(\d+)", text, re.M)[1])
               for key in ("SUnreclaim", "VmallocUsed", "Percpu"))


@pytest.mark.not_debug     # KASAN keeps what was freed for a while
@pytest.mark.parametrize("kind", ["cq", "qp", "mr:4096"])
def test_no_leak(ours, kind):
    """10,000 objects leave nothing behind, neither on the adapter nor in the kernel (C57)."""
    verbs_cost(ours, kind, 100)
    before, kb = objects(ours), memory_kb(ours)
    verbs_cost(ours, kind, LOOPS)
    # fewer: a connection of the tests before was still in TIME_WAIT
    grown = {kind: now for kind, now in objects(ours).items() if now > before.get(kind, 0)}
    assert not grown, f"expected no object more than {before}, got {grown}"
    kept = memory_kb(ours) - kb
    assert kept < LOOPS // 10, f"expected less than 100 bytes an object to remain, got {kept} KiB"


@pytest.mark.parametrize("page", ["4K", "2M"])
def test_large_region(ours, page):
    """4 GiB of scattered pages (C40, C42)."""
    verbs_cost(ours, f"mr:{4 << 30}:{page}", 1)


@pytest.mark.not_debug
def test_cost(both, kernel, request):
    """Time and commands of create and destroy, against the in-tree driver in the same run.

    The table has all; what must hold is the number of commands, which has no noise.
    """
    costs, worse = {"A": {}, "B": {}}, []
    rounds = 3 if request.config.getoption("--long") else 1
    for kind in COSTS:
        count = 5 if int(kind.partition(":")[2] or 0) >= 1 << 30 else 300
        runs = {"A": [], "B": []}
        for _ in range(rounds):
            for name, results in runs.items():
                results.append(verbs_cost(both[name], kind, count))
        for name, results in runs.items():
            costs[name].update(zip((f"{kind}, create us", f"{kind}, destroy us", f"{kind}, commands"),
                                   map(min, zip(*results))))
        ours, theirs = (costs[name][f"{kind}, commands"] for name in ("A", "B"))
        # a few commands are those of the process, not of its objects
        if ours > theirs + 0.1:
            worse.append(f"{kind}: {ours:.2f}, in-tree {theirs:.2f}")
    write_table("verbs-cost", kernel, costs["B"], costs["A"])
    assert not worse, "expected at most the in-tree driver's commands, got " + "; ".join(worse)
