# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Build the Debian package, and install the module with DKMS in a guest, as on a server."""
import subprocess
from pathlib import Path

from guest.errors import LabError

TOP = Path(__file__).resolve().parents[2]
COMPILE_TIMEOUT_S = 1500    # the guest's compiler may run under TCG


def build_deb():
    """make deb; returns the package's path."""
    r = subprocess.run(["make", "-s", "deb"], cwd=TOP, capture_output=True, text=True, check=False)
    debs = sorted((TOP / "build").glob("irdma-oot-dkms_*_all.deb"))
    if r.returncode or not debs:
        raise LabError(f"make deb failed: {(r.stderr.strip() or r.stdout.strip() or '?').splitlines()[-1]}")
    return debs[-1]


def writable_modules(host):
    """Make the directory of modules writable and give it its link to the headers."""
    host.run("""rel=$(uname -r) d=/usr/lib/modules/$(uname -r)
        mountpoint -q /run/modules-rw && exit 0
        mkdir -p /run/modules-rw && mount -t tmpfs tmpfs /run/modules-rw && cd /run/modules-rw &&
        mkdir upper work && mount -t overlay overlay -o lowerdir=$d,upperdir=$PWD/upper,workdir=$PWD/work $d &&
        ln -sf /usr/src/linux-headers-$rel $d/build""").check()


def install(host, deb):
    """Install the package; its DKMS hook compiles the module for the running kernel."""
    writable_modules(host)
    host.put(deb, f"/tmp/{deb.name}")
    r = host.run(f"dpkg -i /tmp/{deb.name}", timeout=COMPILE_TIMEOUT_S)
    if r.rc or host.run("dkms status | grep -q 'irdma.*installed'").rc:
        log = host.run("tail -5 /var/lib/dkms/irdma*/*/build/make.log").out
        raise LabError(f"{host.name}: dpkg -i {deb.name} did not install the module: "
                       f"{(r.err.strip() or r.out.strip())[-200:]} {log}")


def copy_build(source, target):
    """Carry a finished DKMS build to a host with the same kernel, sparing it the compiler."""
    writable_modules(target)
    source.run("cd / && tar -cf /tmp/dkms.tar var/lib/dkms usr/src/irdma-* "
               "$(find usr/lib/modules/$(uname -r)/updates -type f)").check()
    target.put(source.get("/tmp/dkms.tar"), "/tmp/dkms.tar")
    target.run("tar -C / -xf /tmp/dkms.tar && depmod -a", timeout=120).check()


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
