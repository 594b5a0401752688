# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Root file systems of the guests: read-only erofs images of Debian packages.

An image is a list of packages plus a few files.  Packages are unpacked, not
installed: no maintainer script runs, which is what makes this take seconds; the
little that scripts would have done (passwd, ld.so.cache, a few alternatives)
is done here.
"""

import hashlib
import json
import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from . import apt, cache, kernels, tools
from .errors import LabError

BASE = ("base-files", "base-passwd", "bash", "dash", "coreutils", "util-linux", "mount",
        "findutils", "grep", "sed", "gzip", "tar", "mawk", "diffutils", "hostname", "procps",
        "psmisc", "iproute2", "iputils-ping", "ethtool", "kmod", "netbase", "e2fsprogs",
        "libc-bin", "passwd", "netcat-openbsd", "less", "strace", "pciutils", "xz-utils", "zstd")
RDMA = ("rdma-core", "rdmacm-utils", "ibverbs-utils", "ibverbs-providers", "perftest",
        "infiniband-diags", "librdmacm1t64", "python3", "python3-pyverbs")
ULP = ("nvme-cli", "nfs-common", "nfs-kernel-server", "rpcbind", "fio", "open-iscsi",
       "targetcli-fb")
TRACE = ("tcpdump", "trace-cmd", "bpftool")
# "@7.3" stands for the release of kernel 7.3
DKMS = ("apt", "dkms", "dpkg", "openssl", "gcc", "make", "libc6-dev", "linux-headers-@7.3")

FILES = {
    "etc/hosts": "127.0.0.1 localhost\n::1 localhost\n"
                 "192.168.77.1 A\n192.168.77.2 B\n192.168.77.3 C\n192.168.77.4 D\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\nservices: files\n"
                         "protocols: files\nnetgroup: files\n",
    "etc/fstab": "",
    "etc/mtab": None,
    "etc/security/limits.conf": "",
    "etc/bash.bashrc": 'PS1="\\h:\\w# "\n',
    "root/.bashrc": 'PS1="\\h:\\w# "\n',
    "etc/passwd": "@usr/share/base-passwd/passwd.master",
    "etc/group": "@usr/share/base-passwd/group.master",
}
USERS = ("_rpc:x:101:65534::/run/rpcbind:/usr/sbin/nologin\n"
         "statd:x:102:65534::/var/lib/nfs:/usr/sbin/nologin\n"
         "tcpdump:x:103:65534::/nonexistent:/usr/sbin/nologin\n")
LINKS = {
    "etc/mtab": "/proc/self/mounts",
    "usr/bin/awk": "mawk",
    "usr/bin/nc": "nc.openbsd",
    "usr/bin/pager": "less",
    "var/run": "/run",
    "var/lock": "/run/lock",
}
DIRECTORIES = ("dev", "proc", "sys", "run", "tmp", "root", "mnt", "var/tmp", "var/log",
               "var/lib/nfs/sm", "var/lib/nfs/sm.bak", "var/lib/nfs/rpc_pipefs",
               "usr/lib/modules", "lib/firmware")
PYTHON = "usr/lib/python3*"


@dataclass(frozen=True)
class Image:
    """What goes into a root: packages of a Debian release, and files (path -> text)."""

    name: str
    release: str
    packages: tuple
    files: dict = field(default_factory=dict)
    dpkg_status: bool = False
    mbytes: int = 1500


DEFAULT = "debian13"
IMAGES = {
    DEFAULT: Image(DEFAULT, "trixie", BASE + RDMA + ULP + TRACE),
    # what a server has on which DKMS builds the module
    "debian13-dkms": Image("debian13-dkms", "trixie", BASE + RDMA + TRACE + DKMS, dpkg_status=True,
                           mbytes=3000),
}


def _packages(image):
    """The image's packages with the kernels' releases filled in."""
    return tuple(re.sub("@(.*)", lambda m: kernels.release(m[1]), p) for p in image.packages)


def _digest(image):
    """Name the content: an image is rebuilt when its recipe changes."""
    recipe = json.dumps([_packages(image), image.files, FILES, LINKS, DIRECTORIES, USERS,
                         PYTHON, image.dpkg_status], sort_keys=True)
    return hashlib.sha256(recipe.encode()).hexdigest()[:12]


def _finish(tree, image):
    """Do by hand what the packages' scripts would have done."""
    for d in DIRECTORIES:
        (tree / d).mkdir(parents=True, exist_ok=True)
    for path, text in {**FILES, **image.files}.items():
        if text is None:
            continue
        dst = tree / path
        dst.parent.mkdir(parents=True, exist_ok=True)
        if text.startswith("@"):
            text = (tree / text[1:]).read_text()
        dst.write_text(text)
    with open(tree / "etc/passwd", "a") as f:
        f.write(USERS)
    (tree / "etc/shadow").write_text("".join(
        f"{line.split(':')[0]}:*:19000::::::\n"
        for line in (tree / "etc/passwd").read_text().splitlines()))
    for path, target in LINKS.items():
        link = tree / path
        if link.is_dir() and not link.is_symlink():
            continue
        link.unlink(missing_ok=True)
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(target)
    for name in ("iptables", "ip6tables"):
        if (tree / f"usr/sbin/{name}-nft").exists():
            (tree / f"usr/sbin/{name}").symlink_to(f"{name}-nft")
    _link_libraries(tree)
    _compile_python(tree)
    for d in ("usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info",
              "var/cache/apt"):
        cache.remove(tree / d)


def _link_libraries(tree):
    """Write etc/ld.so.cache with the tree's own ldconfig."""
    conf = tree / "etc/ld.so.conf"
    if not conf.exists():
        conf.write_text("include /etc/ld.so.conf.d/*.conf\n")
    cache.run([tree / "usr/sbin/ldconfig", "-r", tree], "running ldconfig")


def _compile_python(tree):
    """Write byte code with the tree's own Python, which under TCG else takes seconds for each program's imports."""
    cache.run([*apt.loader(tree, "usr/bin/python3"), "-S", "-m", "compileall", "-q", "-s", tree, "-p", "/",
               "--invalidation-mode", "unchecked-hash", *tree.glob(PYTHON)],
              "compiling Python's modules", env=dict(os.environ, PYTHONHOME=str(tree / "usr")))


def root_image(name=DEFAULT):
    """Return the erofs image of root `name`, built when missing."""
    if name not in IMAGES:
        raise LabError(f"no image {name!r}; there are {', '.join(IMAGES)}")
    image = IMAGES[name]

    def build(tmp):
        tree = apt.Suite(image.release).unpack(_packages(image), tmp / "t",
                                               status=image.dpkg_status)
        _finish(tree, image)
        out = tmp / "root.img"
        cache.run([*tools.tool("usr/bin/mkfs.erofs"), "--quiet", "--all-root", out, tree],
                  "making the root image")
        return out

    return cache.entry(f"images/{name}-{_digest(image)}.erofs", build,
                       f"building guest image {name}", image.mbytes)


def forget_old():
    """Delete images whose recipe is no longer used."""
    keep = {f"{i.name}-{_digest(i)}.erofs" for i in IMAGES.values()}
    for path in (cache.root() / "images").glob("*.erofs"):
        if path.name not in keep:
            path.unlink()


def size_mbytes(path):
    """Return the size of an image in MB."""
    return os.path.getsize(Path(path)) >> 20
