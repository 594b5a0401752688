# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Programs of Debian 13 that the lab runs on the host, whatever the host's release.

They come as one unpacked package tree and are started through that tree's own
dynamic loader, so no chroot and no root rights are needed: QEMU when the
system's is too old, mkfs.erofs, depmod, patchelf.  The compilers that Debian
built each kernel with come as trees of their own, patched to find their loader.
"""

import os
import re
import shutil
import subprocess
from pathlib import Path

from . import apt, cache
from .errors import LabError

TOOLS = ("erofs-utils", "kmod", "zstd")
QEMU = ("qemu-system-x86", "seabios")
QEMU_MIN = (10, 1)

# bookworm's patchelf 0.14: trixie's 0.18 damages programs that are not position independent
PATCHELF = ("patchelf",)

COMPILERS = {
    "bookworm": ("gcc-12", "binutils", "pahole"),
    "trixie": ("gcc-14", "gcc-14-for-host", "binutils", "pahole"),
}


def tool(program):
    """Return the argv prefix of one of the tree's programs, e.g. "usr/bin/mkfs.erofs"."""
    suite = apt.Suite("trixie")
    tree = cache.entry("tools", lambda tmp: suite.unpack(TOOLS, tmp / "t"),
                       "unpacking image tools", 200)
    return apt.loader(tree, program)


def _system_qemu():
    """Return the host's QEMU when it is new enough and knows vfio-user-pci, else None."""
    program = shutil.which("qemu-system-x86_64")
    if not program:
        return None
    version = subprocess.run([program, "--version"], capture_output=True, text=True, check=False)
    m = re.search(r"version (\d+)\.(\d+)", version.stdout)
    if not m or (int(m.group(1)), int(m.group(2))) < QEMU_MIN:
        return None
    devices = subprocess.run([program, "-device", "help"], capture_output=True,
                             text=True, check=False)
    return [program] if "vfio-user-pci" in devices.stdout else None


def qemu():
    """Return (argv prefix, extra environment) of a QEMU that has vfio-user-pci."""
    own = _system_qemu()
    if own:
        return own, {}
    suite = apt.Suite("trixie")
    tree = cache.entry("qemu", lambda tmp: suite.unpack(QEMU, tmp / "t", target="trixie-backports"),
                       "unpacking a QEMU that has vfio-user-pci", 1200)
    argv = apt.loader(tree, "usr/bin/qemu-system-x86_64")
    argv += ["-L", str(tree / "usr/share/qemu"), "-L", str(tree / "usr/share/seabios")]
    return argv, {"QEMU_MODULE_DIR": str(tree / "usr/lib/x86_64-linux-gnu/qemu")}


def _elf_programs(tree):
    """Yield the dynamically linked programs below `tree`."""
    for path in Path(tree).rglob("*"):
        if path.is_symlink() or not path.is_file():
            continue
        with open(path, "rb") as f:
            head = f.read(4096)
        if head[:4] == b"\x7fELF" and b"ld-linux-x86-64.so.2" in head:
            yield path


def patch_programs(tree, libs_of):
    """Make the programs below `tree` use the loader and libraries of tree `libs_of`.

    libs_of: path the libraries will have when the programs run.
    """
    suite = apt.Suite("bookworm")
    own = cache.entry("patchelf", lambda tmp: suite.unpack(PATCHELF, tmp / "t"))
    patchelf = apt.loader(own, "usr/bin/patchelf")
    lib = f"{libs_of}/usr/lib/x86_64-linux-gnu"
    for path in _elf_programs(tree):
        if ".so" in path.name:
            continue
        os.chmod(path, 0o755)
        cache.run([*patchelf, "--set-interpreter", f"{lib}/ld-linux-x86-64.so.2",
                   "--force-rpath", "--set-rpath", lib, path], f"adapting {path.name}")


def compiler(release):
    """Return the tree with the compiler of Debian `release`; its programs run on any host."""
    final = cache.root() / f"compiler-{release}"

    def build(tmp):
        tree = apt.Suite(release).unpack(COMPILERS[release], tmp / "t")
        lib = tree / "usr/lib/x86_64-linux-gnu"
        if not (lib / "ld-linux-x86-64.so.2").exists():
            # bookworm's libc6 still installs below /lib
            for path in (tree / "lib/x86_64-linux-gnu").iterdir():
                path.rename(lib / path.name)
        patch_programs(tree, final)
        return tree

    return cache.entry(final.name, build, f"unpacking the compiler of Debian {release}", 900)


def need(*programs):
    """Raise a LabError when one of the host's own programs is missing."""
    for name in programs:
        if not shutil.which(name):
            raise LabError(f"{name} is not installed; run scripts/lab setup")
