# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The package on Debian 13: what the README says of a server, from make deb to rping and back."""
import re
import shutil
import subprocess

import pytest

import dkms
import traffic
from conftest import TOP

pytestmark = [pytest.mark.ci_kernel("7.3"), pytest.mark.not_debug]

NEXT = "9.9.9"
OURS = "/updates/dkms/irdma.ko"


ADDRESS = "192.0.2.{}"     # of the README's rping

# inline commands of the README that have no place in a guest, and why
NOT_HERE = {
    "mokutil --import /var/lib/dkms/mok.pub": "needs EFI variables and a person at the console",
    "update-initramfs -u": "guests boot without an initramfs of Debian",
    "tcpdump": "named, not recommended",
}
PROGRAMS = ("apt", "depmod", "devlink", "dkms", "dmesg", "make", "modinfo", "modprobe", "mokutil", "rdma", "tcpdump",
            "trace-cmd", "ulimit", "update-initramfs")


def readme_blocks():
    """The indented blocks of the README, as lists of lines."""
    blocks = re.findall(r"^(?:    .*\n)+", (TOP / "README.md").read_text(), re.M)
    return [[line.split("    # ")[0].strip() for line in b.splitlines()] for b in blocks]


def readme_inline():
    """Commands in the running text and the tables of the README."""
    spans = set(re.findall(r"`([^`\n]+)`", (TOP / "README.md").read_text()))
    return sorted(s.replace("\\|", "|") for s in spans if s.split()[0] in PROGRAMS and
                  (" " in s or s in ("tcpdump",)))


def dry_run(command):
    """Let make show what it would do; kbuild, which shows nothing without a kernel's headers, is left out."""
    words = re.sub(r"\[.*\]", "", command).split() + ["-n", "MAKE=:"]
    r = subprocess.run(words, cwd=TOP, check=False, capture_output=True, text=True)
    assert r.returncode == 0, f"{command}: expected make to know its way, got {r.stderr[-300:]}"


def server_commands():
    return next(b for b in readme_blocks() if b[0].startswith("apt install"))


@pytest.fixture(scope="module")
def root(kernel, tmp_path_factory):
    """Debian 13 with the package installed by the README's commands; root.tar for a guest."""
    path = tmp_path_factory.mktemp("debian")
    root = dkms.Root(path / "root", kernel)
    root.before = installed(root)[1]
    packages, make_deb, install = server_commands()[:3]
    assert make_deb == "make deb", f"expected the README to build the package, got {make_deb}"
    (root.path / "root/build").mkdir()
    shutil.copy(dkms.build_deb(), root.path / "root/build")
    for command in packages, install:
        root.run(command.replace("apt install", "apt-get install -y").replace("$(uname -r)", root.release))
    root.tar = root.changes(path / "changes.tar")
    yield root
    shutil.rmtree(path, ignore_errors=True)


def tree_copy(into):
    """A copy of the sources, without what building left."""
    subprocess.run(f"git ls-files -z -co --exclude-standard | tar --null -T - -c | (mkdir {into} && tar -C {into} -x)",
                   shell=True, cwd=TOP, check=True)
    return into


def next_package(tmp_path):
    """The package of a later version."""
    tree = tree_copy(tmp_path / "next")
    for name in ("dkms.conf", "debian/changelog"):
        text = (tree / name).read_text()
        (tree / name).write_text(text.replace(version(), NEXT, 1))
    return dkms.build_deb(tree)


def version():
    return re.search(r'PACKAGE_VERSION="(.*)"', (TOP / "dkms.conf").read_text())[1]


def installed(root):
    """(versions that DKMS has installed, module that modprobe takes, its version)"""
    status = re.findall(r"^irdma/([^,]+),.*: installed", root.run("dkms status"), re.M)
    module = root.run(f"modprobe -S {root.release} --show-depends irdma | sed -n 's/^insmod //p' | tail -1").strip()
    return status, module, root.run(f"modinfo -F version {module}").strip()


