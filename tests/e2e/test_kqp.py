# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Kernel queue pairs without a connection: runs kqp/kqp_test.ko on our driver (cases: see there)."""
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from guest import kernels

KQP = Path(__file__).resolve().parent / "kqp"


@pytest.fixture(scope="module")
def module(kernel, tmp_path_factory):
    build = tmp_path_factory.mktemp("kqp") / "kqp"
    shutil.copytree(KQP, build)
    made = subprocess.run(["make", "-C", kernels.kdir(kernel), f"M={build}"], check=False,
                          capture_output=True, text=True)
    assert made.returncode == 0, f"building kqp_test.ko failed:\n{made.stdout}{made.stderr}"
    return build / "kqp_test.ko"


def run_module(host, module):
    host.put(module, "/tmp/kqp_test.ko")
    loaded = host.run(f"insmod /tmp/kqp_test.ko dev={host.ports[0].ibdev}", timeout=120)
    log = [line for line in map(str, host.dmesg()) if "kqp:" in line]
    assert re.search(r"kqp: \d+ passed, 0 failed$", "\n".join(log)), "\n".join(log)
    loaded.check()
    host.run("rmmod kqp_test").check()


def test_kernel_qps(labs, module):
    """C26, C28, C30, C31, C34, C40, C42, C48: one test of the module each."""
    run_module(labs.get("irdma", hosts=1)["A"], module)


def test_kernel_qps_when_hardware_never_flushes(labs, module):
    """C29: the flush of kernel QPs does not depend on what the hardware says."""
    host = labs.get("irdma", hosts=1)["A"]
    host.fault("cqp", "ignore-flush", "on")
    try:
        run_module(host, module)
    finally:
        host.fault("cqp", "ignore-flush", "off")
