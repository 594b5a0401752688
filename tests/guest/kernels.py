# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The Debian kernels that the lab boots and builds modules against.

For each: the image, headers and modules unpacked in the cache, an erofs image
of the modules for the guests, an initramfs of the agent plus the few modules
that reach the root disk, a KDIR, and siw.ko built from the source package
(Debian leaves CONFIG_RDMA_SIW off).

And one that Debian does not offer, "debug": its source with lockdep, KASAN and
the like (debug.config), built here when somebody asks for it.
"""

import hashlib
import io
import lzma
import os
import re
import shutil
import stat
import struct
import subprocess
import sys
import tarfile
from pathlib import Path

from . import apt, cache, tools
from .errors import LabError

AGENT_SRC = Path(__file__).resolve().parent / "agent.c"

# name -> Debian release, pattern of the image package, prefixes of the packages
# that hold a bootable kernel
KERNELS = {
    "6.1": ("bookworm", r"linux-image-6\.1\.\d+-\d+-amd64", ("image",)),
    "6.12": ("bookworm", r"linux-image-6\.12\.\d+\+deb12(\.\d+)?-amd64", ("image",)),
    "7.3": ("trixie", r"linux-image-7\.3\.\d+\+deb13(\.\d+)?-amd64",
            ("image", "base", "binary", "modules")),
}
DEFAULT = "7.3"
DEBUG = "debug"
DEBUG_OF = "7.3"    # whose source
ALL = (*KERNELS, DEBUG)
DEBUG_CONFIG = Path(__file__).resolve().parent / "debug.config"

# directories of /lib/modules/*/kernel that a guest gets
MODULE_DIRS = ("arch", "block", "crypto", "fs", "lib", "net", "security", "drivers/base", "drivers/block",
               "drivers/char", "drivers/dma", "drivers/dma-buf", "drivers/dpll", "drivers/gnss",
               "drivers/i2c", "drivers/infiniband", "drivers/net", "drivers/nvme", "drivers/pps",
               "drivers/ptp", "drivers/scsi", "drivers/target", "drivers/virtio", "drivers/md",
               "drivers/dca", "drivers/vhost", "drivers/hwmon", "drivers/fwctl")
MODULE_SKIP = ("drivers/net/wireless", "net/wireless", "net/mac80211", "net/bluetooth")

# what the initramfs must load to find the root file system and the agent's port
# (crc32c_generic: what libcrc32c looks up by name on kernels that have it)
BOOT_MODULES = ("?crc32c_generic", "virtio_pci", "virtio_blk", "virtio_console", "erofs", "overlay")

SIW_OBJECTS = "siw_cm siw_cq siw_main siw_mem siw_qp siw_qp_tx siw_qp_rx siw_verbs"


def check_name(name):
    """Raise a LabError when the lab has no kernel of that name."""
    if name not in ALL:
        raise LabError(f"no kernel {name!r}; there are {', '.join(ALL)}")


def _debian(name):
    """The Debian release that kernel `name`, its source and its compiler are from."""
    return KERNELS[DEBUG_OF if name == DEBUG else name][0]


def release(name):
    """Return the kernel release, e.g. "6.1.0-57-amd64", that `name` stands for.

    Looked up in the archive once and kept, until forget_releases().
    """
    check_name(name)
    if name == DEBUG:
        digest = hashlib.sha256(DEBUG_CONFIG.read_bytes()).hexdigest()[:8]
        return f"{re.match('[0-9.]+', release(DEBUG_OF))[0]}-debug-{digest}"
    debian, pattern, _ = KERNELS[name]

    def build(tmp):
        found = apt.Suite(debian).newest(pattern)
        if not found:
            raise LabError(f"Debian {debian} offers no kernel {name}; this host's apt sources must have "
                           f"the main and the security archive, they have {' and '.join(apt.host_archives())}")
        path = tmp / "release"
        path.write_text(found[-1][len("linux-image-"):] + "\n")
        return path

    return cache.entry(f"kernels/{name}.release", build).read_text().strip()


def forget_releases():
    """Make the next use look for newer kernels (scripts/lab setup --update)."""
    for name in KERNELS:
        (cache.root() / "kernels" / f"{name}.release").unlink(missing_ok=True)


def tree(name):
    """Return the directory with image, modules, headers and kbuild of kernel `name`."""
    rel = release(name)
    if name == DEBUG:
        return cache.entry(f"kernels/{rel}", _build_debug, f"building kernel {rel}, some ten minutes", 4000)
    debian, _, parts = KERNELS[name]
    final = cache.root() / "kernels" / rel

    def build(tmp):
        suite = apt.Suite(debian)
        headers = f"linux-headers-{rel}"
        packages = [f"linux-{part}-{rel}" for part in parts] + [headers]
        packages += [p for p in suite.depends(headers)
                     if re.match(r"linux-(headers|kbuild)-", p)]
        t = suite.unpack(packages, tmp / "t", closure=False)
        _adapt_headers(t, final, rel, debian)
        return t

    return cache.entry(f"kernels/{rel}", build, f"unpacking kernel {rel}", 1500)


def _adapt_headers(t, final, rel, debian):
    """Make the unpacked headers of kernel `rel` usable from below the cache."""
    cc = tools.compiler(debian)
    kdir = t / f"usr/src/linux-headers-{rel}"
    makefile = kdir / "Makefile"
    makefile.write_text(makefile.read_text().replace("/usr/src/", f"{final}/usr/src/"))
    with open(kdir / ".kernelvariables", "a") as f:
        f.write(f"override CROSS_COMPILE = {cc}/usr/bin/x86_64-linux-gnu-\n"
                f"override PAHOLE = {cc}/usr/bin/pahole\n")
    for link in (t / "usr/src").rglob("*"):
        if link.is_symlink() and os.readlink(link).startswith("/usr/"):
            target = os.readlink(link)
            link.unlink()
            link.symlink_to(f"{final}{target}")
    for kbuild in (t / "usr/lib").glob("linux-kbuild-*"):
        tools.patch_programs(kbuild, cc)
    if debian == "bookworm":
        (t / "usr/lib/modules").parent.mkdir(parents=True, exist_ok=True)
        (t / "lib/modules").rename(t / "usr/lib/modules")


def _build_debug(tmp):
    """Build the debug kernel from Debian's source package, laid out like the packages of the others."""
    tools.need("bc", "bison", "flex", "gcc", "make")
    rel = release(DEBUG)
    t = tmp / "t"
    src = t / f"usr/src/linux-headers-{rel}"
    _unpack_source(DEBUG_OF, src)
    cc = tools.compiler(_debian(DEBUG))
    gcc = tools.COMPILERS[_debian(DEBUG)][0]
    (src / ".kernelvariables").write_text(
        f"override CROSS_COMPILE = {cc}/usr/bin/x86_64-linux-gnu-\nCC = $(CROSS_COMPILE){gcc}\n")
    config = tmp / "config"
    config.write_text(DEBUG_CONFIG.read_text() + f'CONFIG_LOCALVERSION="-{rel.partition("-")[2]}"\n')

    def make(*words):
        return cache.run(["make", "-s", "-C", src, f"-j{os.cpu_count()}", *words], f"building kernel {rel}")

    make(f"KCONFIG_ALLCONFIG={config}", "allnoconfig")
    built = (src / ".config").read_text().splitlines()
    lost = [s for s in config.read_text().splitlines() if s.startswith("CONFIG_") and s not in built]
    if lost:
        raise LabError(f"{DEBUG_CONFIG.name}: kernel {rel} does not take {', '.join(lost)}")
    make("bzImage", "modules")
    make("modules_install", f"INSTALL_MOD_PATH={t / 'usr'}", "DEPMOD=true")
    (t / "boot").mkdir()
    shutil.copyfile(src / "arch/x86/boot/bzImage", t / f"boot/vmlinuz-{rel}")
    for path in src.rglob("*.[cSo]"):
        if path.relative_to(src).parts[0] not in ("scripts", "tools"):
            path.unlink()
    return t


