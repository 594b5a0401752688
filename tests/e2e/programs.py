# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The C programs that run in guests."""
import subprocess
from pathlib import Path

from guest import apt, cache

HERE = Path(__file__).resolve().parent
RDMA_DEV = ("libibverbs-dev", "librdmacm-dev", "libibverbs1", "librdmacm1t64")


def build(name, into, *options):
    """Compile NAME.c into a directory, linked with the libraries that the guest has; options: of the compiler."""
    tree = cache.entry("rdma-dev-trixie", lambda tmp: apt.Suite("trixie").unpack(
        RDMA_DEV, tmp / "t", closure=False), "unpacking rdma-core's headers and libraries")
    out = into / name
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *options, "-isystem", tree / "usr/include",
                    "-o", out, HERE / f"{name}.c", "-L", tree / "usr/lib/x86_64-linux-gnu",
                    "-Wl,--allow-shlib-undefined", "-lrdmacm", "-libverbs"], check=True)
    return out
