# SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
"""Debian packages of another release, without touching the host's own apt.

A `Suite` is a private apt configuration (own lists, own dpkg status: nothing is
installed) whose sources are the host's Debian entry with the suites replaced,
so mirror, proxy and keys are those the host already uses.  Packages are
downloaded with their whole dependency closure and unpacked with dpkg-deb.
"""

import glob
import re
import shutil
import time
from pathlib import Path

from . import cache
from .errors import LabError

KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
SOURCES = ("/etc/apt/sources.list.d/*.sources", "/etc/apt/sources.list",
           "/etc/apt/sources.list.d/*.list")
LISTS_AGE_S = 7 * 86400

# release -> suites taken from the main archive; its -security comes beside them
RELEASES = {
    "bookworm": ("bookworm", "bookworm-updates"),
    "trixie": ("trixie", "trixie-updates", "trixie-backports"),
}


def _deb822_entries(text):
    """Yield (uris, suites, signed_by) of each enabled deb stanza of a .sources file."""
    for stanza in re.split(r"\n\s*\n", text):
        fields = {}
        for line in stanza.splitlines():
            if line.startswith("#"):
                continue
            m = re.match(r"([A-Za-z-]+):\s*(.*)", line)
            if m:
                key = m.group(1).lower()
                fields[key] = m.group(2).split()
            elif line[:1] in " \t" and fields:
                fields[key] += line.split()
        if "deb" not in fields.get("types", []) or fields.get("enabled", ["yes"])[0] == "no":
            continue
        signed = fields.get("signed-by", [""])
        yield fields.get("uris", []), fields.get("suites", []), signed[0]


def _one_line_entries(text):
    """Yield (uris, suites, signed_by) of each deb line of a sources.list."""
    for line in text.splitlines():
        m = re.match(r"\s*deb\s+(?:\[([^]]*)\]\s+)?(\S+)\s+(\S+)", line)
        if m:
            opt = re.search(r"signed-by=(\S+)", m.group(1) or "")
            yield [m.group(2)], [m.group(3)], opt.group(1) if opt else ""


def host_archives(patterns=SOURCES):
    """Return {"main": (uri, key), "security": (uri, key)} of the host's Debian sources.

    An entry is Debian's when one of its suites is a Debian release's; the
    security archive is optional.
    """
    found = {}
    codename = r"(bullseye|bookworm|trixie|forky|sid|(old)?stable|testing)"
    for pattern in patterns:
        for path in sorted(glob.glob(pattern)):
            text = Path(path).read_text(errors="replace")
            parse = _deb822_entries if path.endswith(".sources") else _one_line_entries
            for uris, suites, key in parse(text):
                for suite in suites:
                    kind = None
                    if re.fullmatch(codename + r"(-updates)?", suite):
                        kind = "main"
                    elif re.fullmatch(codename + r"(-security|/updates)", suite):
                        kind = "security"
                    if kind and uris:
                        found.setdefault(kind, (uris[0], key))
    if "main" not in found:
        raise LabError("no Debian archive in /etc/apt/sources.list or sources.list.d; "
                       "add the usual Debian entry there")
    return found


