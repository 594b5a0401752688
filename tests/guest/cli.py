# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""The commands of scripts/lab."""

import argparse
import fcntl
import json
import os
import re
import shutil
import signal
import struct
import sys
import termios
import threading
import tty

from . import apt, cache, images, kernels, lab, model, qemu, supervisor, tools
from .errors import LabError

# program or file that must be there -> Debian package that has it
HOST_NEEDS = {"gcc": "gcc", "make": "make", "dpkg-deb": "dpkg", "tshark": "tshark", "sparse": "sparse",
              "xz": "xz-utils"}
HOST_LIBRARIES = {"/usr/include/stdio.h": "libc6-dev",
                  "/usr/lib/python3/dist-packages/pytest": "python3-pytest"}
# what building a kernel takes besides
DEBUG_NEEDS = {"bc": "bc", "bison": "bison", "flex": "flex"}
DEBUG_LIBRARIES = {"/usr/include/libelf.h": "libelf-dev"}


class Parser(argparse.ArgumentParser):
    """argparse with errors of one line and exit code 2."""

    def error(self, message):
        print(f"lab: {message}; see scripts/lab {self.prog.split()[-1]} --help"
              if " " in self.prog else f"lab: {message}; see scripts/lab --help",
              file=sys.stderr)
        sys.exit(2)


def per_host(text):
    """Parse "7.3" or "A=irdma,B=intree" into a value or a dict."""
    if "=" not in text:
        return text
    pairs = [p.split("=", 1) for p in text.split(",")]
    if any(len(p) != 2 or not p[0] or not p[1] for p in pairs):
        raise argparse.ArgumentTypeError(f"{text!r} is neither VALUE nor HOST=VALUE,...")
    return dict(pairs)


def lab_name(text):
    """Check the name of a lab: it becomes a directory."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,32}", text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name; use letters, digits, - and _")
    return text


def install_host_needs(programs, libraries):
    """Install what the lab runs of the host's own and is missing; needs root."""
    missing = sorted({pkg for prog, pkg in programs.items() if not shutil.which(prog)}
                     | {pkg for path, pkg in libraries.items() if not os.path.exists(path)})
    if not missing:
        return
    if os.geteuid():
        raise LabError(f"these packages are missing: {' '.join(missing)}; "
                       "install them, or run scripts/lab setup as root")
    cache.progress(f"installing {' '.join(missing)}")
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive", LC_ALL="C")
    cache.run(["apt-get", "update", "-q"], "updating the package lists", env=env)
    cache.run(["apt-get", "install", "-y", "-q", "--no-install-recommends", *missing],
              "installing packages", env=env)


def do_setup(args):
    """Fetch and build everything, so that `up` downloads nothing."""
    install_host_needs(HOST_NEEDS, HOST_LIBRARIES)
    if kernels.DEBUG in (args.kernel or ()):
        install_host_needs(DEBUG_NEEDS, DEBUG_LIBRARIES)
    if args.update:
        for release in apt.RELEASES:
            (cache.root() / "apt" / release / "updated").unlink(missing_ok=True)
        kernels.forget_releases()
        images.forget_old()
    tools.qemu()
    model.build()
    images.root_image()
    for name in args.kernel or kernels.KERNELS:
        kernels.initramfs(name)
        kernels.vmlinux(name)
        kernels.modules_image(name)
        kernels.siw(name)
        cache.progress(f"kernel {name}: {kernels.release(name)} is ready")


def do_up(args):
    """Start a lab in the background."""
    options = {"kernel": args.kernel, "driver": args.driver, "hosts": args.hosts,
               "accel": args.accel, "nics": args.nics, "cmdline": args.cmdline,
               "mem_mb": args.mem, "trace": args.trace, "strict": not args.lenient,
               "module": args.module, "san": args.san, "image": args.image}
    lab.Lab(**options)
    supervisor.start(args.name, options)
    return do_status(args)


def request(name, **fields):
    """Send one request and print its answer; returns the exit code."""
    with supervisor.connect(name) as sock:
        sock.sendall((json.dumps(fields) + "\n").encode())
        return print_answer(sock)