def test_installed(root):
    """modprobe prefers our module; the manual pages and the example are there."""
    assert root.before.endswith("/kernel/drivers/infiniband/hw/irdma/irdma.ko"), root.before
    assert installed(root) == ([version()], f"/lib/modules/{root.release}{OURS}", version())
    root.run("test -e /usr/share/man/man9/irdma_send_cm_event.9.gz")
    root.run("test -e /usr/share/doc/irdma-oot-dkms/examples/irdma-oot.modprobe.conf")


def test_upgrade_and_remove(root, tmp_path):
    """Afterwards the kernel's own module is where it was."""
    later = next_package(tmp_path)
    shutil.copy(later, root.path / "root")
    root.run(f"apt-get install -y ./{later.name}")
    assert installed(root) == ([NEXT], f"/lib/modules/{root.release}{OURS}", NEXT)
    root.run("apt-get remove -y irdma-oot-dkms")
    status, module, _ = installed(root)
    assert (status, module) == ([], root.before), f"expected the kernel's own module, got {module}, DKMS has {status}"
    left = root.run("ls -d /usr/src/irdma-* /var/lib/dkms/irdma/* 2>/dev/null || true").split()
    assert not left, f"expected nothing of the package left, got {left}"


@pytest.mark.long
def test_without_package(root):
    """make dkms-install, and make && make install."""
    root.run("dpkg -r irdma-oot-dkms")
    tree_copy(root.path / "root/tree")
    kver = f"KVER={root.release}"
    root.run(f"make {kver} && make install {kver}", cwd="/root/tree")
    module = f"/lib/modules/{root.release}/updates/irdma.ko"
    taken = installed(root)[1]
    assert taken in (module, module + ".xz"), f"expected modprobe to take {module}, got {taken}"
    root.run(f"rm {taken} && depmod {root.release} && make clean {kver} && make dkms-install DKMS_FLAGS='-k {root.release}'", cwd="/root/tree")
    assert installed(root)[:2] == ([version()], f"/lib/modules/{root.release}{OURS}")
    root.run(f"dkms remove irdma/{version()} --all && rm -r /usr/src/irdma-{version()}")
    assert installed(root)[1] == root.before


@pytest.fixture(scope="module")
def server(root, module_labs):
    """Two guests with the package's build, loaded by the README's commands."""
    lab = module_labs.get("none", image=dkms.IMAGE, mem_mb=2048)
    reload, show = server_commands()[3:]
    for host in lab.hosts.values():
        dkms.unpack_build(host, root.tar)
        host.run(reload).check()
        dkms.load(host)
        host.driver = "irdma"
        assert "irdma0" in host.run(show).check().out
        host.run(f"ip addr add {ADDRESS.format(host.number)}/24 dev {host.ports[0].netdev}").check()
    return lab


def test_readme_rping(server):
    lines = next(b for b in readme_blocks() if b[0].startswith("server$"))
    listen, connect = (line.split("$ ")[1] for line in lines)
    traffic.pair(server["A"], listen, server["B"], connect, 7174)


def test_readme_commands(server):
    """What the README tells an administrator to type works on a server."""
    known = [c for b in readme_blocks() for c in b if not c.startswith("make")]
    assert len(known) == 6, f"expected each block of the README to be known to a test, got {known}"
    for command in readme_inline():
        if command in NOT_HERE:
            continue
        if command.startswith("make"):
            for words in command.split("&&"):
                dry_run(words)
        elif command.startswith("trace-cmd"):
            server["A"].run(f"cd /tmp && timeout -s INT 3 {command}; trace-cmd report | head").check()
        else:
            server["A"].run(command).check()


@pytest.mark.parametrize("command", sorted({c for b in readme_blocks() for c in b if c.startswith("make")}))
def test_readme_make(command):
    """The targets exist; what they do is run by the other tests."""
    dry_run(command)


def test_remove_in_guest(server):
    """Removing the package on a running server gives the kernel's own module back."""
    host = server["B"]
    host.unload_driver()
    host.run("apt-get remove -y irdma-oot-dkms", timeout=120).check()
    module = host.run("modinfo -n irdma").check().out.strip()
    assert "/kernel/drivers/" in module, f"expected the kernel's own module, got {module}"
    host.run("modprobe irdma && test ! -e /sys/module/irdma/version").check()
    host.driver = "intree"