def _source_package(name, into):
    """Fetch the source package of kernel `name` into a directory; returns its path."""
    return apt.Suite(_debian(name)).fetch([f"linux-source-{name}"], into, closure=False)[0]


def _unpack_source(name, into):
    """Unpack the source package of kernel `name`."""
    deb = _source_package(name, into.parent / "deb")
    into.mkdir(parents=True)
    cache.run(["sh", "-c", f"dpkg-deb --fsys-tarfile {deb} | tar -xO --wildcards '*.tar.xz' | "
               f"tar -xJ --strip-components=1 -C {into}"], f"unpacking {deb.name}")
    cache.remove(into.parent / "deb")


def kdir(name):
    """Return the KDIR to build modules for kernel `name` against; usable on this host."""
    return tree(name) / f"usr/src/linux-headers-{release(name)}"


def _vmlinuz(name):
    rel = release(name)
    t = tree(name)
    for path in (t / f"boot/vmlinuz-{rel}", t / f"usr/lib/modules/{rel}/vmlinuz"):
        if path.exists():
            return path
    raise LabError(f"no vmlinuz in {t}; delete that directory and run scripts/lab setup")


def vmlinux(name):
    """Return the bootable ELF image of kernel `name`, taken out of its vmlinuz.

    QEMU enters it directly (PVH): the guest need not decompress it, which takes seconds of TCG.
    """
    if name == DEBUG:
        return _vmlinuz(name)       # with KASAN it does not survive being entered that way

    def build(tmp):
        data = _vmlinuz(name).read_bytes()
        # Documentation/arch/x86/boot.rst: setup_sects, payload_offset, payload_length; the last
        # four bytes of the payload are its unpacked size
        start = ((data[0x1f1] or 4) + 1) * 512
        offset, length = struct.unpack_from("<II", data, 0x248)
        payload = data[start + offset:start + offset + length - 4]
        path = tmp / "vmlinux"
        if payload.startswith(b"\xfd7zXZ"):
            path.write_bytes(lzma.decompress(payload))
        else:
            (tmp / "vmlinux.zst").write_bytes(payload)
            cache.run([*tools.tool("usr/bin/zstd"), "-qd", tmp / "vmlinux.zst", "-o", path],
                      "unpacking the kernel")
        return path

    return cache.entry(f"kernels/{release(name)}.vmlinux", build)