def print_answer(sock):
    """Copy an answer's frames to our own streams until the exit code comes; return it."""
    try:
        while True:
            kind, data = supervisor.recv_frame(sock)
            if kind == "q":
                return struct.unpack("<i", data)[0]
            stream = sys.stdout.buffer if kind == "o" else sys.stderr.buffer
            stream.write(data)
            stream.flush()
    except EOFError:
        raise LabError("the lab went down meanwhile") from None


def feed_stdin(sock):
    """Copy our standard input to the command (a thread of its own)."""
    try:
        while data := os.read(0, 32768):
            supervisor.send_frame(sock, "i", data)
        supervisor.send_frame(sock, "z")
    except OSError:
        pass


def exit_code(rc):
    """Turn "killed by signal n" into the shell's 128 + n."""
    return rc if rc >= 0 else 128 - rc


def do_run(args):
    """Run a command in a guest."""
    if not args.argv:
        raise LabError("no command given; scripts/lab run A -- COMMAND...")
    argv = args.argv if len(args.argv) > 1 else args.argv[0]
    with supervisor.connect(args.name) as sock:
        sock.sendall((json.dumps({"op": "exec", "host": args.host, "argv": argv})
                      + "\n").encode())
        threading.Thread(target=feed_stdin, args=(sock,), daemon=True).start()
        try:
            return exit_code(print_answer(sock))
        except KeyboardInterrupt:
            supervisor.send_frame(sock, "s", struct.pack("<I", signal.SIGINT))
            return exit_code(print_answer(sock))


def window_size():
    """Return (rows, columns) of our terminal."""
    size = shutil.get_terminal_size()
    return size.lines, size.columns


def do_shell(args):
    """Open an interactive shell in a guest."""
    if not sys.stdin.isatty():
        raise LabError("shell needs a terminal; use scripts/lab run A -- COMMAND")
    env = {"TERM": os.environ.get("TERM", "vt100")}
    saved = termios.tcgetattr(0)
    with supervisor.connect(args.name) as sock:
        sock.sendall((json.dumps({"op": "exec", "host": args.host, "argv": ["bash", "-l"],
                                  "pty": True, "env": env}) + "\n").encode())

        def resize(*_):
            supervisor.send_frame(sock, "w", supervisor.WINDOW.pack(*window_size()))

        try:
            tty.setraw(0)
            resize()
            signal.signal(signal.SIGWINCH, resize)
            threading.Thread(target=feed_stdin, args=(sock,), daemon=True).start()
            return exit_code(print_answer(sock))
        finally:
            termios.tcsetattr(0, termios.TCSADRAIN, saved)
            fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) & ~os.O_NONBLOCK)


def do_put(args):
    """Copy a file into a guest."""
    return request(args.name, op="put", host=args.host, local=os.path.abspath(args.local),
                   remote=args.remote)


def do_get(args):
    """Copy a file out of a guest."""
    local = args.local or os.path.basename(args.remote)
    return request(args.name, op="get", host=args.host, remote=args.remote,
                   local=os.path.abspath(local))


def do_wire(args):
    """Send a command to the wire."""
    return request(args.name, op="wire", argv=args.argv or ["help"])


def do_fault(args):
    """Send a command to a host's adapter."""
    return request(args.name, op="fault", host=args.host, argv=args.argv or ["help"])


def do_dmesg(args):
    """Print a guest's kernel log, complete since boot."""
    return request(args.name, op="dmesg", host=args.host)


def do_restart(args):
    """Pull a guest's plug, boot it again, load its driver."""
    return request(args.name, op="restart", host=args.host)


def do_status(args):
    """Say what runs."""
    return request(args.name, op="status")


def do_down(args):
    """End the lab."""
    supervisor.stop(args.name)


def do_kdir(args):
    """Print the KDIR of a kernel."""
    print(kernels.kdir(args.kernel))


def do_build(args):
    """Build irdma.ko for a kernel, outside the source tree."""
    source = args.source or lab.REPOSITORY
    print(kernels.build_driver(args.kernel, source, args.out, args.make_args, fresh=args.fresh))


