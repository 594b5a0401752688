# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Build the Debian package, and install the module with DKMS as on a server.

In a guest, whose compiler may run under TCG and then takes minutes; or in a root directory
of the same packages on this machine.
"""
import glob
import re
import shutil
import subprocess
import time
from pathlib import Path

from guest import images, kernels, tools
from guest.errors import LabError, Timeout

TOP = Path(__file__).resolve().parents[2]
IMAGE = "debian13-dkms"
PACKAGE = "irdma-oot-dkms"
COMPILE_TIMEOUT_S = 1500
PROGRESS_S = 15
NEVER = re.compile(r"(?!)")


def build_deb(source=TOP):
    """make deb in a source tree; returns the package's path."""
    # its standard error tells what it fetches the first time
    r = subprocess.run(["make", "-s", "deb"], cwd=source, stdout=subprocess.DEVNULL, check=False)
    debs = sorted((Path(source) / "build").glob(f"{PACKAGE}_*_all.deb"))
    if r.returncode or not debs:
        raise LabError("make deb failed, see above")
    return debs[-1]


class Root:
    """A root directory with Debian 13, DKMS and the kernel's headers; enter it with run()."""

    SETUP = """
        mount -t proc proc $0/proc && mount -t tmpfs tmpfs $0/dev || exit
        mknod -m 666 $0/dev/null c 1 3 && ln -s /proc/self/fd $0/dev/fd || exit
        exec chroot "$@"
    """
    ENV = {"PATH": "/usr/sbin:/usr/bin", "DEBIAN_FRONTEND": "noninteractive", "HOME": "/root", "LC_ALL": "C"}

    def __init__(self, path, kernel):
        self.path, self.release = Path(path), kernels.release(kernel)
        subprocess.run([*tools.tool("usr/bin/fsck.erofs"), f"--extract={path}", images.root_image(IMAGE)],
                       check=True, capture_output=True)
        # the modules that matter here, with the lists of all
        seen = kernels.modules_dir(kernel)
        mine = self.path / "usr/lib/modules" / self.release
        for sub in ("kernel/drivers/infiniband", "kernel/drivers/net/ethernet/intel"):
            shutil.copytree(seen / sub, mine / sub)
        for file in seen.glob("modules.*"):
            shutil.copy(file, mine)

    def run(self, command, cwd="/root"):
        """Run a shell command in the root; raises LabError when it fails; returns its output."""
        r = subprocess.run(["unshare", "-m", "--propagation", "private", "sh", "-c", self.SETUP, self.path,
                            self.path, "bash", "-c", f"cd {cwd} && {command}"],
                           env=self.ENV, capture_output=True, text=True, check=False)
        if r.returncode:
            raise LabError(f"`{command}` in Debian 13: exit code {r.returncode}: {(r.stderr or r.stdout)[-500:]}")
        return r.stdout

    def changes(self, tar):
        """Pack what installing the package changed, for a guest of the same image."""
        subprocess.run(["tar", "-C", self.path, "-cf", tar, "var/lib/dkms", "var/lib/dpkg",
                        f"usr/lib/modules/{self.release}/updates", "usr/share/man",
                        *(str(Path(p).relative_to(self.path)) for p in
                          glob.glob(f"{self.path}/usr/src/irdma-*") + glob.glob(f"{self.path}/usr/share/doc/irdma*"))],
                       check=True)
        return tar


def writable_modules(host):
    """Make the directory of modules writable and give it its link to the headers."""
    host.run("""rel=$(uname -r) d=/usr/lib/modules/$(uname -r)
        mountpoint -q /run/modules-rw && exit 0
        mkdir -p /run/modules-rw && mount -t tmpfs tmpfs /run/modules-rw && cd /run/modules-rw &&
        mkdir upper work && mount -t overlay overlay -o lowerdir=$d,upperdir=$PWD/upper,workdir=$PWD/work $d &&
        ln -sf /usr/src/linux-headers-$rel $d/build""").check()


def install(host, deb, progress=lambda text: None):
    """Install the package; its DKMS hook compiles the module for the running kernel."""
    writable_modules(host)
    host.put(deb, f"/tmp/{deb.name}")
    command = host.popen(f"DEBIAN_FRONTEND=noninteractive apt-get install -y /tmp/{deb.name}")
    deadline = time.monotonic() + COMPILE_TIMEOUT_S
    while command.poll() is None and time.monotonic() < deadline:
        try:
            command.wait_output(NEVER, PROGRESS_S)
        except Timeout:
            done = host.run("cat /var/lib/dkms/irdma/*/build/make.log 2>/dev/null | grep -c '^ *CC '").out.strip()
            progress(f"{done} files compiled")
        except LabError:        # it has ended
            break
    r = command.wait(PROGRESS_S)
    if r.rc or host.run("dkms status | grep -q 'irdma.*installed'").rc:
        log = host.run("tail -5 /var/lib/dkms/irdma*/*/build/make.log").out
        raise LabError(f"{host.name}: installing {deb.name} did not install the module: "
                       f"{(r.err.strip() or r.out.strip())[-200:]} {log}")


def copy_build(source, target):
    """Carry a finished DKMS build to a host with the same kernel, sparing it the compiler."""
    source.run("cd / && tar -cf /tmp/dkms.tar var/lib/dkms usr/src/irdma-* "
               "$(find usr/lib/modules/$(uname -r)/updates -type f)").check()
    unpack_build(target, source.get("/tmp/dkms.tar"))


def unpack_build(host, tar):
    """Put a finished DKMS build (Root.changes(), or bytes) where a guest looks for it."""
    writable_modules(host)
    host.put(tar, "/tmp/dkms.tar")
    host.run("tar -C / -xf /tmp/dkms.tar && depmod -a", timeout=120).check()


def load(host):
    """modprobe irdma, give the port its addresses, wait until it is active."""
    host.driver = "none"
    host.run("modprobe irdma").check()
    dev = host.ports[0].netdev
    r = host.run(f"timeout 30 sh -c 'until rdma link | grep -q \"state ACTIVE.* netdev {dev} \"; do sleep 0.1; done'",
                 timeout=60)
    if r.rc:
        raise LabError(f"{host.name}: port of {dev} is not active 30 s after modprobe irdma: "
                       f"{host.run('rdma link').out.strip() or 'no RDMA device'}")