def _modules_name(name):
    """Name the choice of modules, so that another choice is collected anew."""
    return f"{release(name)}-{hashlib.sha256(repr((MODULE_DIRS, MODULE_SKIP)).encode()).hexdigest()[:8]}"


def modules_dir(name):
    """Return the directory of kernel `name`'s modules as the guests see them (uncompressed)."""
    rel = release(name)
    src = tree(name) / f"usr/lib/modules/{rel}"

    def build(tmp):
        out = tmp / "t/lib/modules" / rel
        for d in MODULE_DIRS:
            for path in (src / "kernel" / d).rglob("*.ko*"):
                name_in_kernel = path.relative_to(src / "kernel")
                if str(name_in_kernel).startswith(MODULE_SKIP):
                    continue
                _copy_module(path, out / "kernel" / name_in_kernel)
        for path in src.glob("modules.*"):
            if path.name.startswith(("modules.order", "modules.builtin")):
                shutil.copy(path, out)
        cache.run([*tools.tool("usr/sbin/depmod"), "-b", tmp / "t", rel], "running depmod")
        return tmp / "t"

    base = cache.entry(f"modules/{_modules_name(name)}", build, f"collecting the modules of {rel}", 1000)
    return base / "lib/modules" / rel


def _copy_module(src, dst):
    dst.parent.mkdir(parents=True, exist_ok=True)
    if src.suffix == ".xz":
        dst.with_suffix("").write_bytes(lzma.decompress(src.read_bytes()))
    else:
        shutil.copyfile(src, dst)


def modules_image(name):
    """Return the erofs image of kernel `name`'s module directory."""
    rel = release(name)
    d = modules_dir(name)

    def build(tmp):
        cache.run([*tools.tool("usr/bin/mkfs.erofs"), "--quiet", "--all-root", tmp / "m.img", d],
                  "making the module image")
        return tmp / "m.img"

    return cache.entry(f"modules/{_modules_name(name)}.erofs", build, f"making the module image of {rel}", 600)


def _module_key(path):
    return re.sub(r"\.ko.*", "", os.path.basename(path)).replace("-", "_")


