# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Guests that need not boot: they begin with the state of one that has, saved once.

With TCG a boot takes two processors 6 s, and loading a state 0.3 s.
"""

import functools
import hashlib
import os
import tempfile
import time
from pathlib import Path

from . import cache, tools
from .errors import LabError
from .qemu import BOOT_ATTEMPTS, Machine, guest_arguments

# what every RDMA driver needs
MODULES = ("ib_uverbs", "rdma_ucm", "iw_cm")
# leaves nothing but what it has read in the page cache
REHEARSAL = "modprobe -a ice irdma && modprobe -r irdma ice && rdma link && ip link && devlink dev"

UNUSED_S = 86400


@functools.cache
def _qemu_version():
    argv, env = tools.qemu()
    return cache.run([*argv, "--version"], "asking QEMU for its version", env=dict(os.environ, **env))


def state(kernel, accel, image, mem_mb, cpus):
    """Return the directory of the state that a Machine with these parameters can begin with."""
    recipe = repr((guest_arguments(kernel, accel, image, mem_mb, cpus, ""), MODULES, REHEARSAL, _qemu_version()))
    name = f"{kernel}-{hashlib.sha256(recipe.encode()).hexdigest()[:12]}"

    def save(into):
        with tempfile.TemporaryDirectory(prefix="irdma-warm-") as work:
            machine = Machine("template", Path(work), kernel, [], accel, image, mem_mb, cpus)
            try:
                machine.wait_ready()
                machine.agent.run(["modprobe", "-a", *MODULES]).check()
                machine.agent.run(REHEARSAL).check()
                machine.save(into)
                return True
            except LabError:
                if not machine.died_of_tcg():
                    raise
            finally:
                machine.stop()
        return False

    def build(tmp):
        if not any(save(tmp) for _ in range(BOOT_ATTEMPTS)):
            raise LabError(f"a guest of kernel {kernel} died of a fault of TCG {BOOT_ATTEMPTS} times while it booted")
        for old in (cache.root() / "warm").glob("[!.]*"):
            if time.time() - old.stat().st_mtime > UNUSED_S:
                cache.remove(old)

    path = cache.entry(f"warm/{name}", build, f"saving a guest of kernel {kernel} that has booted")
    os.utime(path)
    return path
