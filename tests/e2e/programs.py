# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""What tests bring into guests: their C programs, and an older rdma-core."""
import subprocess
import tarfile
from pathlib import Path

from guest import apt, cache

HERE = Path(__file__).resolve().parent
RDMA_DEV = ("libibverbs-dev", "librdmacm-dev", "libibverbs1", "librdmacm1t64")
PROVIDER = "libibverbs/libirdma-rdmav34.so"
OLD = "/tmp/old"
# libibverbs looks for the adapter's library in one place only
OLD_RPING = f"""mount --bind {OLD}/{Path(PROVIDER).name} /usr/lib/x86_64-linux-gnu/{PROVIDER} || exit
LD_LIBRARY_PATH={OLD} exec {OLD}/rping "$@"
"""
OLD_RDMA_CORE = ("libibverbs1", "librdmacm1", "ibverbs-providers", "rdmacm-utils")


def build(name, into, *options):
    """Compile NAME.c into a directory, linked with the libraries that the guest has; options: of the compiler."""
    tree = cache.entry("rdma-dev-trixie", lambda tmp: apt.Suite("trixie").unpack(
        RDMA_DEV, tmp / "t", closure=False), "unpacking rdma-core's headers and libraries")
    out = into / name
    subprocess.run(["gcc", "-O1", "-g", "-Wall", "-Wextra", "-Werror", *options, "-isystem", tree / "usr/include",
                    "-o", out, HERE / f"{name}.c", "-L", tree / "usr/lib/x86_64-linux-gnu",
                    "-Wl,--allow-shlib-undefined", "-lrdmacm", "-libverbs"], check=True)
    return out


def old_rdma_core():
    """A tar of Debian 12's rdma-core 44, to be unpacked in OLD; `sh OLD/run` is its rping, in a mount name space."""
    def make(tmp):
        tree = apt.Suite("bookworm").unpack(OLD_RDMA_CORE, tmp / "t", closure=False)
        libraries = tree / "usr/lib/x86_64-linux-gnu"
        (tmp / "run").write_text(OLD_RPING)
        with tarfile.open(tmp / "old.tar", "w") as tar:
            for path in (tmp / "run", tree / "usr/bin/rping", libraries / PROVIDER, *libraries.glob("lib*.so*")):
                tar.add(path, path.name)
        return tmp / "old.tar"

    return cache.entry("rdma-core-44-rping.tar", make, "fetching rdma-core 44")