def load_order(name, wanted):
    """Return the module files (relative to modules_dir) to load, in order, for `wanted`.

    Modules that are built into the kernel need no file; "?name" may be unknown to the kernel.
    """
    d = modules_dir(name)
    deps = {}
    for line in (d / "modules.dep").read_text().splitlines():
        path, _, rest = line.partition(":")
        deps[_module_key(path)] = (path, rest.split())
    builtin = {_module_key(s) for s in (d / "modules.builtin").read_text().split()}
    order = []
    for module in wanted:
        optional = module.startswith("?")
        module = module.lstrip("?")
        if module in builtin or (optional and module not in deps):
            continue
        if module not in deps:
            raise LabError(f"kernel {release(name)} has no module {module}")
        path, needs = deps[module]
        for p in [*reversed(needs), path]:
            if p not in order:
                order.append(p)
    return order


def agent():
    """Return the agent, the guest's init, a static program; compiled when its source changed."""
    tools.need("gcc")
    text = AGENT_SRC.read_bytes()
    digest = hashlib.sha256(text).hexdigest()[:16]

    def build(tmp):
        cache.run(["gcc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-static", "-s",
                   "-o", tmp / "agent", AGENT_SRC], "compiling the guest agent")
        return tmp / "agent"

    path = cache.entry(f"agent/{digest}", build)
    os.chmod(path, 0o755)
    return path


class Cpio:
    """Writes a newc archive, the format of an initramfs."""

    def __init__(self):
        self._out = io.BytesIO()
        self._inode = 0

    def add(self, name, data=b"", mode=stat.S_IFREG | 0o755, rdev=(0, 0)):
        """Add one file, directory or device node; `data` is a file's content."""
        self._inode += 1
        fields = (self._inode, mode, 0, 0, 1, 0, len(data), 0, 0, *rdev, len(name) + 1, 0)
        self._out.write(b"070701" + b"".join(b"%08X" % f for f in fields))
        self._out.write(name.encode() + b"\0")
        self._pad()
        self._out.write(data)
        self._pad()

    def _pad(self):
        self._out.write(b"\0" * (-self._out.tell() % 4))

    def bytes(self):
        """Close the archive and return it."""
        self.add("TRAILER!!!", mode=0)
        return self._out.getvalue()


def initramfs(name):
    """Return the initramfs of kernel `name`: the agent, and modules in load order."""
    program = agent()
    d = modules_dir(name)

    def build(tmp):
        cpio = Cpio()
        for directory in ("dev", "proc", "sys", "root", "modules"):
            cpio.add(directory, mode=stat.S_IFDIR | 0o755)
        cpio.add("dev/console", mode=stat.S_IFCHR | 0o600, rdev=(5, 1))
        cpio.add("init", program.read_bytes())
        for n, path in enumerate(load_order(name, BOOT_MODULES)):
            cpio.add(f"modules/{n:02}-{os.path.basename(path)}", (d / path).read_bytes())
        path = tmp / "initramfs"
        path.write_bytes(cpio.bytes())
        return path

    recipe = hashlib.sha256(repr(BOOT_MODULES).encode()).hexdigest()[:8]
    return cache.entry(f"initramfs/{release(name)}-{program.name}-{recipe}", build)


def siw(name):
    """Return siw.ko (software iWARP) for kernel `name`, built from its source package."""
    rel = release(name)
    if name == DEBUG:
        return modules_dir(name) / "kernel/drivers/infiniband/sw/siw/siw.ko"

    def build(tmp):
        _extract_siw(name, tmp / "src")
        objects = " ".join(o + ".o" for o in SIW_OBJECTS.split())
        (tmp / "src/Makefile").write_text(f"obj-m += siw.o\nsiw-y := {objects}\n")
        cache.run(["make", "-s", "-C", kdir(name), f"M={tmp / 'src'}", "modules"],
                  f"building siw.ko for {rel}")
        return strip_debug(tmp / "src/siw.ko", name, tmp / "siw.ko")

    return cache.entry(f"siw/{rel}.ko", build, f"building siw.ko for {rel}", 600)


def _extract_siw(name, into):
    """Take drivers/infiniband/sw/siw out of the kernel's source package."""
    package = _source_package(name, into.parent / "deb")
    into.mkdir()
    with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL) as outer:
        with tarfile.open(fileobj=outer.stdout, mode="r|") as deb:
            for member in deb:
                if member.name.endswith(".tar.xz"):
                    _extract_dir(deb.extractfile(member), "/drivers/infiniband/sw/siw/", into)
                    break
        outer.stdout.close()
        outer.kill()
    if not (into / "siw_cm.c").exists():
        raise LabError(f"linux-source-{name} holds no siw sources")