def make_parser():
    """Return the parser of all commands."""
    p = Parser(prog="lab", description="Virtual hosts with an Intel E810 each.")
    sub = p.add_subparsers(dest="command", required=True, metavar="COMMAND", parser_class=Parser)

    def command(name, act, text, host=False, named=True):
        c = sub.add_parser(name, help=text, description=text)
        c.set_defaults(act=act)
        if named:
            c.add_argument("--name", type=lab_name, default="lab", help="which lab (default: lab)")
        if host:
            c.add_argument("host", metavar="HOST", help="A, B, ...")
        return c

    c = command("setup", do_setup, "fetch and build everything that up needs", named=False)
    c.add_argument("--kernel", action="append", choices=kernels.ALL,
                   help="only this kernel (may be repeated)")
    c.add_argument("--update", action="store_true", help="look for newer kernels")

    c = command("up", do_up, "start hosts, load drivers, wait until the ports are active")
    c.add_argument("--kernel", type=per_host, default=kernels.DEFAULT,
                   help=f"{', '.join(kernels.ALL)}; or A=7.3,B=6.1 (default {kernels.DEFAULT})")
    c.add_argument("--driver", type=per_host, default="intree",
                   help=f"{', '.join(lab.DRIVERS)}; or A=irdma,B=intree (default intree)")
    c.add_argument("--hosts", type=int, default=2, help="number of hosts (default 2)")
    c.add_argument("--nics", type=int, default=1, help="adapters per host (default 1)")
    c.add_argument("--accel", choices=("auto", *qemu.ACCELS), default="auto")
    c.add_argument("--mem", type=int, default=1024, help="MiB per host (default 1024)")
    c.add_argument("--cmdline", default="", help="more words for the kernel command line")
    c.add_argument("--module", help="irdma.ko to use for driver irdma (default: build it)")
    c.add_argument("--image", default=images.DEFAULT, choices=images.IMAGES, help="root image")
    c.add_argument("--trace", type=int, choices=(0, 1, 2), default=0,
                   help="trace of the adapters: 1 commands, 2 and every register")
    c.add_argument("--lenient", action="store_true",
                   help="adapters only log what silicon would refuse")
    c.add_argument("--san", action="store_true", help="adapters built with sanitizers")

    command("shell", do_shell, "open a shell on a host", host=True)
    c = command("run", do_run, "run a command on a host: run A -- COMMAND...", host=True)
    c.add_argument("argv", nargs=argparse.REMAINDER, metavar="COMMAND")
    c = command("put", do_put, "copy a file to a host", host=True)
    c.add_argument("local")
    c.add_argument("remote")
    c = command("get", do_get, "copy a file from a host", host=True)
    c.add_argument("remote")
    c.add_argument("local", nargs="?")
    c = command("wire", do_wire, "command the wire (wire help lists the words)")
    c.add_argument("argv", nargs=argparse.REMAINDER, metavar="WORD")
    c = command("fault", do_fault, "command a host's adapter (fault A help)", host=True)
    c.add_argument("argv", nargs=argparse.REMAINDER, metavar="WORD")
    command("dmesg", do_dmesg, "print a host's kernel log", host=True)
    command("restart", do_restart, "pull a host's plug and boot it again", host=True)
    command("status", do_status, "say what runs")
    command("down", do_down, "end the lab")

    c = command("kdir", do_kdir, "print the KDIR to build modules for a kernel", named=False)
    c.add_argument("kernel", choices=kernels.ALL)
    c = command("build", do_build, "build irdma.ko for a kernel, outside the tree", named=False)
    c.add_argument("--kernel", choices=kernels.ALL, default=kernels.DEFAULT)
    c.add_argument("--source", help="tree of the driver (default: this one)")
    c.add_argument("--out", help="where to build (default: in the cache)")
    c.add_argument("--fresh", action="store_true", help="everything anew, so that the compiler says all it has to")
    c.add_argument("make_args", nargs="*", metavar="MAKE-ARGUMENT")
    return p


def main(argv=None):
    """Run one command; returns the exit code."""
    args = make_parser().parse_args(argv)
    if getattr(args, "argv", None) and args.argv[0] == "--":
        args.argv = args.argv[1:]
    try:
        return args.act(args) or 0
    except LabError as e:
        print(f"lab: {e}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("lab: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        return 1