class Suite:
    """Debian release `name` ("bookworm", "trixie") with its backports and security."""

    def __init__(self, name):
        self.name = name
        self.dir = cache.root() / "apt" / name
        self._ready = False

    def _options(self):
        d = self.dir
        # APT::Sandbox::User: the cache may live in a home that user _apt cannot enter
        return ["-q", "-o", f"Dir::State={d}/state", "-o", f"Dir::State::status={d}/status",
                "-o", f"Dir::Cache={d}/cache", "-o", f"Dir::Etc::sourcelist={d}/lab.sources",
                "-o", "Dir::Etc::sourceparts=/dev/null", "-o", "Dir::Etc::preferences=/dev/null",
                "-o", "Dir::Etc::preferencesparts=/dev/null", "-o", "APT::Sandbox::User=root",
                "-o", "APT::Architecture=amd64", "-o", "APT::Architectures::=amd64",
                "-o", "APT::Get::List-Cleanup=0", "-o", "Dpkg::Use-Pty=0",
                "-o", "Acquire::Languages=none", "-o", "Acquire::Retries=3"]

    def _write_sources(self):
        archives = host_archives()
        stanzas = []
        for kind, suites in (("main", RELEASES[self.name]),
                             ("security", (self.name + "-security",))):
            if kind not in archives:
                continue
            uri, key = archives[kind]
            stanzas.append(f"Types: deb\nURIs: {uri}\nSuites: {' '.join(suites)}\n"
                           f"Components: main\nSigned-By: {key or KEYRING}\n")
        (self.dir / "lab.sources").write_text("\n".join(stanzas))

    def prepare(self):
        """Have package lists; fetch them when missing or a week old."""
        if self._ready:
            return
        stamp = self.dir / "updated"
        with cache.lock(f"apt-{self.name}"):
            fresh = stamp.exists() and time.time() - stamp.stat().st_mtime < LISTS_AGE_S
            if not fresh:
                for sub in ("state/lists/partial", "cache/archives/partial"):
                    (self.dir / sub).mkdir(parents=True, exist_ok=True)
                (self.dir / "status").touch()
                self._write_sources()
                cache.progress(f"fetching the package lists of Debian {self.name}")
                cache.run(["apt-get", *self._options(), "update"],
                          f"fetching the package lists of Debian {self.name}")
                stamp.touch()
        self._ready = True

    def depends(self, package):
        """Return the names that `package` depends on directly."""
        self.prepare()
        text = cache.run(["apt-cache", *self._options(), "show", "--no-all-versions", package],
                         f"looking up package {package}")
        m = re.search(r"^Depends: (.*)$", text, re.M)
        return re.findall(r"(?:^|, )([a-z0-9][a-z0-9.+-]*)", m.group(1)) if m else []

    def newest(self, pattern):
        """Return the package names that match regular expression `pattern`, newest last."""
        self.prepare()
        names = cache.run(["apt-cache", *self._options(), "pkgnames"], "listing packages").split()

        def key(name):
            return [int(n) for n in re.findall(r"\d+", name)]
        return sorted((n for n in names if re.fullmatch(pattern, n)), key=key)

    def fetch(self, packages, into, closure=True, target=None):
        """Download packages (with everything they depend on, when closure) into a directory.

        target: suite that is preferred for all of them, e.g. "trixie-backports".
        Returns the .deb paths.
        """
        self.prepare()
        into = Path(into)
        into.mkdir(parents=True, exist_ok=True)
        what = f"downloading from Debian {self.name}"
        prefer = ["-t", target] if target else []
        if not closure:
            cache.run(["apt-get", *self._options(), *prefer, "download", *packages], what, cwd=into)
        else:
            (into / "partial").mkdir(exist_ok=True)
            cache.run(["apt-get", *self._options(), *prefer, "-o", f"Dir::Cache::archives={into}",
                       "install", "-y", "--no-install-recommends", "--download-only",
                       *packages], what)
            shutil.rmtree(into / "partial", ignore_errors=True)
        debs = sorted(into.glob("*.deb"))
        if not debs:
            raise LabError(f"{what}: nothing arrived for {' '.join(packages)}")
        return debs

    def unpack(self, packages, tree, closure=True, status=False, target=None):
        """Download packages and unpack them into `tree`, without running their scripts.

        status: also write a dpkg status file, so that dpkg in that tree knows them.
        """
        tree = Path(tree)
        tree.mkdir(parents=True, exist_ok=True)
        debs_dir = tree.parent / (tree.name + ".debs")
        try:
            debs = self.fetch(packages, debs_dir, closure, target)
            # base-files first: it brings the /bin -> usr/bin links of a merged /usr
            debs.sort(key=lambda p: not p.name.startswith("base-files_"))
            records = []
            for deb in debs:
                cache.run(["dpkg-deb", "-x", deb, tree], f"unpacking {deb.name}")
                if status:
                    control = cache.run(["dpkg-deb", "-f", deb], f"reading {deb.name}")
                    name = control.split("\n", 1)
                    records.append(f"{name[0]}\nStatus: install ok installed\n{name[1]}")
            if status:
                (tree / "var/lib/dpkg").mkdir(parents=True, exist_ok=True)
                (tree / "var/lib/dpkg/status").write_text("\n".join(records))
        finally:
            cache.remove(debs_dir)
        return tree


def loader(tree, program):
    """Return the argv prefix that runs `program` of an unpacked tree with the tree's libraries."""
    tree = Path(tree)
    # bookworm's libc6 is below /lib still
    libs = [str(tree / d) for d in ("usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu")]
    path = tree / program
    if not path.exists():
        raise LabError(f"{program} is missing in {tree}; delete that directory "
                       "and run scripts/lab setup")
    # --argv0: programs that look at their name see their own
    ld = next(p for d in libs if (p := Path(d) / "ld-linux-x86-64.so.2").exists())
    return [str(ld), "--library-path", ":".join(libs), "--argv0", path.name, str(path)]