def _extract_dir(stream, directory, into):
    """Copy the .c and .h files of one directory out of a .tar.xz stream."""
    seen = False
    with tarfile.open(fileobj=stream, mode="r|xz") as tar:
        for member in tar:
            inside = directory in "/" + member.name
            if seen and not inside:
                return
            if inside and member.name.endswith((".c", ".h")):
                seen = True
                (into / os.path.basename(member.name)).write_bytes(
                    tar.extractfile(member).read())


def strip_debug(module, name, out):
    """Write `module` without its debug information to `out`; return out."""
    strip = tools.compiler(_debian(name)) / "usr/bin/x86_64-linux-gnu-strip"
    cache.run([strip, "-g", "-o", out, module], f"stripping {module}")
    return out


def build_driver(name, source, out=None, make_args=(), quiet=False, copy=None, fresh=False):
    """Build irdma.ko of tree `source` for kernel `name`, in `out` (default: in the cache, a place for each tree).

    The sources are copied there, so that builds for several kernels do not meet.
    quiet: show the compiler's words only when it fails.  copy: put irdma.ko there before
    another build may replace it.  fresh: forget the build before.  Returns the path of irdma.ko.
    """
    rel = release(name)
    source = Path(source)
    if not (source / "Kbuild").exists() and not (source / "Makefile").exists():
        raise LabError(f"{source} holds no Kbuild; give the directory of the driver's sources")
    tree = hashlib.sha256(bytes(source.resolve())).hexdigest()[:12]
    out = Path(out or cache.root() / "build" / f"{rel}-{tree}")
    # make takes more than a second to find that there is nothing to do, which each lab would wait for
    stamp, words = out / ".built", [f"KDIR={kdir(name)}", *make_args]
    with cache.lock(f"build-{rel}-{tree}"):
        if fresh:
            cache.remove(out)
        built = stamp.read_text() if stamp.exists() and (out / "irdma.ko").exists() else None
        stamp.unlink(missing_ok=True)
        if _mirror(source, out) or built != "\n".join(words):
            _make_driver(rel, out, words, quiet)
        stamp.write_text("\n".join(words))
        return Path(shutil.copy(out / "irdma.ko", copy)) if copy else out / "irdma.ko"


def _make_driver(rel, out, make_args, quiet):
    """Run make in `out`; `rel` is for what is said when it fails."""
    r = subprocess.run(["make", f"-j{os.cpu_count()}", "-C", out, *make_args],
                       stdin=subprocess.DEVNULL, check=False, text=True,
                       stdout=subprocess.PIPE if quiet else None,
                       stderr=subprocess.STDOUT if quiet else None)
    if r.returncode:
        if quiet:
            sys.stderr.write(r.stdout)
        raise LabError(f"building irdma.ko for {rel} failed; the compiler's messages are above")
    if not (out / "irdma.ko").exists():
        raise LabError(f"make succeeded but left no irdma.ko in {out}")


def _mirror(source, out):
    """Bring the driver's top-level files and scripts/ of `source` to `out`; returns whether one was not there so."""
    out.mkdir(parents=True, exist_ok=True)
    wanted = set()
    changed = False
    candidates = [p for p in source.iterdir()
                  if p.name in ("Makefile", "Kbuild", "dkms.conf") or p.suffix in (".c", ".h", ".S")]
    candidates += [p for p in (source / "scripts").rglob("*") if p.is_file()]
    for path in candidates:
        # what a build in the source tree itself left behind
        if path.name.endswith(".mod.c"):
            continue
        rel = path.relative_to(source)
        wanted.add(rel)
        dst = out / rel
        if dst.exists() and dst.read_bytes() == path.read_bytes():
            continue
        dst.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, dst)
        os.utime(dst)
        changed = True
    for path in out.glob("*.[ch]"):
        if path.relative_to(out) not in wanted and not path.name.endswith(".mod.c"):
            path.unlink()
            changed = True
    return changed


def describe():
    """Return {name: release} of the kernels that have been looked up already."""
    known = {}
    for name in KERNELS:
        path = cache.root() / "kernels" / f"{name}.release"
        if path.exists():
            known[name] = path.read_text().strip()
    return known
